"""Every text in a request or an answer of callers' formats, where it stands, and the way to write it anew (K24).

Nothing is known by its place alone: whatever is a text and no word of the format is found, in fields that do not
exist yet too. Pictures and sounds in base64, seals and words of the format are not texts.
"""

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from gateway.core import codec

_WORDS = frozenset({
    "type", "role", "object", "model", "signature", "encrypted_content", "thought_signature", "media_type",
    "mime_type", "mimeType", "status", "finish_reason", "stop_reason", "native_finish_reason", "service_tier",
    "system_fingerprint", "encoding_format", "obfuscation",
})  # fmt: skip
_LINKS = frozenset(
    {"id", "call_id", "tool_call_id", "tool_use_id", "item_id", "name", "response_id"}
)
"""Texts that others refer to: they are looked at, and cannot be changed."""
_MEDIA = frozenset(
    {"input_audio", "inlineData", "inline_data", "file_data", "b64_json", "image_data"}
)
_FREE = frozenset({"arguments", "args", "metadata", "parameters", "input_schema", "schema"})
"""What callers and models name as they like: there are no words of the format below it."""
_URLS = frozenset({"url", "image_url", "file_url", "file_data", "data"})
_JSON_TEXTS = frozenset({"arguments", "partial_json"})
_SPEECH = frozenset(
    {"text", "content", "input", "thinking", "refusal", "reasoning_content", "reasoning"}
)
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
    "reasoning": "assistant",
}
_DEEPEST = 64
Holder = MutableMapping[str, Any] | list[Any]


@dataclass(slots=True)
class Leaf:
    """One text. `role`: system, user, assistant, tool, tools, or request for what belongs to nobody.

    `fixed`: others refer to it. `spoken`: neighbours of one role are read on as one text. `last`: it belongs to the
    last message of the user.
    """

    holder: Holder
    key: str | int
    text: str
    role: str
    fixed: bool = False
    spoken: bool = False
    last: bool = False

    def set(self, text: str) -> None:
        """Write the text anew."""
        self.text = text
        cast("dict[str | int, Any]", self.holder)[self.key] = text


@dataclass(slots=True)
class Tree:
    """A decoded request or answer with its texts; `encode` writes texts that hold JSON back after changes."""

    value: Any
    leaves: list[Leaf] = field(default_factory=list[Leaf])
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
    for name, part in value.items():
        _Walk(tree).go(value, name, part, _At(_ROLES.get(name, "request")))
    _mark_last(tree, value)
    return tree


def answer_tree(body: bytes) -> Tree:
    """Return the texts of a whole answer; raises codec.JSONError for a body that is no JSON."""
    return _of_answer(codec.decode(body))


def _of_answer(value: object, *, deltas: bool = False) -> Tree:
    tree = Tree(value)
    walk = _Walk(tree, deltas=deltas)
    fields = codec.as_object(value) or {}
    for name, part in fields.items():
        if name not in {"id", "usage"}:
            walk.go(fields, name, part, _At("assistant"))
    return tree


def event_tree(data: bytes) -> Tree:
    """Return the texts of one event of a stream, words in JSON that is not complete included; as `answer_tree`."""
    return _of_answer(codec.decode(data), deltas=True)


def write_back(tree: Tree, fields: codec.Fields) -> None:
    """Put the texts of a request back into its fields."""
    tree.seal()
    for name, value in cast("dict[str, Any]", tree.value).items():
        fields[name] = codec.raw(value)


class _At(NamedTuple):
    """Where the walk stands: whose text it is, whether names are free, how deep."""

    role: str
    free: bool = False
    depth: int = 0


class _Walk:
    def __init__(self, tree: Tree, *, deltas: bool = False) -> None:
        self._tree = tree
        self._deltas = deltas

    def go(self, holder: Holder, key: str | int, value: object, at: _At) -> None:
        """Take all texts of a value that stands in a holder under a key."""
        if isinstance(value, str):
            self._take(holder, key, value, at)
        elif at.depth >= _DEEPEST:
            return
        elif isinstance(value, list):
            items = cast("list[Any]", value)
            below = at._replace(depth=at.depth + 1)
            for place, item in enumerate(items):
                self.go(items, place, item, below)
        elif isinstance(value, dict):
            self._go_inside(key, cast("dict[str, Any]", value), at)

    def _go_inside(self, key: str | int, part: dict[str, Any], at: _At) -> None:
        free = at.free or key in _FREE or key == "input"
        role = at.role if free else _role_of(part, at.role)
        below = _At(role, free, at.depth + 1)
        for name, item in part.items():
            if free or not (name in _MEDIA or (name == "data" and _is_media(part))):
                self.go(part, name, item, below)

    def _take(self, holder: Holder, key: str | int, text: str, at: _At) -> None:
        if not text or (not at.free and (key in _WORDS or _is_data(key, text))):
            return
        if (
            key in _JSON_TEXTS
            and not self._deltas
            and at.depth < _DEEPEST
            and text[:1] in {"{", "["}
        ):
            try:
                inner: Any = codec.decode(text)
            except (codec.JSONError, RecursionError):
                pass
            else:
                self._take_json(holder, key, inner, at)
                return
        fixed = not at.free and key in _LINKS
        spoken = not (fixed or at.free) and (key in _SPEECH or isinstance(key, int))
        self._tree.leaves.append(Leaf(holder, key, text, at.role, fixed, spoken))

    def _take_json(self, holder: Holder, key: str | int, inner: object, at: _At) -> None:
        leaves = self._tree.leaves
        before = len(leaves)
        box: list[Any] = [inner]
        self.go(box, 0, inner, _At(at.role, free=True, depth=at.depth + 1))
        found = leaves[before:]
        originals = [leaf.text for leaf in found]

        def write() -> None:
            if [leaf.text for leaf in found] != originals:
                cast("dict[str | int, Any]", holder)[key] = codec.encode(box[0]).decode()

        self._tree.inside(write)


def _is_data(key: str | int, text: str) -> bool:
    """Tell whether a text is the address of a picture that holds the picture itself."""
    return key in _URLS and text.startswith("data:")


def _role_of(part: Mapping[str, Any], role: str) -> str:
    said = part.get("role")
    if isinstance(said, str):
        return "system" if said == "developer" else said
    kind = part.get("type")
    return _TYPES.get(kind, role) if isinstance(kind, str) else role


def _is_media(part: Mapping[str, Any]) -> bool:
    kind = part.get("type")
    return (
        any(name in part for name in ("media_type", "mime_type", "mimeType", "format"))
        and kind != "text"
    ) or kind in {"base64", "redacted_thinking"}


def _mark_last(tree: Tree, value: Mapping[str, Any]) -> None:
    """Mark the texts of the user's last message."""
    messages = value.get("messages", value.get("input"))
    if isinstance(messages, str):
        holders: list[object] = [value]
    elif isinstance(messages, list):
        objects = [codec.as_object(item) or {} for item in cast("list[object]", messages)]
        said = [item for item in objects if item.get("role") == "user" and not _is_result(item)]
        holders = [*said[-1:]]
    else:
        return
    inside = {id(part) for holder in holders for part in _containers(holder)}
    for leaf in tree.leaves:
        leaf.last = id(leaf.holder) in inside and leaf.role == "user" and leaf.spoken


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
