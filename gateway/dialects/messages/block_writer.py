"""One part of an answer on its way into a stream: its block begins when there is something to tell."""

from typing import Any

from gateway.core import codec
from gateway.core.answer import Cited, Delta, PartEnded, Sealed
from gateway.core.message import Part, Text, Thinking, ToolCall
from gateway.dialects.losses import Notes
from gateway.dialects.messages.answer_out import begin_call, with_seal, write_part
from gateway.dialects.messages.blocks_in import DIALECT
from gateway.dialects.messages.endings import block_events
from gateway.dialects.messages.events import event
from gateway.dialects.messages.seal import thinking_block

_DELTA = (
    b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%%d,'
    b'"delta":{"type":"%s","%s":%%s}}\n\n'
)
_TEMPLATES: dict[type[Part], bytes] = {
    Text: _DELTA % (b"text_delta", b"text"),
    Thinking: _DELTA % (b"thinking_delta", b"thinking"),
    ToolCall: _DELTA % (b"input_json_delta", b"partial_json"),
}


class BlockStream:
    """Takes the events of one part, and gives the events of its block once it is its turn.

    `is_open`: the block has begun and not ended. `ended`: all was told. `was_told`: there was a block at all.
    """

    __slots__ = (
        "_begun", "_call_id", "_index", "_notes", "_over", "_part", "_pending", "_template",
        "_texts",
        "ended", "is_open", "was_told",
    )  # fmt: skip

    def __init__(self, part: Part, call_id: str, notes: Notes) -> None:
        self.ended = False
        self.is_open = False
        self.was_told = False
        self._call_id = call_id
        self._notes = notes
        self._index = 0
        self._over = False
        self._texts: list[str] = []
        self._pending: list[dict[str, Any]] = []
        self._template: bytes | None = None
        self._part, self._begun = _apart(part)
        if self._begun:
            self._hold(self._begun)
        if isinstance(part, Text):
            for citation in part.citations:
                self.add(Cited(0, 0, citation))

    def add(self, told: Delta | Cited | Sealed | PartEnded) -> None:
        """Take what the part grew by."""
        match told:
            case Delta(text=text):
                self._hold(text)
            case Cited(citation=citation):
                if citation.origin == DIALECT:
                    self._pending.append({"type": "citations_delta", "citation": citation.value})
                else:
                    self._notes.lost("citation_dropped")
            case Sealed(signature=signature, maker=maker):
                if isinstance(self._part, Text | Thinking | ToolCall):
                    self._part = codec.replace(self._part, signature=signature, maker=maker)
            case PartEnded():
                self._over = True

    def _hold(self, text: str) -> None:
        """Keep a piece of text for its turn; blanks before the arguments of a call say nothing."""
        part = self._part
        if isinstance(part, ToolCall) and not self._texts:
            text = text if part.custom else text.lstrip()
        if not text:
            return
        self._texts.append(text)
        match part:
            case Text():
                self._pending.append({"type": "text_delta", "text": text})
            case Thinking():
                self._pending.append({"type": "thinking_delta", "thinking": text})
            case ToolCall(custom=False):
                self._pending.append({"type": "input_json_delta", "partial_json": text})
            case _:
                pass

    def grow(self, text: str) -> bytes | None:
        """Return the event of a piece of text, where the block is open and nothing waits; None where it is not."""
        template = self._template
        if template is None or not text or self._pending:
            return None
        self._texts.append(text)
        return template % (self._index, codec.encode(text))

    def take(self, index: int) -> list[bytes]:
        """Return what can be told now; `index` is the block's."""
        self._index = index
        out: list[bytes] = []
        if not isinstance(self._part, Text | Thinking | ToolCall):
            return self._take_whole()
        if not self.is_open and (self._pending or isinstance(self._part, ToolCall)):
            out.append(self._start(self._beginning()))
        out += map(self._grow, self._pending)
        self._pending.clear()
        if self._texts and self.is_open and not getattr(self._part, "custom", False):
            self._template = _TEMPLATES[type(self._part)]
        if self._over and not self.ended:
            out += self._finish()
        return out

    def _beginning(self) -> dict[str, Any]:
        part = self._part
        if isinstance(part, ToolCall):
            return begin_call(part, self._call_id)
        if isinstance(part, Thinking):
            return {"type": "thinking", "thinking": "", "signature": ""}
        block: dict[str, Any] = {"type": "text", "text": ""}
        if any(delta["type"] == "citations_delta" for delta in self._pending):
            block["citations"] = []
        return with_seal(block, part) if isinstance(part, Text) else block

    def _start(self, block: dict[str, Any]) -> bytes:
        self.is_open = self.was_told = True
        return event("content_block_start", index=self._index, content_block=block)

    def _grow(self, delta: dict[str, Any]) -> bytes:
        return event("content_block_delta", index=self._index, delta=delta)

    def _finish(self) -> list[bytes]:
        """Return the end of the block; a part that said nothing has one only for its seal."""
        out: list[bytes] = []
        part, text = self._part, "".join(self._texts)
        if isinstance(part, Thinking):
            out += self._seal(codec.replace(part, text=text))
        elif isinstance(part, Text) and part.signature and not self.was_told:
            out.append(self._start(self._beginning()))
        elif isinstance(part, ToolCall) and part.custom:
            given = codec.encode({"input": text}).decode()
            out.append(self._grow({"type": "input_json_delta", "partial_json": given}))
        elif isinstance(part, ToolCall) and not text:
            out.append(self._grow({"type": "input_json_delta", "partial_json": ""}))
        if self.is_open:
            out.append(event("content_block_stop", index=self._index))
        self.is_open = False
        self.ended = True
        self._template = None
        return out

    def _seal(self, part: Thinking) -> list[bytes]:
        if not (part.text or part.signature or part.redacted):
            return []
        block = thinking_block(part)
        if block["type"] == "redacted_thinking":
            return [] if self.is_open else [self._start(block)]
        out = [] if self.is_open else [self._start(self._beginning())]
        if block["signature"]:
            out.append(self._grow({"type": "signature_delta", "signature": block["signature"]}))
        return out

    def _take_whole(self) -> list[bytes]:
        """Return the block of a part that has no deltas."""
        if self.was_told or self.ended:
            return []
        self.ended = True
        assert self._part is not None  # noqa: S101
        block = write_part(self._part, self._call_id, self._notes)
        if block is None:
            return []
        self.was_told = True
        return block_events(self._index, block)


def _apart(part: Part) -> tuple[Part, str]:
    """Return a part without its text, and the text that it began with."""
    match part:
        case Text(text=text) | Thinking(text=text):
            return codec.replace(part, text=""), text
        case ToolCall(arguments=text):
            return codec.replace(part, arguments=""), text
        case _:
            return part, ""
