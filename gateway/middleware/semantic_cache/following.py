"""Streams that the cache takes part in: one that is kept as it goes by, and one that follows another's."""

import asyncio
from collections.abc import Awaitable, Callable

from gateway.core.answer import Answer, Collector
from gateway.core.call import Call
from gateway.core.errors import GatewayError, UpstreamError
from gateway.core.reply import BeforeEnd, Stream
from gateway.core.usage import Usage
from gateway.dialects.losses import Notes
from gateway.dialects.registry import CALLERS
from gateway.middleware.ports import Spawn
from gateway.middleware.semantic_cache import forms
from gateway.middleware.semantic_cache.flights import Flight
from gateway.middleware.semantic_cache.replay import EVENTS, neutral, told

OnEnd = Callable[[Answer], Awaitable[None]]


class Kept:
    """A stream on its way to the caller; it is read as it goes by, and handed over whole when it has ended well."""

    __slots__ = (
        "_closing",
        "_collector",
        "_flight",
        "_keep",
        "_pending",
        "_reader",
        "_spawn",
        "_stream",
        "_task",
        "finished",
        "headers",
        "length",
        "status",
    )

    def __init__(
        self,
        call: Call,
        stream: Stream,
        keep: OnEnd,
        flight: Flight | None,
        closing: Callable[[], None],
        spawn: Spawn | None,
    ) -> None:
        self.status = stream.status
        self.headers = stream.headers
        self.length = stream.length
        self.finished = False
        self._stream = stream
        self._keep = keep
        self._flight = flight
        self._closing = closing
        self._reader = forms.reader(call)
        self._collector: Collector | None = forms.collector(call)
        self._spawn = spawn
        self._pending: asyncio.Future[bytes] | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def usage(self) -> Usage | None:
        """Return the tokens counted so far."""
        return self._stream.usage

    def before_end(self, hook: BeforeEnd) -> None:
        """Have a hook called before the last bytes go out; where it refuses nothing is kept."""
        self._stream.before_end(hook)

    async def next(self) -> bytes:
        """Return the next bytes; the answer is kept before the last of them."""
        data = await self._pull()
        self._read(data)
        if self._stream.finished:
            self.finished = True
            await self._end()
        return data

    async def _pull(self) -> bytes:
        """Wait for bytes; whoever follows must not lose them when the leader is cancelled meanwhile."""
        pending = self._pending
        if pending is None:
            if self._flight is None or not self._flight.followers:
                return await self._stream.next()
            if self._spawn is None:
                return await self._stream.next()
            pending = self._pending = asyncio.get_running_loop().create_future()
            self._task = self._spawn(self._fetch(pending), "read an answer that others follow")
        data = await asyncio.shield(pending)
        self._pending = None
        return data

    async def _fetch(self, pending: asyncio.Future[bytes]) -> None:
        """Read on, whatever becomes of who waits for it."""
        try:
            data = await self._stream.next()
        except GatewayError as error:
            _settle(pending, error)
        except BaseException:
            pending.cancel()
            raise
        else:
            if not pending.done():
                pending.set_result(data)

    def _read(self, data: bytes) -> None:
        if self._collector is None:
            return
        try:
            events = self._reader.feed(data)
        except UpstreamError:
            self._collector = None  # the caller gets what came; nobody else does
            return
        self._collector.add(events)
        if self._flight is not None:
            self._flight.add(neutral(events))

    async def _end(self) -> None:
        collector = self._collector
        if collector is None or self._reader.error is not None or self._reader.broken:
            return
        if not collector.ended:
            try:
                events = self._reader.end(complete=True)
            except UpstreamError:
                return
            collector.add(events)
            if self._flight is not None:
                self._flight.add(neutral(events))
        if collector.ended:
            if self._flight is not None:
                self._flight.land()
            await self._keep(collector.answer())

    async def close(self) -> None:
        """Give everything back; while others follow, the rest is read for them first."""
        try:
            while self._flight is not None and self._flight.followers and not self._stream.finished:
                await self.next()
        except GatewayError:
            pass  # who follows is told that the flight has failed
        finally:
            self._closing()
            if self._task is not None and not self._task.done():
                self._task.cancel()
                await asyncio.wait((self._task,))
            await self._stream.close()


def _settle(pending: asyncio.Future[bytes], error: GatewayError) -> None:
    if not pending.done():
        pending.set_exception(error)


class Followed:
    """The answer of another request with the same question, written for this one from its first event."""

    __slots__ = (
        "_call",
        "_flight",
        "_hooks",
        "_is_open",
        "_seen",
        "_writer",
        "finished",
        "headers",
        "length",
        "status",
        "usage",
    )

    def __init__(self, call: Call, flight: Flight) -> None:
        self.status = 200
        self.headers = EVENTS
        self.length: int | None = None
        self.finished = False
        self.usage: Usage | None = None
        self._call = call
        self._flight = flight
        self._writer = CALLERS[call.run.dialect_name].writer(told(call), Notes())
        self._seen = 0
        self._hooks: list[BeforeEnd] = []
        self._is_open = True
        flight.followers += 1

    def before_end(self, hook: BeforeEnd) -> None:
        """Have a hook called before the last bytes go out."""
        self._hooks.append(hook)

    async def next(self) -> bytes:
        """Return the next whole events; raises UpstreamError when the other request has failed."""
        out = b""
        while not out:
            await self._flight.more(self._seen, self._call.run.deadline)
            events = self._flight.events[self._seen :]
            self._seen += len(events)
            out = self._writer.write(events) if events else b""
            if self._flight.done and self._seen == len(self._flight.events):
                self.finished = True
                for hook in self._hooks:
                    await hook()
                return out
            if self._flight.failed and not events:
                raise UpstreamError("upstream_truncated", phase="body")
        return out

    async def close(self) -> None:
        """Follow no more."""
        if self._is_open:
            self._is_open = False
            self._flight.followers -= 1
