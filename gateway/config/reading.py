"""Reads YAML text into nodes: plain data, every key once, no surprising words, all bounded."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import yaml

from gateway.config.errors import ConfigError, Mistake, Place
from gateway.config.files import Files
from gateway.config.node import Node
from gateway.config.scalar import scalar

MAX_FILE_BYTES = 2 << 20
MAX_DEPTH = 40
MAX_VALUES = 50_000

_UNREADABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Document:
    """What a file says, and what is wrong with it; no root: it could not be read."""

    root: Node | None
    mistakes: tuple[Mistake, ...]


def read(path: Path, files: Files | None = None) -> Document:
    """Return what a YAML file says; `files` keep what was read."""
    name = str(path)
    try:
        data = (files or Files()).read(path, MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "this is no path"
        return _refused(Place(name), f"cannot be read: {reason}")
    if len(data) > MAX_FILE_BYTES:
        return _refused(Place(name), f"is larger than {MAX_FILE_BYTES} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        place = Place(name, before.count(b"\n") + 1, len(before) - before.rfind(b"\n"))
        return _refused(place, "is not UTF-8 text")
    return parse(text, name)


def parse(text: str, name: str) -> Document:
    """Return what a YAML text says; `name` is the file in every place."""
    unreadable = _UNREADABLE.search(text)
    if unreadable is not None:
        line = text.count("\n", 0, unreadable.start()) + 1
        place = Place(name, line, unreadable.start() - text.rfind("\n", 0, unreadable.start()))
        return _refused(place, "holds a character that YAML does not allow")
    composer = _Composer(name)
    try:
        # Events instead of yaml.compose: its recursion would end in a crash on deep nesting.
        events = cast("Iterable[yaml.Event]", yaml.parse(text, Loader=_LOADER))
        root = composer.document(events)
    except yaml.MarkedYAMLError as error:
        return Document(None, (*composer.mistakes, _syntax(error, name, text)))
    except yaml.YAMLError:
        return Document(None, (*composer.mistakes, _at(Place(name), "is not valid YAML")))
    except ConfigError as error:
        return Document(None, (*composer.mistakes, *error.mistakes))
    if root is None or root.value is None or root.value == {}:
        return _refused(Place(name), "is empty")
    if not isinstance(root.value, dict):
        return _refused(root.place, "must be a block of keys")
    return Document(root, tuple(composer.mistakes))


@dataclass(slots=True)
class _Open:
    """A list or block whose end has not come yet, and the key that waits for its value."""

    node: Node
    anchor: str | None
    key: tuple[str, Place] | None = None


class _Composer:
    """Builds nodes from parser events without recursion."""

    def __init__(self, name: str) -> None:
        self.mistakes: list[Mistake] = []
        self._name = name
        self._anchors: dict[str, Node | None] = {}
        self._open: list[_Open] = []
        self._root: Node | None = None

    def document(self, events: Iterable[yaml.Event]) -> Node | None:
        """Return the only document of the stream, or None when there is none."""
        started = False
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                if started:
                    raise self._fatal(event, "a second document: one file is one document")
                started = True
            elif isinstance(event, yaml.NodeEvent):
                self._begin(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                closed = self._open.pop()
                self._attach(closed.node, closed.anchor)
        return self._root

    def _begin(self, event: yaml.NodeEvent) -> None:
        """Take a key, a plain value or an alias; open a list or block."""
        anchor = event.anchor
        owner = self._open[-1] if self._open else None
        if getattr(event, "tag", None) is not None:
            self.mistakes.append(_at(self._place(event), "has a tag: only plain values are read"))
        if owner is not None and isinstance(owner.node.value, dict) and owner.key is None:
            if not isinstance(event, yaml.ScalarEvent):
                raise self._fatal(event, "a key must be a name")
            owner.key = (event.value, self._place(event))
        elif isinstance(event, yaml.AliasEvent):
            self._attach(self._alias(event), None)
        elif isinstance(event, yaml.ScalarEvent):
            written = event.value
            plain = not event.style
            value = scalar(written) if plain else written
            self._attach(Node(self._place(event), value, bare=plain and not written), anchor)
        else:
            self._open_collection(event, anchor)

    def _open_collection(self, event: yaml.NodeEvent, anchor: str | None) -> None:
        if len(self._open) >= MAX_DEPTH:
            raise self._fatal(event, f"is nested deeper than {MAX_DEPTH} levels")
        if anchor:
            self._anchors[anchor] = None
        block = isinstance(event, yaml.MappingStartEvent)
        self._open.append(_Open(Node(self._place(event), {} if block else []), anchor))

    def _alias(self, event: yaml.AliasEvent) -> Node:
        anchor = cast("str", event.anchor)
        target = self._anchors.get(anchor)
        if target is None:
            state = "stands inside its own value" if anchor in self._anchors else "is not defined"
            raise self._fatal(event, f"the alias *{anchor} {state}")
        return Node(self._place(event), target.value, size=target.size)

    def _attach(self, node: Node, anchor: str | None) -> None:
        """Put a complete value where it belongs, and count it."""
        if anchor:
            self._anchors[anchor] = node
        if not self._open:
            self._root = node
            return
        owner = self._open[-1]
        owner.node.size += node.size
        # Aliases count with all they stand for: a few lines must not become a billion values.
        if owner.node.size > MAX_VALUES:
            message = f"is larger than {MAX_VALUES} values, aliases included"
            raise ConfigError([_at(node.place, message)])
        if isinstance(owner.node.value, list):
            owner.node.value.append(node)
        elif isinstance(owner.node.value, dict) and owner.key is not None:
            self._enter(owner.node.value, owner.key, node)
            owner.key = None

    def _enter(self, block: dict[str, Node], key: tuple[str, Place], node: Node) -> None:
        name, place = key
        if name == "<<":
            self.mistakes.append(_at(place, "merge keys (<<) are not read"))
        elif not name:
            self.mistakes.append(_at(place, "a key must be a name"))
        elif name in block:
            message = f'the key "{name}" is already defined at {block[name].key_place}'
            self.mistakes.append(_at(place, message))
        else:
            node.key_place = place
            block[name] = node

    def _place(self, event: yaml.Event) -> Place:
        mark = event.start_mark
        if mark is None:
            return Place(self._name)
        return Place(self._name, mark.line + 1, mark.column + 1)

    def _fatal(self, event: yaml.Event, message: str) -> ConfigError:
        return ConfigError([_at(self._place(event), message)])


def _syntax(error: yaml.MarkedYAMLError, name: str, text: str) -> Mistake:
    """Say where the text stops being YAML; the parser's own words name no value."""
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return _at(Place(name), "is not valid YAML")
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    place = Place(name, mark.line + 1, mark.column + 1)
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return _at(place, "is not valid YAML: a tab indents this line, use spaces")
    return _at(place, f"is not valid YAML: {error.problem or 'unexpected text'}")


def _at(place: Place, message: str) -> Mistake:
    return Mistake(place.file, place.line, place.column, "", message)


def _refused(place: Place, message: str) -> Document:
    return Document(None, (_at(place, message),))
