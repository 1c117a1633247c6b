"""Calls that are given up because another model may be quicker: slow to begin, or slow to go on (K13)."""

import asyncio
from typing import NamedTuple

from gateway.core.call import Call, Run
from gateway.core.errors import UpstreamError
from gateway.core.reply import BeforeEnd, Headers, Reply, Stream, Whole
from gateway.core.usage import Usage
from gateway.middleware.base import Proceed

_SETTLED_S = 2.0
_MAX_HELD_BYTES = 33_554_432
_LATE = "upstream_timeout"


class Pace(NamedTuple):
    """The slowest that is taken: seconds to the head and to the first content, events a second after that."""

    first_byte_s: float | None
    first_content_s: float | None
    events_per_s: float | None


async def in_time(call: Call, proceed: Proceed, pace: Pace) -> Reply:
    """Call on; raises UpstreamError `upstream_timeout` when the model is slower than this."""
    guard = _Guard(call.run, pace)
    try:
        async with asyncio.timeout(None) as limit:
            guard.start(limit)
            reply = await proceed(call)
    except TimeoutError:
        if not guard.late:
            raise
        raise _too_slow(guard.late) from None
    finally:
        guard.stop()
    if pace.events_per_s is None or isinstance(reply, Whole):
        return reply
    return await _collect(call.run, reply, pace.events_per_s)


def _too_slow(phase: str) -> UpstreamError:
    return UpstreamError(_LATE, phase=phase, detail="slower than fallback allows")


class _Guard:
    """Ends a call that has not begun to answer in time; the call then counts as timed out."""

    def __init__(self, run: Run, pace: Pace) -> None:
        self.late = ""
        self._run = run
        self._loop = asyncio.get_running_loop()
        self._limits = (("first_byte", pace.first_byte_s), ("body", pace.first_content_s))
        self._timers: list[asyncio.TimerHandle] = []
        run.head_at = None

    def start(self, limit: asyncio.Timeout) -> None:
        """Begin to wait."""
        self._timers = [
            self._loop.call_later(limit_s, self._cut, phase, limit)
            for phase, limit_s in self._limits
            if limit_s is not None
        ]

    def _cut(self, phase: str, limit: asyncio.Timeout) -> None:
        if self.late or (phase == "first_byte" and self._run.head_at is not None):
            return
        self.late = phase
        self._run.code = _LATE
        limit.reschedule(self._loop.time())

    def stop(self) -> None:
        """Stop waiting."""
        for timer in self._timers:
            timer.cancel()
        if self.late:
            self._run.code = ""


async def _collect(run: Run, stream: Stream, events_per_s: float) -> Reply:
    """Read a stream to its end at no less than this pace on average, so that it can be replaced until then."""
    began = asyncio.get_running_loop().time()
    parts: list[bytes] = []
    events = size = 0
    is_whole = False
    try:
        while not stream.finished:
            async with asyncio.timeout_at(began + max(_SETTLED_S, events / events_per_s)):
                data = await stream.next()
            parts.append(data)
            events += data.count(b"data:")
            size += len(data)
            if size > _MAX_HELD_BYTES:
                detail = "too much to hold back"
                raise UpstreamError("upstream_invalid_response", phase="body", detail=detail)
        is_whole = True
    except TimeoutError:
        run.code = _LATE  # what the call is counted as, while it is ended
        raise _too_slow("body") from None
    finally:
        if not is_whole:
            await stream.close()
            run.code = "" if run.code == _LATE else run.code
    return _Kept(stream, b"".join(parts))


class _Kept:
    """A stream that has come to its end and was held back."""

    def __init__(self, stream: Stream, data: bytes) -> None:
        self.status = stream.status
        self.headers: Headers = stream.headers
        self.length: int | None = None
        self.finished = False
        self._stream = stream
        self._data = data
        self._hooks: list[BeforeEnd] = []

    @property
    def usage(self) -> Usage | None:
        """Return what the provider counted."""
        return self._stream.usage

    def before_end(self, hook: BeforeEnd) -> None:
        """Have a hook called before the stream goes out."""
        self._hooks.append(hook)

    async def next(self) -> bytes:
        """Return all of it."""
        self.finished = True
        for hook in self._hooks:
            await hook()
        return self._data

    async def close(self) -> None:
        """Give the connection back."""
        await self._stream.close()
