"""Kept answers, written for who asks now: plain or as a stream, in the caller's own format (W-CACHE-4)."""

from collections.abc import Iterator, Sequence

from gateway.core import clock, codec
from gateway.core.answer import (
    Answer,
    Began,
    Counted,
    Delta,
    Ended,
    Event,
    Finished,
    PartBegan,
    PartEnded,
    Weighed,
)
from gateway.core.call import Call
from gateway.core.message import Part, Refusal, Text, Thinking
from gateway.core.reply import BeforeEnd, Headers, Whole
from gateway.core.usage import Usage
from gateway.dialects.losses import Notes
from gateway.dialects.registry import CALLERS
from gateway.dialects.sides import StreamWriter, Told
from gateway.middleware.semantic_cache import stored
from gateway.middleware.semantic_cache.known import Reading
from gateway.middleware.semantic_cache.written import Written, find_gaps

JSON: Headers = ((b"content-type", b"application/json"),)
EVENTS: Headers = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)
_STEADY = frozenset({"chat", "messages"})
"""Whose writers go by what they are told alone, and look at no clock."""
_PIECE = 60
_BLANKS = 20
_AT_ONCE_BYTES = 16_384


def told(call: Call, reading: Reading | None = None) -> Told:
    """Return what the writers of this run's format must know; raises InputError for a request they cannot read."""
    run = call.run
    prompt = reading.prompt if reading is not None else None
    if prompt is None:
        fields = call.original.fields or {}
        prompt = CALLERS[run.dialect_name].read_request(fields, Notes())
        if reading is not None:
            reading.prompt = prompt
    return Told(run.request_id, run.asked, int(clock.wall()), prompt)


def whole(call: Call, answer: Answer, reading: Reading | None = None) -> Whole:
    """Write a kept answer in one piece."""
    side = CALLERS[call.run.dialect_name]
    return Whole(200, JSON, side.write_answer(answer, told(call, reading), Notes()))


def written(call: Call, kept: bytes, reading: Reading) -> Written | None:
    """Return a kept answer as it is written for this same request whenever it comes; None where that changes."""
    if call.run.endpoint not in _STEADY:
        return None
    side = CALLERS[call.run.dialect_name]
    said = told(call, reading)

    def write(request_id: str, created: int) -> bytes:
        about = Told(request_id, said.model, created, said.prompt)
        return side.write_answer(stored.decode(kept, created), about, Notes())

    return find_gaps(kept, stored.text_length(stored.decode(kept, 0)), write)


def pieces(answer: Answer) -> Iterator[Sequence[Event]]:
    """Yield the events of a kept answer, its texts in pieces of 20 to 80 characters."""
    yield (Began(answer.id, answer.model, answer.created),)
    for choice in answer.choices:
        for at, part in enumerate(choice.parts):
            yield from _part(choice.index, at, part)
        end = Finished(choice.index, choice.finish, choice.native, choice.stop_sequence)
        yield (Weighed(choice.index, choice.logprobs), end) if choice.logprobs else (end,)
    ends: list[Event] = [Ended(answer.extra)]
    if answer.usage is not None:
        ends.insert(0, Counted(answer.usage))
    yield ends


def neutral(events: Sequence[Event]) -> list[Event]:
    """Return events without what belongs to one request: its id and its usage, which is zero for who follows."""
    out: list[Event] = []
    for event in events:
        match event:
            case Began():
                out.append(Began("", event.model, 0))
            case Counted():
                pass
            case Ended():
                out += (Counted(stored.ZERO), event)
            case _:
                out.append(event)
    return out


def _part(choice: int, at: int, part: Part) -> Iterator[Sequence[Event]]:
    match part:
        case Text(text=text):
            empty: Part = codec.replace(part, text="")
        case Refusal(text=text):
            empty = Refusal("")
        case Thinking(text=text, redacted="") if len(part.summary) < 2:
            empty = codec.replace(part, text="", summary=("",) if part.summary else ())
        case _:
            yield (PartBegan(choice, at, part), PartEnded(choice, at))
            return
    yield (PartBegan(choice, at, empty),)
    for piece in cut(text):
        yield (Delta(choice, at, piece),)
    yield (PartEnded(choice, at),)


def cut(text: str) -> Iterator[str]:
    """Cut a text into pieces of 20 to 80 characters, at blanks where there are any."""
    at = 0
    while len(text) - at > _PIECE + _BLANKS:
        end = text.find(" ", at + _PIECE - _BLANKS, at + _PIECE + _BLANKS)
        end = at + _PIECE if end < 0 else end
        yield text[at:end]
        at = end
    if at < len(text):
        yield text[at:]


class Replayed:
    """A kept answer as a stream, without pauses."""

    __slots__ = ("_events", "_hooks", "_writer", "finished", "headers", "length", "status", "usage")

    def __init__(self, call: Call, answer: Answer, reading: Reading | None = None) -> None:
        self.status = 200
        self.headers = EVENTS
        self.length: int | None = None
        self.finished = False
        self.usage: Usage | None = answer.usage
        side = CALLERS[call.run.dialect_name]
        self._writer: StreamWriter = side.writer(told(call, reading), Notes())
        self._events = pieces(answer)
        self._hooks: list[BeforeEnd] = []

    def before_end(self, hook: BeforeEnd) -> None:
        """Have a hook called before the last bytes go out."""
        self._hooks.append(hook)

    async def next(self) -> bytes:
        """Return the next whole events, some kilobytes of them at once."""
        out: list[bytes] = []
        size = 0
        for events in self._events:
            data = self._writer.write(events)
            out.append(data)
            size += len(data)
            if size >= _AT_ONCE_BYTES:
                return b"".join(out)
        self.finished = True
        for hook in self._hooks:
            await hook()
        return b"".join(out)

    async def close(self) -> None:
        """Hold nothing."""
