"""Reads bare events of a Messages stream; what carries them is taken off before (server-sent events, frames)."""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.core import codec
from gateway.core.answer import (
    Began,
    Cited,
    Counted,
    Delta,
    Ended,
    Event,
    Finished,
    PartBegan,
    PartEnded,
    Sealed,
)
from gateway.core.errors import InputError
from gateway.core.message import Opaque, Part, Refusal, Text, Thinking, ToolCall
from gateway.dialects.base import ProviderError, Redactor
from gateway.dialects.messages.answer_in import bag_of, refusal_words
from gateway.dialects.messages.blocks_in import read_block, read_citation
from gateway.dialects.messages.errors import read_error
from gateway.dialects.messages.events import BROKEN
from gateway.dialects.messages.finishes import read_finish
from gateway.dialects.messages.seal import OWN
from gateway.dialects.messages.usage import Counts
from gateway.dialects.unknown import first_unknown, unknown

_LIVE = frozenset({"text", "thinking", "redacted_thinking", "tool_use"})
"""Kinds of blocks that are told as they come; all others are told once they are whole."""


_DELTAS = frozenset(
    {"text_delta", "thinking_delta", "input_json_delta", "signature_delta", "citations_delta"}
)
_BLANK: dict[str, dict[str, Any]] = {"text": {"text": ""}, "thinking": {"thinking": ""}}
"""What a block begins with where the provider leaves it out."""


class _Piece(codec.Struct):
    """A delta of a known kind."""

    type: str = ""
    text: str = ""
    thinking: str = ""
    partial_json: str = ""
    signature: str = ""


class _Told(codec.Struct):
    type: str = ""
    index: int = 0
    delta: _Piece | None = None


class _Any(codec.Struct):
    type: str = ""
    index: int = -1
    message: Any = None
    content_block: Any = None
    delta: Any = None
    usage: Any = None
    error: Any = None


_told = codec.Decoder(_Told).decode
_any = codec.Decoder(_Any).decode


class _Block:
    """One block. `part` is None while the block waits to be whole; `texts` are its joined deltas."""

    __slots__ = ("at", "part", "texts", "unknown", "value")

    def __init__(self, at: int, value: dict[str, Any], part: Part | None) -> None:
        self.at = at
        self.value = value
        self.part = part
        self.texts: list[str] = []
        self.unknown: list[Opaque] = []


class EventReader:
    """Reads the events of one answer, one JSON text each.

    `done` once `message_stop` was seen. `broken` counts what could not be read. `real` is False for a ping.
    """

    __slots__ = (
        "_at",
        "_bag",
        "_began",
        "_blocks",
        "_counts",
        "_finished",
        "_parts",
        "_secrets",
        "broken",
        "done",
        "error",
        "real",
    )  # fmt: skip

    def __init__(self, secrets: Redactor) -> None:
        self.error: ProviderError | None = None
        self.broken = 0
        self.done = False
        self.real = False
        self._secrets = secrets
        self._counts = Counts()
        self._began = False
        self._finished = False
        self._at = 0
        self._blocks: dict[int, _Block] = {}
        self._parts: list[Part] = []
        self._bag: dict[str, Any] = {}

    def take(self, data: bytes) -> list[Event]:
        """Return what one event tells; nothing more is told after an error or the end."""
        self.real = True
        try:
            told = _told(data)
        except BROKEN:
            return self._take_odd(data)
        piece = told.delta
        if told.type == "content_block_delta" and piece is not None:
            block = self._blocks.get(told.index)
            if block is not None and block.part is not None:
                return self._grow(block, piece, data)
        return self._take_odd(data)

    def _grow(self, block: _Block, piece: _Piece, data: bytes) -> list[Event]:
        """Return what a delta adds to a part that is being told."""
        kind, part = piece.type, block.part
        text = ""
        match kind:
            case "text_delta" if isinstance(part, Text):
                text = piece.text
            case "thinking_delta" if isinstance(part, Thinking):
                text = piece.thinking
            case "input_json_delta" if isinstance(part, ToolCall):
                text = piece.partial_json
                block.texts.append(text)
            case "signature_delta" if isinstance(part, Thinking):
                return [Sealed(0, block.at, piece.signature, OWN)] if piece.signature else []
            case "citations_delta" if isinstance(part, Text):
                citation = _citation_of(data)
                if citation is not None:
                    return [Cited(0, block.at, read_citation(citation))]
                self.broken += 1
            case _ if kind in _DELTAS:
                self.broken += 1
            case _:
                block.unknown.append(unknown(kind))
        return [Delta(0, block.at, text)] if text else []

    def _take_odd(self, data: bytes) -> list[Event]:
        try:
            told = _any(data)
        except BROKEN:
            self.broken += 1
            return []
        if told.type == "error" or told.error:
            self.error = read_error(data, self._secrets)
            return []
        match told.type:
            case "ping":
                self.real = False
                return []
            case "message_start":
                return self._begin(codec.as_object(told.message) or {})
            case "content_block_start":
                return [*self._begin({}), *self._open(told.index, told.content_block)]
            case "content_block_delta":
                self._merge(told)
                return []
            case "content_block_stop":
                block = self._blocks.pop(told.index, None)
                return self._close(block) if block is not None else []
            case "message_delta":
                return [*self._begin({}), *self._note(told)]
            case "message_stop":
                return self._end()
            case _:
                return self._pass_over(told.type, data)

    def _pass_over(self, kind: str, data: bytes) -> list[Event]:
        """Return what an event of another kind tells: that there was one, where it holds something."""
        if self._finished or not self._began or not kind:
            return []
        holds = first_unknown(codec.as_object(codec.decode(data)) or {}, ("type",))
        return self._tell([unknown(kind)]) if holds else []

    def _begin(self, message: Mapping[str, Any]) -> list[Event]:
        """Return the beginning of the answer; once, also where the provider leaves it out."""
        if self._began:
            return []
        self._began = True
        id_, model = message.get("id"), message.get("model")
        began = Began(id_ if isinstance(id_, str) else "", model if isinstance(model, str) else "")
        self._bag = bag_of(message, message.get("usage"))
        return [began, *self._count(message.get("usage"))]

    def _count(self, usage: object) -> list[Event]:
        if codec.as_object(usage) is None:
            return []
        self._counts.take(usage)
        total = self._counts.total()
        return [Counted(total)] if total is not None else []

    def _open(self, index: int, value: object) -> list[Event]:
        block = codec.as_object(value) or {}
        kind = block.get("type")
        if not isinstance(kind, str) or index in self._blocks or self._finished:
            self.broken += 1
            return []
        block = {**_BLANK.get(kind, {}), **block}
        at, self._at = self._at, self._at + 1
        if kind not in _LIVE:
            self._blocks[index] = _Block(at, block, None)
            return []
        given = block.get("input") if kind == "tool_use" else None
        try:
            part = read_block({**block, "input": {}} if given else block, f"content.{index}")
        except InputError:
            self.broken += 1
            self._at = at
            return []
        self._blocks[index] = _Block(at, block, part)
        return [PartBegan(0, at, part)]

    def _merge(self, told: _Any) -> None:
        """Add a delta to a block that waits to be whole: texts are joined, all else is replaced."""
        block = self._blocks.get(told.index)
        delta = codec.as_object(told.delta)
        if block is None or delta is None or block.part is not None:
            self.broken += 1
            return
        if delta.get("type") == "input_json_delta":
            block.texts.append(str(delta.get("partial_json") or ""))
            return
        for key, value in delta.items():
            before = block.value.get(key)
            if key != "type":
                joins = isinstance(before, str) and isinstance(value, str)
                block.value[key] = f"{before}{value}" if joins else value

    def _close(self, block: _Block) -> list[Event]:
        """Return the end of a part; one that waited is told whole."""
        text = "".join(block.texts)
        part, at = block.part, block.at
        if part is None:
            if text.strip():
                try:
                    block.value["input"] = codec.decode(text)
                except BROKEN:
                    block.value["input"] = text
            return self._whole(block)
        if not isinstance(part, ToolCall):
            return [PartEnded(0, at), *self._tell(block.unknown)]
        told: list[Event] = []
        given = block.value.get("input")
        if not text and given:
            text = codec.encode(given).decode()
            told.append(Delta(0, at, text))
        self._parts.append(codec.replace(part, arguments=text))
        return [*told, PartEnded(0, at), *self._tell(block.unknown)]

    def _tell(self, parts: Sequence[Part]) -> list[Event]:
        """Return parts that are whole as they stand, behind all that has begun."""
        told: list[Event] = []
        for part in parts:
            told += (PartBegan(0, self._at, part), PartEnded(0, self._at))
            self._at += 1
        return told

    def _whole(self, block: _Block) -> list[Event]:
        try:
            part = read_block(block.value, "content")
        except InputError:
            self.broken += 1
            return []
        self._parts.append(part)
        return [PartBegan(0, block.at, part), PartEnded(0, block.at)]

    def _note(self, told: _Any) -> list[Event]:
        """Return what the end of the message tells: counts, and once why it ended."""
        delta = codec.as_object(told.delta) or {}
        bag = bag_of({k: v for k, v in delta.items() if k != "type"}, told.usage)
        usage = {**self._bag.get("usage", {}), **bag.get("usage", {})}
        self._bag = {**self._bag, **bag, **({"usage": usage} if usage else {})}
        native = delta.get("stop_reason")
        counted = self._count(told.usage)
        if not isinstance(native, str) or self._finished:
            return counted
        self._finished = True
        ended = [event for block in self._blocks.values() for event in self._close(block)]
        self._blocks.clear()
        finish = read_finish(native, self._parts)
        words = refusal_words(finish, self._bag)
        if words:
            ended += (PartBegan(0, self._at, Refusal(words)), PartEnded(0, self._at))
        stop = delta.get("stop_sequence")
        ended.append(Finished(0, finish, native, stop if isinstance(stop, str) else ""))
        return [*ended, *counted]

    def _end(self) -> list[Event]:
        """Return the end; one without a reason before it is none."""
        if not self._finished:
            self.broken += 1
            return []
        self.done = True
        return [Ended(self._bag)]


def _citation_of(data: bytes) -> dict[str, Any] | None:
    try:
        delta = codec.as_object(_any(data).delta) or {}
    except BROKEN:
        return None
    return codec.as_object(delta.get("citation"))
