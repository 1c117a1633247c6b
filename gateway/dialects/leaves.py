"""Every text in a request or an answer of callers' formats, where it stands, and the way to write it anew (K24).

Nothing is known by its place alone: whatever is a text and no word of the format is found, in fields that do not
exist yet too. Pictures and sounds in base64, seals and words of the format are not texts.
"""

import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, cast

from gateway.core import codec
from gateway.dialects.chat.data_url import is_data
from gateway.dialects.enclosed import BYTES, UnreadError, text_in_address, text_in_member

_WORDS = frozenset({
    "type", "role", "object", "status", "finish_reason", "stop_reason", "native_finish_reason", "service_tier",
    "encoding_format", "media_type", "mime_type", "mimeType", "format", "model", "detail", "phase",
})  # fmt: skip
_WORD = re.compile(
    r"(?:user|assistant|system|developer|tool|function|model|text|object|list|string|number|integer|boolean|array"
    r"|message|stop|length|completed|in_progress|incomplete|ephemeral|auto|default|low|high|base64|url|png|jpeg|mp3|wav"
    r"|(?:input|output|refusal|reasoning|summary|image|thinking|redacted|tool|function|custom|content|end|max|json|chat"
    r"|response|text|web|file|code|mcp|computer|message|item|audio|document|search|data)[_.][a-z_.]{1,40}"
    r"|(?:image|audio|video|application|font)/[a-z0-9.+-]{1,60})"
).fullmatch
"""Words of the formats; others in their places are looked at."""
_LINKS = frozenset(
    {"id", "call_id", "tool_call_id", "tool_use_id", "item_id", "name", "response_id", *_WORDS}
)
"""Texts that others refer to: they are looked at, and cannot be changed."""
_IDS = frozenset({"id", "call_id", "tool_use_id", "item_id"})
_MADE = re.compile(
    r"[a-z]{2,4}_gw[0-9a-f]{26}|call_[0-9a-f]{24}(?:_\d{1,4}_\d{1,4})?|toolu_req_[0-9a-f]{24}_\d{1,4}"
).fullmatch
"""Ids of items and calls as the gateway makes them."""
_NEVER = frozenset({"obfuscation"})
"""Padding of no meaning, put there by providers."""
_OPAQUE = frozenset({
    "data", "b64_json", "file_data", "image_data", "signature", "encrypted_content", "thought_signature", "bytes",
    "partial_image_b64", "result",
})  # fmt: skip
"""What holds bytes and seals; it is looked at where it is neither."""
_LONG = 64
_BASE64 = re.compile(r"[A-Za-z0-9+/_\-\s]+={0,2}").fullmatch
_DENSE = re.compile(r"[A-Za-z0-9+/_\-=\r\n]+").fullmatch
_FREE = frozenset(
    {"arguments", "args", "metadata", "parameters", "input_schema", "schema", "variables"}
)
"""What callers and models name as they like: there are no words of the format below it."""
_JSON_TEXTS = frozenset({"arguments", "partial_json"})
_SPEECH = frozenset(
    {"text", "content", "input", "thinking", "refusal", "reasoning_content", "reasoning"}
)
_SAID = frozenset({"content", "text"})
"""Where most of what is said stands: no thoughts, no files."""
_SPEAKERS = frozenset({"user", "assistant", "system", "tool"})
_ROLES = {
    "system": "system",
    "instructions": "system",
    "tools": "tools",
    "functions": "tools",
    "input": "user",
    "prompt": "user",
    "messages": "user",
    "query": "user",
    "documents": "user",
}
_TYPES = {
    "tool_result": "tool",
    "function_call_output": "tool",
    "custom_tool_call_output": "tool",
    "tool_use": "assistant",
    "function_call": "assistant",
    "custom_tool_call": "assistant",
    "reasoning": "reasoning",
    "thinking": "reasoning",
    "summary_text": "reasoning",
}
_THOUGHTS = frozenset({"reasoning_content", "reasoning", "thinking"})
_TOKENS = frozenset({"input", "prompt", "prompt_token_ids", "input_ids", "suffix"})
"""What may be said in numbers of tokens."""
_OF_PROVIDERS = frozenset({"id", "usage", "model", "system_fingerprint"})
"""What no model has a say in, of an answer."""
_BEGINNINGS = {"message_start": "message", "response": "response"}
"""Events with an answer inside, and where it stands."""
_DEEPEST = 200
_SMALL = 99_999_999
"""Larger numbers among what callers and models name as they like may be those of cards and people."""
_SPACED_KEY = re.compile(rb'"[ \t\r\n]+:').findall
Holder = MutableMapping[str, Any] | list[Any]


@dataclass(slots=True)
class Leaf:
    """One text. `role`: system, user, assistant, tool, tools, or request for what belongs to nobody.

    `fixed`: others refer to it. `spoken`: neighbours of one role and one `group` (an answer may be given in several
    ways) are read on as one text. `enclosed`: it is what a file says, and cannot be changed there.
    """

    holder: Holder
    key: str | int
    text: str
    role: str
    fixed: bool = False
    spoken: bool = False
    group: int = 0
    enclosed: bool = False

    def set(self, text: str) -> None:
        """Write the text anew."""
        self.text = text
        cast("dict[str | int, Any]", self.holder)[self.key] = text


@dataclass(slots=True)
class Tree:
    """A decoded request or answer with its texts. `unread`: not all of it could be looked at.

    `renew`: an object names something twice; only the last was seen, so that it must be written anew to be what was
    seen (K24). `names` counts the names in objects.
    """

    value: Any
    leaves: list[Leaf] = field(default_factory=list[Leaf])
    unread: bool = False
    renew: bool = False
    names: int = 0
    _inner: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])

    def seal(self) -> None:
        """Write what was changed inside of texts that hold JSON back into these."""
        for write in reversed(self._inner):
            write()

    def inside(self, write: Callable[[], None]) -> None:
        """Have something written back by `seal`."""
        self._inner.append(write)


def request_tree(fields: codec.Fields) -> Tree:
    """Return the texts of a request, from its split fields."""
    value = {name: codec.value_of(raw) for name, raw in fields.items() if name != "model"}
    tree = Tree(value)
    walk = _Walk(tree)
    for name, part in value.items():
        before = tree.names
        tree.unread = tree.unread or (name in _TOKENS and _has_numbers(part))
        walk.go(value, name, part, _ROLES.get(name, "request"), free=False, depth=0)
        if tree.names > before and tree.names - before != count_names(bytes(fields[name])):
            tree.renew = True
    return tree


def _has_numbers(value: object) -> bool:
    """Tell whether numbers of tokens stand in the place of texts: what they say cannot be known."""
    if not isinstance(value, list):
        return False
    items = cast("list[object]", value)
    return any(type(item) in {int, float} or _has_inner_numbers(item) for item in items)


def _has_inner_numbers(value: object) -> bool:
    return isinstance(value, list) and any(
        type(item) in {int, float} for item in cast("list[object]", value)
    )


def count_names(text: bytes) -> int:
    """Return how many names stand in JSON, those given twice included."""
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    found = text.count(b'":')
    return found + len(_SPACED_KEY(text))


def answer_tree(body: bytes) -> Tree:
    """Return the texts of a whole answer; raises codec.JSONError for a body that is no JSON."""
    return _of_answer(codec.decode(body))


def _of_answer(value: object, *, deltas: bool = False) -> Tree:
    tree = Tree(value)
    walk = _Walk(tree, deltas=deltas)
    fields = codec.as_object(value)
    if fields is None:
        walk.go([value], 0, value, "assistant", free=False, depth=0)
        return tree
    walk.answer(fields)
    return tree


def event_tree(data: bytes) -> Tree:
    """Return the texts of one event of a stream, words in JSON that is not complete included; as `answer_tree`."""
    return _of_answer(codec.decode(data), deltas=True)


def json_tree(text: str) -> Tree:
    """Return the texts inside a text that is to be JSON; one that is not is a text. `value` is a list of it."""
    box: list[Any] = [text]
    tree = Tree(box)
    _Walk(tree).take_json(box, 0, text, "assistant", 0)
    return tree


def write_back(tree: Tree, fields: codec.Fields) -> None:
    """Put the texts of a request back into its fields."""
    tree.seal()
    for name, value in cast("dict[str, Any]", tree.value).items():
        fields[name] = codec.raw(value)


class _Walk:
    """Goes through a value; `deltas`: texts that hold JSON are not complete."""

    def __init__(self, tree: Tree, *, deltas: bool = False) -> None:
        self._tree = tree
        self._deltas = deltas
        self._group = 0
        self._answers = False

    def answer(self, fields: dict[str, Any]) -> None:
        """Take the texts of an answer, or of an event with one inside, without what providers say of it."""
        self._answers = True
        kind = fields.get("type")
        inside = _BEGINNINGS.get(kind.partition(".")[0]) if isinstance(kind, str) else None
        for name, part in fields.items():
            if name == inside and isinstance(part, dict):
                self.answer(cast("dict[str, Any]", part))
            elif name not in _OF_PROVIDERS:
                self.go(fields, name, part, "assistant", free=False, depth=0)

    def go(
        self, holder: Holder, key: str | int, value: object, role: str, *, free: bool, depth: int
    ) -> None:
        """Take all texts of a value that stands in a holder under a key."""
        kind = type(value)
        if kind is str:
            self._take(holder, key, cast("str", value), role, free=free, depth=depth)
        elif kind is list or kind is dict:
            if depth >= _DEEPEST:
                self._tree.unread = True
            elif kind is list:
                items = cast("list[Any]", value)
                deeper = depth + 1
                for place, item in enumerate(items):
                    if key == "choices":
                        self._group = place
                    if type(item) is dict and deeper < _DEEPEST:
                        inner = cast("dict[str, Any]", item)
                        self._go_inside(place, inner, role, free=free, depth=deeper + 1)
                    else:
                        value = cast("object", item)
                        self.go(items, place, value, role, free=free, depth=deeper)
            else:
                part = cast("dict[str, Any]", value)
                self._go_inside(key, part, role, free=free, depth=depth + 1)

    def _go_inside(
        self, key: str | int, part: dict[str, Any], role: str, *, free: bool, depth: int
    ) -> None:
        tree = self._tree
        tree.names += len(part)
        if free or key in _FREE or key == "input":
            free = True
            if part:
                tree.leaves.append(Leaf(part, "", "\n".join(part), role, fixed=True))
        else:
            said = part.get("role")
            if type(said) is str:
                role = "system" if said == "developer" else said
            else:
                kind = part.get("type")
                if type(kind) is str:
                    role = _TYPES.get(kind, role)
        for name, item in part.items():
            if type(item) is str:
                if free or item[:1] in "dD":
                    self._take(part, name, item, role, free=free, depth=depth)
                elif name in _SAID:  # the same as below, for most of all texts
                    tree.leaves.append(Leaf(part, name, item, role, False, True, self._group))
                elif name != "role" or item not in _SPEAKERS:
                    self._take(part, name, item, role, free=free, depth=depth)
            elif type(item) is dict or type(item) is list:
                self.go(part, name, cast("object", item), role, free=free, depth=depth)
            elif free and type(item) is int and item > _SMALL:
                tree.leaves.append(Leaf(part, name, str(item), role))

    def _take(
        self, holder: Holder, key: str | int, text: str, role: str, *, free: bool, depth: int
    ) -> None:
        if free:
            if text:
                self._tree.leaves.append(Leaf(holder, key, text, role))
            return
        spoken = key in _SPEECH or type(key) is int
        if not text:
            return
        if (key in BYTES or text[:1] in "dD") and self._take_file(
            holder, key, text, role, spoken=spoken
        ):
            return
        if not spoken and (not _is_text(key, text) or self._is_made(key, text)):
            return
        if not spoken and key in _JSON_TEXTS and not self._deltas:
            self.take_json(holder, key, text, role, depth)
            return
        if key in _THOUGHTS:
            role = "reasoning"
        self._tree.leaves.append(Leaf(holder, key, text, role, key in _LINKS, spoken, self._group))

    def _is_made(self, key: str | int, text: str) -> bool:
        """Tell whether a text of an answer is an id that the gateway drew: some day any short word is in one."""
        return self._answers and key in _IDS and _MADE(text) is not None

    def _take_file(
        self, holder: Holder, key: str | int, text: str, role: str, *, spoken: bool
    ) -> bool:
        """Take what a file says that stands in a text; True where there is no more to see in it."""
        member = cast("Mapping[str, Any]", holder) if key in BYTES else None
        try:
            if is_data(text):
                inside = text_in_address(text)
            elif member is None:
                return False
            elif member.get("type") == "text":  # it is what it says, however it looks
                self._tree.leaves.append(Leaf(holder, key, text, role))
                return True
            else:
                inside = text_in_member(member, text, guess=not self._deltas)
        except UnreadError:
            self._tree.unread = self._tree.unread or not spoken
            return False
        if inside:
            self._tree.leaves.append(Leaf(holder, key, inside, role, fixed=True, enclosed=True))
        if not is_data(text) or (spoken and len(text) < _LONG):
            return False
        return _DENSE(text, text.find(",") + 1) is not None

    def take_json(self, holder: Holder, key: str | int, text: str, role: str, depth: int) -> None:
        """Take the texts inside a text that is to be JSON."""
        tree = self._tree
        inner: Any = None
        if text[:1] in {"{", "["}:
            try:
                inner = codec.decode(text)
            except (codec.JSONError, RecursionError, UnicodeEncodeError):
                inner = None
        if inner is None:
            tree.leaves.append(Leaf(holder, key, text, role))
            return
        before, names = len(tree.leaves), tree.names
        box: list[Any] = [inner]
        self.go(box, 0, inner, role, free=True, depth=depth + 1)
        is_twice = tree.names - names != count_names(text.encode())
        tree.names = names
        tree.renew = tree.renew or is_twice
        found = tree.leaves[before:]
        originals = [leaf.text for leaf in found]

        def write() -> None:
            if is_twice or [leaf.text for leaf in found] != originals:
                cast("dict[str | int, Any]", holder)[key] = codec.encode(box[0]).decode()

        tree.inside(write)


def _is_text(key: str | int, text: str) -> bool:
    """Tell whether a text is more than a word of the format, a seal, or bytes."""
    if key in _WORDS:
        return _WORD(text) is None
    if key in _OPAQUE:
        return len(text) < _LONG or _BASE64(text) is None
    return key not in _NEVER


def last_leaves(tree: Tree) -> list[Leaf]:
    """Return the texts of the user's last message (W-GRD-1)."""
    value = cast("Mapping[str, Any]", tree.value)
    messages = value.get("messages", value.get("input"))
    if isinstance(messages, str):
        return [leaf for leaf in tree.leaves if leaf.holder is value and leaf.key == "input"]
    if not isinstance(messages, list):
        return [leaf for leaf in tree.leaves if leaf.role == "user" and leaf.spoken]
    items = cast("list[object]", messages)
    objects = [codec.as_object(item) or {} for item in items]
    said = [item for item in objects if item.get("role") == "user" and not _is_result(item)]
    if not said:
        plain = [leaf for leaf in tree.leaves if leaf.holder is messages]
        return plain[-1:]
    inside = {id(part) for part in _containers(said[-1])}
    return [
        leaf
        for leaf in tree.leaves
        if id(leaf.holder) in inside and leaf.role == "user" and (leaf.spoken or leaf.enclosed)
    ]


def _is_result(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    if not isinstance(content, list) or not content:
        return False
    parts = [codec.as_object(part) or {} for part in cast("list[Any]", content)]
    return all(part.get("type") == "tool_result" for part in parts)


def _containers(value: object) -> Iterator[object]:
    yield value
    inner: list[Any] = []
    if isinstance(value, dict):
        inner = list(cast("dict[str, Any]", value).values())
    elif isinstance(value, list):
        inner = cast("list[Any]", value)
    for item in inner:
        if isinstance(item, dict | list):
            yield from _containers(cast("object", item))
