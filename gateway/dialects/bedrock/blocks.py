"""The open blocks of a stream of Converse, which begin without a word, and the parts they become."""

from dataclasses import dataclass, field
from typing import Any

from gateway.core.answer import Cited, Delta, Event, PartBegan, PartEnded, Sealed
from gateway.core.errors import UpstreamError
from gateway.core.message import Opaque, Part, Text, Thinking, ToolCall
from gateway.dialects.bedrock import wire
from gateway.dialects.bedrock.answers import (
    NAME,
    SEALER,
    SERVER_TOOL,
    picture_of,
    read_citation,
    redacted,
)
from gateway.dialects.unknown import unknown


@dataclass(slots=True)
class _Open:
    """One block. `part` is None while nothing was told of it; `held` collects what is told only when it ends."""

    at: int = -1
    part: Part | None = None
    kind: str = ""
    head: dict[str, Any] = field(default_factory=dict[str, Any])
    held: list[Any] = field(default_factory=list[Any])
    signature: str = ""
    odd: list[str] = field(default_factory=list[str])


class Blocks:
    """Places the pieces of blocks by their index, and counts the parts they become from 0."""

    __slots__ = ("_next", "_open", "has_calls")

    def __init__(self) -> None:
        self._open: dict[int, _Open] = {}
        self._next = 0
        self.has_calls = False

    def start(self, index: int, start: wire.BlockStart, events: list[Event]) -> bool:
        """Begin a block of which the provider says what it is; tell whether that is known here."""
        self.stop(index, events)
        block = self._open[index] = _Open()
        call = start.tool_use
        if call is not None and call.type != SERVER_TOOL:
            self._begin(block, ToolCall(call.tool_use_id, call.name), events)
        elif call is not None:
            block.kind = "toolUse"
            block.head = {"toolUseId": call.tool_use_id, "name": call.name, "type": call.type}
        elif start.tool_result is not None:
            block.kind, block.head = "toolResult", dict(start.tool_result)
        elif start.image is not None:
            block.kind, block.head = "image", dict(start.image)
        else:
            return False
        return True

    def grow(self, index: int, delta: wire.BlockDelta, events: list[Event]) -> bool:
        """Add a piece; a text that stays empty never becomes a part (B102). Tell whether its kind is known."""
        block = self._open.get(index)
        if block is None:
            block = self._open[index] = _Open()
        if delta.text is not None:
            if delta.text:
                self._add(block, Text(""), delta.text, events)
        elif delta.tool_use is not None:
            self._add_input(block, delta.tool_use.input, events)
        elif delta.reasoning_content is not None:
            self._add_reasoning(block, delta.reasoning_content, events)
        elif delta.citation:
            self._begin(block, Text(""), events)
            events.append(Cited(0, block.at, read_citation(delta.citation)))
        elif delta.tool_result is not None:
            block.held.extend(delta.tool_result)
        elif delta.image is not None:
            block.kind = block.kind or "image"
            block.head.update(delta.image)
        else:
            return False
        return True

    def odd(self, index: int, kind: str) -> None:
        """Take note of something in a block that is not known here: it is told when the block ends."""
        block = self._open.get(index)
        if block is None:
            block = self._open[index] = _Open()
        if kind and kind not in block.odd:
            block.odd.append(kind)

    def tell(self, part: Part, events: list[Event]) -> None:
        """Tell a part that is whole as it stands."""
        events += (PartBegan(0, self._next, part), PartEnded(0, self._next))
        self._next += 1

    def stop(self, index: int, events: list[Event]) -> None:
        """End a block; no effect on one that never began."""
        block = self._open.pop(index, None)
        if block is None:
            return
        if block.kind:
            self._begin(block, _held_part(block), events)
        if block.part is not None:
            if block.signature:
                events.append(Sealed(0, block.at, block.signature, SEALER))
            events.append(PartEnded(0, block.at))
            self.has_calls = self.has_calls or isinstance(block.part, ToolCall)
        for kind in block.odd:
            self.tell(unknown(kind), events)

    def stop_all(self, events: list[Event]) -> None:
        """End what the provider left open."""
        for index in tuple(self._open):
            self.stop(index, events)

    def _begin(self, block: _Open, part: Part, events: list[Event]) -> None:
        if block.part is not None:
            return
        block.part = part
        block.at = self._next
        self._next += 1
        events.append(PartBegan(0, block.at, part))

    def _add(self, block: _Open, part: Part, text: str, events: list[Event]) -> None:
        self._begin(block, part, events)
        if type(block.part) is not type(part):
            raise _misplaced()
        events.append(Delta(0, block.at, text))

    def _add_input(self, block: _Open, text: str, events: list[Event]) -> None:
        if block.kind == "toolUse":
            block.held.append(text)
            return
        if not isinstance(block.part, ToolCall):
            raise _misplaced()
        if text:
            events.append(Delta(0, block.at, text))

    def _add_reasoning(self, block: _Open, delta: wire.ReasoningDelta, events: list[Event]) -> None:
        if delta.redacted_content is not None:
            block.kind = "redacted"
            block.held.append(delta.redacted_content)
        if delta.text:
            self._add(block, Thinking(), delta.text, events)
        if delta.signature:
            self._begin(block, Thinking(), events)
            block.signature += delta.signature


def _held_part(block: _Open) -> Part:
    if block.kind == "redacted":
        return redacted(tuple(block.held))
    if block.kind == "image":
        return picture_of(block.head) or Opaque(NAME, "image", {"image": block.head})
    member = "input" if block.kind == "toolUse" else "content"
    value = "".join(block.held) if block.kind == "toolUse" else block.held
    return Opaque(NAME, block.kind, {block.kind: {**block.head, member: value}})


def _misplaced() -> UpstreamError:
    return UpstreamError(
        "upstream_invalid_response",
        phase="body",
        detail="a piece of a block belongs to no block of its kind",
    )
