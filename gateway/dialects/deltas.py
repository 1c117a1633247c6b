"""What the events of callers' streams say, piece by piece, and events written anew where one was changed (K26)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from gateway.core import codec
from gateway.dialects.leaves import Leaf, Tree, event_tree
from gateway.dialects.sse import frame, parse_event, split_events

Channel = tuple[object, ...]
"""Pieces of one channel follow each other to one text."""
OTHER = "other"
"""The format of event streams that no dialect watches: those of sounds and pictures."""
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
    """One event. `closes` are the channels that it ends, by their beginnings; `changed` after a piece was.

    `unread`: it has data that could not be looked at.
    """

    raw: bytes
    name: bytes = b""
    tree: Tree | None = None
    pieces: list[Piece] = field(default_factory=list[Piece])
    closes: Sequence[Channel] = ()
    changed: bool = False
    unread: bool = False

    def encode(self) -> bytes:
        """Return the event: as it came, or anew where it was changed."""
        if not self.changed or self.tree is None:
            return self.raw
        self.tree.seal()
        forget_logprobs(self.tree.value)
        return frame(codec.encode(self.tree.value), self.name)


def frames(dialect: str, data: bytes) -> list[Frame]:
    """Return whole events of a caller's format with what they say."""
    return [_read(dialect, raw) for raw in split_events(data)]


def forget_logprobs(value: object) -> None:
    """Take out the tokens of texts that were changed: they say what was taken out of these."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        for name, part in fields.items():
            if name == "logprobs":
                fields[name] = [] if isinstance(part, list) else None
            else:
                forget_logprobs(part)
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            forget_logprobs(item)


def _read(dialect: str, raw: bytes) -> Frame:
    name, data = parse_event(raw)
    if data is None or data.strip() == _DONE:
        return Frame(raw, closes=(_ALL,) if data is not None else ())
    try:
        tree = event_tree(data)
    except (codec.JSONError, RecursionError, UnicodeDecodeError):
        return Frame(raw, name, unread=True)
    value = codec.as_object(tree.value)
    if value is None:
        return Frame(raw, name, unread=True)
    channels: _Channels = {}
    closes: list[Channel] = []
    _KINDS[dialect](value, channels, closes)
    pieces: list[Piece] = []
    for leaf in tree.leaves:
        channel = None if leaf.fixed else channels.get((id(leaf.holder), leaf.key))
        pieces.append(Piece(leaf, channel, channel is not None and channel[-1] == "json"))
    return Frame(raw, name, tree, pieces, tuple(closes), unread=tree.unread)


_Channels = dict[tuple[int, object], Channel]


def _chat(value: Mapping[str, Any], channels: _Channels, closes: list[Channel]) -> None:
    for choice in _objects(value.get("choices")):
        index = choice.get("index", 0)
        delta = codec.as_object(choice.get("delta"))
        if delta is not None:
            _grow(delta, (index,), channels)
        elif isinstance(choice.get("text"), str):
            channels[(id(choice), "text")] = (index, "text")
        if choice.get("finish_reason") is not None:
            closes.append((index,))


def _grow(part: Mapping[str, Any], place: Channel, channels: _Channels) -> None:
    """Take every text of a delta as one that grows, whatever it is called; items of lists by their own `index`."""
    for name, item in part.items():
        if isinstance(item, str):
            kind = "json" if name == "arguments" else "text"
            channels[(id(part), name)] = (*place, name, kind)
        elif isinstance(item, dict):
            _grow(cast("dict[str, Any]", item), (*place, name), channels)
        elif isinstance(item, list):
            for number, inner in enumerate(_objects(cast("object", item))):
                _grow(inner, (*place, name, inner.get("index", number)), channels)


def _messages(value: Mapping[str, Any], channels: _Channels, closes: list[Channel]) -> None:
    index = value.get("index", 0)
    kind = value.get("type")
    if kind in {"content_block_delta", "content_block_start"}:
        part = codec.as_object(value.get("delta", value.get("content_block"))) or {}
        for name, item in part.items():
            if isinstance(item, str):
                ends = "json" if name == "partial_json" else "text"
                channels[(id(part), name)] = (index, name, ends)
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


def _other(value: Mapping[str, Any], channels: _Channels, closes: list[Channel]) -> None:
    del closes
    channels[(id(value), "delta")] = ("delta", "text")


_KINDS: dict[str, Callable[[Mapping[str, Any], _Channels, list[Channel]], None]] = {
    "openai_chat": _chat,
    "anthropic_messages": _messages,
    "openai_responses": _responses,
    OTHER: _other,
}


def _objects(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, list):
        for item in cast("list[object]", value):
            found = codec.as_object(item)
            if found is not None:
                yield found
