"""Writes the events of one answer as a Messages stream: one block after the other, whatever overlaps waits."""

from collections.abc import Sequence
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
    Weighed,
)
from gateway.core.message import Refusal
from gateway.core.usage import Usage
from gateway.dialects.losses import Notes
from gateway.dialects.messages.answer_out import explanation
from gateway.dialects.messages.block_writer import BlockStream
from gateway.dialects.messages.events import event
from gateway.dialects.messages.finishes import write_finish
from gateway.dialects.messages.usage import write_usage
from gateway.dialects.sides import Told

_NOWHERE = -1
_AT_THE_END = ("stop_details", "container", "context_management")


class MessagesWriter:
    """The writer of Messages streams; of several choices it tells the first.

    The message ends with the answer's own end, so that the counts are final; a refusal's words wait for it too,
    since the end may tell them better.
    """

    __slots__ = (
        "_at", "_began", "_blocks", "_choice", "_current", "_finish", "_next", "_notes", "_refusals",
        "_started", "_told", "_usage", "_waiting",
    )  # fmt: skip

    def __init__(self, told: Told, notes: Notes) -> None:
        self._told = told
        self._notes = notes
        self._began = Began()
        self._started = False
        self._usage: Usage | None = None
        self._choice: int | None = None
        self._blocks: dict[int, BlockStream] = {}
        self._waiting: list[int] = []
        self._current: BlockStream | None = None
        self._at = _NOWHERE
        self._refusals: dict[int, list[str]] = {}
        self._finish = Finished(0, "stop")
        self._next = 0

    @property
    def open_choices(self) -> Sequence[int]:
        """Return the block that is open, by its index."""
        current = self._current
        return (self._next,) if current is not None and current.is_open else ()

    def write(self, events: Sequence[Event]) -> bytes:
        """Return the bytes for these events."""
        out: list[bytes] = []
        for told in events:
            if type(told) is Delta and told.at == self._at and told.choice == self._choice:
                assert self._current is not None  # noqa: S101  whose place it is
                frame = self._current.grow(told.text)
                if frame is not None:
                    out.append(frame)
                    continue
            match told:
                case Began():
                    self._began = told
                case Counted(usage):
                    self._usage = usage
                case Ended(extra):
                    out += self._end(dict(extra))
                case _:
                    out += self._start()
                    self._take(told, out)
        if events:
            out += self._start()
        return b"".join(out)

    def _start(self) -> list[bytes]:
        if self._started:
            return []
        self._started = True
        message: dict[str, Any] = {
            "id": self._began.id or f"msg_{self._told.request_id}",
            "type": "message",
            "role": "assistant",
            "model": self._began.model or self._told.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": write_usage(self._usage),
        }
        return [event("message_start", message=message)]

    def _take(self, told: Event, out: list[bytes]) -> None:
        choice = getattr(told, "choice", 0)
        if self._choice is None:
            self._choice = choice
        if choice != self._choice:
            self._notes.lost("answer_part_dropped", f"choice {choice}")
            return
        match told:
            case PartBegan(_, at, Refusal(text)):
                self._refusals[at] = [text]
            case PartBegan(_, at, part):
                call_id = f"toolu_{self._told.request_id}_{at}"
                self._blocks[at] = BlockStream(part, call_id, self._notes)
                self._waiting.append(at)
                self._advance(out)
            case Delta(_, at, text) if at in self._refusals:
                self._refusals[at].append(text)
            case Delta(_, at) | Cited(_, at) | Sealed(_, at) | PartEnded(_, at):
                self._grow(at, told, out)
            case Finished():
                self._finish = told
            case Weighed():
                self._notes.lost("logprobs_dropped")
            case _:
                pass

    def _grow(self, at: int, told: Delta | Cited | Sealed | PartEnded, out: list[bytes]) -> None:
        block = self._blocks.get(at)
        if block is None:
            return
        block.add(told)
        if block is self._current:
            out += block.take(self._next)
            self._advance(out)

    def _advance(self, out: list[bytes]) -> None:
        """Close the block in front when it is whole, and tell what the next ones hold already."""
        while True:
            current = self._current
            if current is not None:
                if not current.ended:
                    return
                self._next += current.was_told
                self._current, self._at = None, _NOWHERE
            if not self._waiting:
                return
            self._at = self._waiting.pop(0)
            self._current = self._blocks[self._at]
            out += self._current.take(self._next)

    def _end(self, extra: dict[str, Any]) -> list[bytes]:
        """Return the end of the message; parts that nobody ended are ended here."""
        out = self._start()
        for at in list(self._blocks):
            self._grow(at, PartEnded(self._choice or 0, at), out)
        explained = explanation(extra)
        for said in ("".join(texts) for texts in self._refusals.values()):
            if said and said != explained:
                out += (
                    event(
                        "content_block_start",
                        index=self._next,
                        content_block={"type": "text", "text": ""},
                    ),
                    event(
                        "content_block_delta",
                        index=self._next,
                        delta={"type": "text_delta", "text": said},
                    ),
                    event("content_block_stop", index=self._next),
                )
                self._next += 1
        finish = self._finish
        delta: dict[str, Any] = {
            "stop_reason": write_finish(finish.finish, finish.native),
            "stop_sequence": finish.stop_sequence or None,
        }
        delta.update({key: extra[key] for key in _AT_THE_END if key in extra})
        beside = codec.as_object(extra.get("usage")) or {}
        out += (
            event("message_delta", delta=delta, usage={**beside, **write_usage(self._usage)}),
            event("message_stop"),
        )
        return out
