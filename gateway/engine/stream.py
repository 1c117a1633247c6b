"""Open answers: events watched and relayed as bytes, or plain bytes nobody looks into."""

import asyncio
import re
from collections.abc import Callable
from typing import cast

from gateway.core import clock
from gateway.core.call import Meter
from gateway.core.errors import GatewayError, UpstreamError
from gateway.core.needs import Needs
from gateway.core.reply import BeforeEnd
from gateway.core.usage import Usage
from gateway.dialects.base import Dialect, Watcher
from gateway.dialects.sse import split_events
from gateway.engine.attempt import Attempt
from gateway.engine.refusal import Refusal, refuse_in_stream
from gateway.upstream.client import Answer, Headers

EVENT_HEADERS: Headers = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)
_LINGER_S = 0.25
_MOST_DIGITS = 10
_MAX_HELD_BYTES = 33_554_432
_PASSED_HEADERS = frozenset({b"content-type", b"content-disposition"})
_NOT_ASCII = re.compile(rb"[^\t -~]")


class EventStream:
    """Server-sent events on their way from a provider to the caller."""

    __slots__ = (
        "_answer",
        "_attempt",
        "_before_end",
        "_began",
        "_failure",
        "_first",
        "_outcome",
        "_passed",
        "_raised",
        "_sink",
        "_watcher",
        "finished",
        "headers",
        "length",
        "status",
    )

    def __init__(self, answer: Answer, attempt: Attempt, watcher: Watcher) -> None:
        self.status = 200
        self.headers: Headers = EVENT_HEADERS
        self.length: int | None = None
        self.finished = False
        self._answer = answer
        self._attempt = attempt
        self._watcher = attempt.watcher = watcher
        self._first = self._began = b""
        self._failure: Refusal | None = None
        self._outcome = ""
        self._before_end: list[BeforeEnd] | None = None
        self._sink: Callable[[bytes], bool] | None = None
        self._passed: bytes | None = None
        self._raised: GatewayError | None = None

    @property
    def usage(self) -> Usage | None:
        """Return the tokens counted so far."""
        return self._watcher.usage

    def before_end(self, hook: BeforeEnd) -> None:
        """Have a hook called before the last bytes go out."""
        if self._before_end is None:
            self._before_end = []
        self._before_end.append(hook)

    async def open(self, needs: Needs) -> None:
        """Wait for the first events, so that an error in their place is still a plain answer (S-3).

        With `needs.hold` what comes before the first content is kept back too, with `needs.complete` all of it:
        whatever fails meanwhile may be tried again (K10, G-STR-8).
        """
        first = await self._pull()
        while not self.finished and (needs.complete or (needs.hold and not self._watcher.begun)):
            first += await self._pull()
            if len(first) > _MAX_HELD_BYTES:
                raise UpstreamError(
                    "upstream_invalid_response", phase="body", detail="too much to hold back"
                )
        self._first = self._began = first
        self._attempt.run.first_chunk_at = clock.monotonic()

    async def next(self) -> bytes:
        """Return the next whole events; raises UpstreamError when the stream cannot be completed."""
        if self._first or self.finished:
            data, self._first = self._first, b""
            if self.finished:
                await self._conclude()
            return data
        self._outcome = "internal"  # unless it ends by a name below
        try:
            data = await self._pull()
        except GatewayError as error:
            self._outcome = error.code
            error.open_choices = self._watcher.open_choices
            raise
        except asyncio.CancelledError:
            self._outcome = ""
            raise
        self._outcome = ""
        if self.finished:
            await self._conclude()
        return data

    async def flow(self, sink: Callable[[bytes], bool]) -> None:
        """Give plain events to `sink` in the moment they come, with no task in between.

        Returns when anything else is to be done, which `next` then does, and when `sink` returns False.
        """
        if self._first or self.finished or self._failure is not None:
            return
        self._sink = sink
        await self._answer.flow(self._take)

    def _take(self) -> bool:
        """Pass on what has come; False when whoever waits must see to an end, a failure, a cap or a slow client."""
        answer, watcher, attempt, sink = self._answer, self._watcher, self._attempt, self._sink
        pending = answer.pending
        data = pending[0] if len(pending) == 1 else b"".join(pending)
        if sink is None or (attempt.meter is not None and not self._fits(attempt.meter, data)):
            return False
        pending.clear()
        attempt.received += len(data)
        try:
            out = watcher.feed(data)
        except GatewayError as error:
            self._raised = error
            return False
        if watcher.real:
            answer.touch()
        if watcher.error is not None or watcher.done:
            self._passed = out
            return False
        return not out or sink(out)

    async def _conclude(self) -> None:
        hooks, self._before_end = self._before_end, None
        for hook in hooks or ():
            await hook()

    async def _pull(self) -> bytes:
        if self._failure is not None:
            raise self._failure
        if self._raised is not None:
            raise self._raised
        answer, watcher, attempt = self._answer, self._watcher, self._attempt
        if self._passed is not None:
            return self._last(self._passed)
        meter, why = attempt.meter, ""
        while True:
            data = await answer.read()
            if not data:
                rest = watcher.end(answer.complete)
                if watcher.error is not None:
                    return self._break(rest)
                self._finish()
                return rest
            if meter is None or self._fits(meter, data):
                attempt.received += len(data)
                out = watcher.feed(data)
            else:
                out, why = await self._feed_slowly(meter, data)
            if watcher.real:
                answer.touch()
            if watcher.error is not None or watcher.done:
                return self._last(out)
            if why:
                return out + self._cut_short(why, out)
            if out:
                return out

    def _last(self, out: bytes) -> bytes:
        """End with what the events said: an error, or that all is told."""
        self._passed = None
        if self._watcher.error is not None:
            return self._break(out)
        self._finish()
        return out

    def _fits(self, meter: Meter, data: bytes) -> bool:
        """Tell whether the meter need not be asked, however many events these bytes bring."""
        return (
            self._watcher.events + data.count(b"data") < meter.at
            and self._attempt.received + len(data) < meter.at_bytes
        )

    async def _feed_slowly(self, meter: Meter, data: bytes) -> tuple[bytes, str]:
        """Feed event by event up to where the meter ends the answer; returns what may go out, and why it ends."""
        attempt, watcher = self._attempt, self._watcher
        out: list[bytes] = []
        for piece in split_events(data):
            attempt.received += len(piece)
            out.append(watcher.feed(piece))
            if watcher.real:
                self._answer.touch()
            if watcher.done or watcher.error is not None:
                continue  # what comes behind is counted there
            if watcher.events >= meter.at or attempt.received >= meter.at_bytes:
                why = await meter.more(watcher.events, attempt.received)
                if why:
                    return b"".join(out), why
        return b"".join(out), ""

    def _cut_short(self, why: str, began: bytes) -> bytes:
        """End an answer that may not go on: complete for the caller, with the reason that it is no longer."""
        attempt, watcher = self._attempt, self._watcher
        attempt.run.warn(why)
        self.finished = True
        attempt.end("budget_exceeded")
        self._answer.abort()
        dialect = cast("Dialect", attempt.run.dialect)
        return dialect.cut_short(
            attempt.run.endpoint, self._began or began, watcher.open_choices, why
        )

    def _break(self, out: bytes) -> bytes:
        assert self._watcher.error is not None  # noqa: S101  the caller looked
        attempt = self._attempt
        self._failure = refuse_in_stream(
            attempt.target.account,
            self._watcher.error,
            endpoint=attempt.run.endpoint,
            side=attempt.side,
        )
        self._answer.abort()
        if not out:
            raise self._failure
        return out

    def _finish(self) -> None:
        self.finished = True
        attempt = self._attempt
        attempt.run.usage = attempt.usage = self._watcher.usage
        attempt.end("ok")

    async def close(self) -> None:
        """Give the connection back; whatever is still to come is read for a moment, then cut."""
        attempt, watcher = self._attempt, self._watcher
        if watcher.broken:
            attempt.note_broken(watcher.broken)
        if not self.finished:
            attempt.run.usage = attempt.usage = watcher.usage
            _end_early(attempt, self._outcome)
            self._answer.abort()
            return
        await _linger(self._answer, watcher)
        if watcher.surplus:
            attempt.run.warn(f"{watcher.surplus} events after the end of the stream were dropped")


class ByteStream:
    """An answer nobody looks into: audio, files."""

    __slots__ = (
        "_answer",
        "_attempt",
        "_before_end",
        "_outcome",
        "finished",
        "headers",
        "length",
        "status",
        "usage",
    )

    def __init__(self, answer: Answer, attempt: Attempt) -> None:
        self.status = answer.status
        self.headers: Headers = tuple(
            (name, _NOT_ASCII.sub(b"_", value))
            for name, value in answer.headers
            if name in _PASSED_HEADERS
        )
        self.length: int | None = answer_length(answer)
        self.finished = False
        self.usage: Usage | None = None
        self._answer = answer
        self._attempt = attempt
        self._outcome = ""
        self._before_end: list[BeforeEnd] = []

    def before_end(self, hook: BeforeEnd) -> None:
        """Have a hook called when the answer is complete."""
        self._before_end.append(hook)

    async def next(self) -> bytes:
        """Return the next bytes; raises UpstreamError when the answer was cut."""
        self._outcome = "internal"  # unless it ends by a name below
        try:
            data = await self._answer.read()
        except GatewayError as error:
            self._outcome = error.code
            raise
        except asyncio.CancelledError:
            self._outcome = ""
            raise
        self._outcome = ""
        self._answer.touch()
        if not data:
            self.finished = True
            self._attempt.end("ok")
            for hook in self._before_end:
                await hook()
        return data

    async def close(self) -> None:
        """Give the connection back, or close it when the answer was not read to its end."""
        if not self.finished:
            _end_early(self._attempt, self._outcome)
            self._answer.abort()


def answer_length(answer: Answer) -> int | None:
    """Return the length that the head of an answer tells."""
    length = answer.header(b"content-length")
    return int(length) if length is not None and length.isdigit() else None


def counted_input(answer: Answer) -> int | None:
    """Return the tokens of the input that the head of an answer tells (Bedrock); None where it does not."""
    count = answer.header(b"x-amzn-bedrock-input-token-count")
    return (
        int(count) if count is not None and len(count) < _MOST_DIGITS and count.isdigit() else None
    )


def _end_early(attempt: Attempt, outcome: str) -> None:
    if outcome:
        attempt.end(outcome)
    else:
        attempt.give_up()


async def _linger(answer: Answer, watcher: Watcher) -> None:
    """Read past the terminator so that the connection can serve again; a slow end is cut instead."""
    try:
        async with asyncio.timeout(_LINGER_S):
            while data := await answer.read():
                watcher.feed(data)
    except (TimeoutError, UpstreamError):
        answer.abort()
