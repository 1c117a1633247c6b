"""What the events of callers' streams say, piece by piece, and events written anew where one was changed (K26)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from gateway.core import codec
from gateway.dialects.leaves import Leaf, Tree, event_tree
from gateway.dialects.sse import frame, parse_event, split_events

Channel = tuple[object, ...]
"""Pieces of one channel follow each other to one text."""
_TEXTS = ("content", "refusal", "reasoning_content", "reasoning", "text")
_DONE = b"[DONE]"
_ALL: Channel = ()


@dataclass(slots=True)
class Piece:
    """A piece of a text: `is_json` where that is JSON in the making. `channel` None: it is whole as it stands."""

    leaf: Leaf
    channel: Channel | None
    is_json: bool = False


@dataclass(slots=True)
class Frame:
    """One event. `closes` are the channels that it ends, by their beginnings; `changed` after a piece was."""

    raw: bytes
    name: bytes = b""
    tree: Tree | None = None
    pieces: list[Piece] = field(default_factory=list[Piece])
    closes: Sequence[Channel] = ()
    changed: bool = False

    def encode(self) -> bytes:
        """Return the event: as it came, or anew where it was changed."""
        if not self.changed or self.tree is None:
            return self.raw
        self.tree.seal()
        return frame(codec.encode(self.tree.value), self.name)


def frames(dialect: str, data: bytes) -> list[Frame]:
    """Return whole events of a caller's format with what they say."""
    return [_read(dialect, raw) for raw in split_events(data)]


def _read(dialect: str, raw: bytes) -> Frame:
    name, data = parse_event(raw)
    if data is None or data.strip() == _DONE:
        return Frame(raw, closes=(_ALL,) if data is not None else ())
    try:
        tree = event_tree(data)
    except (codec.JSONError, RecursionError):
        return Frame(raw, name)
    value = codec.as_object(tree.value)
    if value is None:
        return Frame(raw, name)
    channels: dict[tuple[int, object], Channel] = {}
    closes: list[Channel] = []
    _KINDS[dialect](value, channels, closes)
    pieces = [
        Piece(leaf, channel, bool(channel) and channel[-1] == "json")
        for leaf in tree.leaves
        for channel in (channels.get((id(leaf.holder), leaf.key)),)
    ]
    return Frame(raw, name, tree, pieces, tuple(closes))


_Channels = dict[tuple[int, object], Channel]


def _chat(value: Mapping[str, Any], channels: _Channels, closes: list[Channel]) -> None:
    for choice in _objects(value.get("choices")):
        index = choice.get("index", 0)
        delta = codec.as_object(choice.get("delta")) or choice
        for name in _TEXTS:
            channels[(id(delta), name)] = (index, name)
        for detail in _objects(delta.get("reasoning_details")):
            channels[(id(detail), "text")] = (index, "details")
        for call in _objects(delta.get("tool_calls")):
            inner = codec.as_object(call.get("function")) or {}
            channels[(id(inner), "arguments")] = (index, "call", call.get("index", 0), "json")
            custom = codec.as_object(call.get("custom")) or {}
            channels[(id(custom), "input")] = (index, "call", call.get("index", 0), "text")
        old = codec.as_object(delta.get("function_call"))
        if old is not None:
            channels[(id(old), "arguments")] = (index, "function", "json")
        if choice.get("finish_reason") is not None:
            closes.append((index,))


def _messages(value: Mapping[str, Any], channels: _Channels, closes: list[Channel]) -> None:
    index = value.get("index", 0)
    delta = codec.as_object(value.get("delta"))
    kind = value.get("type")
    if kind == "content_block_delta" and delta is not None:
        channels[(id(delta), "text")] = (index, "text")
        channels[(id(delta), "thinking")] = (index, "thinking")
        channels[(id(delta), "partial_json")] = (index, "json")
    elif kind == "content_block_stop":
        closes.append((index,))
    elif kind == "message_stop":
        closes.append(_ALL)


_PLACES = ("output_index", "content_index", "summary_index")


def _responses(value: Mapping[str, Any], channels: _Channels, closes: list[Channel]) -> None:
    kind = str(value.get("type", ""))
    place = tuple(value.get(name) for name in _PLACES)
    what, _, step = kind.rpartition(".")
    is_json = what.endswith("arguments")
    channel = (*place, what, "json" if is_json else "text")
    if step == "delta":
        channels[(id(value), "delta")] = channel
    elif step == "done":
        closes.append(channel)
    elif kind in {"response.completed", "response.incomplete", "response.failed"}:
        closes.append(_ALL)


_KINDS: dict[str, Callable[[Mapping[str, Any], _Channels, list[Channel]], None]] = {
    "openai_chat": _chat,
    "anthropic_messages": _messages,
    "openai_responses": _responses,
}


def _objects(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, list):
        for item in cast("list[object]", value):
            found = codec.as_object(item)
            if found is not None:
                yield found
