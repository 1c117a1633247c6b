"""What was written, with places: the tree between the YAML text and the models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

from gateway.config.errors import Mistake, Path, Place, mistake
from gateway.config.references import Secret

Plain = None | bool | int | float | str | Secret


@dataclass(slots=True)
class Node:
    """One written value: a plain one, a list or a block of keys.

    `bare`: nothing was written after the key. `size`: values inside, aliases expanded.
    """

    place: Place
    value: Plain | list[Node] | dict[str, Node]
    key_place: Place = field(default_factory=lambda: Place(""))
    bare: bool = False
    size: int = 1


@dataclass(frozen=True, slots=True)
class View:
    """A node together with its path; asking for what is not there gives nothing."""

    node: Node
    path: Path = ()

    def get(self, *keys: str | int) -> View | None:
        """Return the value below these keys."""
        view: View | None = self
        for key in keys:
            view = view._child(key) if view is not None else None  # noqa: SLF001  its own class
        return view

    def _child(self, key: str | int) -> View | None:
        value = self.node.value
        if isinstance(value, dict) and isinstance(key, str) and key in value:
            return View(value[key], (*self.path, key))
        if isinstance(value, list) and isinstance(key, int) and 0 <= key < len(value):
            return View(value[key], (*self.path, key))
        return None

    def entries(self, *keys: str) -> dict[str, View]:
        """Return the entries of a block, or of the block below these keys."""
        view = self.get(*keys)
        if view is None or not isinstance(view.node.value, dict):
            return {}
        return {key: View(node, (*view.path, key)) for key, node in view.node.value.items()}

    def items(self, *keys: str) -> list[View]:
        """Return the members of a list, or of the list below these keys."""
        view = self.get(*keys)
        if view is None or not isinstance(view.node.value, list):
            return []
        return [View(node, (*view.path, at)) for at, node in enumerate(view.node.value)]

    def text(self, *keys: str) -> str | None:
        """Return a text, references resolved: to compare, never to show."""
        view = self.get(*keys)
        value = None if view is None else view.node.value
        if isinstance(value, Secret):
            return value.reveal()
        return value if isinstance(value, str) else None

    def quoted(self) -> str:
        """Return the text as it may be shown: what a reference stands for is not repeated."""
        value = self.node.value
        return f'"{value}"' if isinstance(value, str) else "what this reference stands for"

    def walk(self) -> Iterator[View]:
        """Yield this view and every one below it."""
        # A stack, not a generator within a generator for each level.
        left: list[View] = [self]
        while left:
            view = left.pop()
            yield view
            value = view.node.value
            if isinstance(value, dict):
                below = [View(node, (*view.path, key)) for key, node in value.items()]
            elif isinstance(value, list):
                below = [View(node, (*view.path, key)) for key, node in enumerate(value)]
            else:
                continue
            left.extend(reversed(below))

    def mistake(self, message: str) -> Mistake:
        """Return a mistake at this value."""
        return mistake(self.node.place, self.path, message)

    def here(self, message: str) -> Mistake:
        """Return a mistake at the key of this value, or at the value of a list."""
        return self.key_mistake(message) if self.node.key_place.file else self.mistake(message)

    def key_mistake(self, message: str) -> Mistake:
        """Return a mistake at the key of this value."""
        return mistake(self.node.key_place, self.path, message)


def from_data(data: object, place: Place) -> Node:
    """Return the node of plain data that stands in no file."""
    if isinstance(data, Mapping):
        entries = cast("Mapping[str, object]", data)
        value = {key: from_data(each, place) for key, each in entries.items()}
        return Node(place, value, place)
    if isinstance(data, list | tuple):
        members = cast("list[object]", data)
        return Node(place, [from_data(each, place) for each in members], place)
    return Node(place, cast("Plain", data), place)
