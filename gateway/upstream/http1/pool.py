"""The connections to one origin with one credential: reused last in first out, bounded, waited for in order."""

from __future__ import annotations

import asyncio
import enum
from collections import deque
from typing import TYPE_CHECKING, Final

from gateway.core.errors import UpstreamError
from gateway.upstream.http1.connection import Connection
from gateway.upstream.http1.wire import READ_BYTES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from gateway.upstream.spec import Timeouts

    Connect = Callable[[Callable[[], Connection], Timeouts, float], Awaitable[Connection]]

KEEP_ALIVE_S: Final = 20.0
"""Below the idle limits of common servers, so that we close first."""


class Grant(enum.Enum):
    """What a waiter may get instead of a connection."""

    SLOT = enum.auto()
    TOO_LATE = enum.auto()
    CLOSED = enum.auto()


class Pool:
    """Owns at most `max_connections` sockets and at most `max_waiting` requests that wait for one."""

    def __init__(
        self,
        connect: Connect,
        *,
        max_connections: int,
        max_waiting: int,
        keep_alive_s: float = KEEP_ALIVE_S,
    ) -> None:
        self.keep_alive_s = keep_alive_s
        self.retired = False
        self._connect = connect
        self._buffer = bytearray(READ_BYTES)
        self._max_connections = max_connections
        self._max_waiting = max_waiting
        self._idle: list[Connection] = []
        self._sockets: set[Connection] = set()
        self._used = 0  # slots: idle, busy and connecting
        self._waiting = 0
        self._waiters: deque[asyncio.Future[Connection | Grant]] = deque()
        self._shut = False
        self._empty: asyncio.Future[None] | None = None

    @property
    def used(self) -> int:
        """Connections that are idle, busy or being made."""
        return self._used

    @property
    def idle(self) -> int:
        """Connections that wait for a request."""
        return len(self._idle)

    @property
    def waiting(self) -> int:
        """Requests that wait for a connection."""
        return self._waiting

    def take(self) -> Connection | None:
        """Return an idle connection, the one used last."""
        idle = self._idle
        return idle.pop() if idle else None

    async def acquire(self, timeouts: Timeouts, deadline: float) -> Connection:
        """Return a connection when none is idle: a new one, or one that somebody gives back.

        Raises UpstreamError phase pool or connect.
        """
        limit = min(asyncio.get_running_loop().time() + timeouts.pool_s, deadline)
        while True:
            if self._shut:
                raise UpstreamError("draining", phase="pool", sent=False)
            if self._used < self._max_connections:
                self._used += 1
                return await self.open(timeouts, deadline)
            given = await self._wait(limit, deadline)
            if given is Grant.SLOT:
                return await self.open(timeouts, deadline)
            if isinstance(given, Connection) and not given.is_closed:
                return given

    async def fresh(self, timeouts: Timeouts, deadline: float) -> Connection:
        """Return a connection that carried nothing yet; an idle one makes room when the pool is full."""
        if self._used >= self._max_connections and self._idle and not self._shut:
            self._idle[0].close()
        connection = await self.acquire(timeouts, deadline)
        if connection.reused:
            # Handed over by someone who finished first; its slot comes back to us when it closes.
            connection.close()
            return await self.fresh(timeouts, deadline)
        return connection

    async def open(self, timeouts: Timeouts, deadline: float) -> Connection:
        """Connect in a slot that the caller holds; the slot is given away when that fails."""
        try:
            connection = await self._connect(self._make, timeouts, deadline)
        except BaseException:
            self._give_slot()
            raise
        self._sockets.add(connection)
        if connection.is_closed:
            self._sockets.discard(connection)
            self._give_slot()
            raise UpstreamError("upstream_unavailable", phase="connect", sent=False)
        if self._shut:
            connection.close()
            raise UpstreamError("draining", phase="connect", sent=False)
        return connection

    def release(self, connection: Connection) -> None:
        """Take back a connection that can carry another request."""
        if self._shut or self.retired:
            connection.close()
            return
        connection.rest()
        waiter = self._next_waiter() if self._waiters else None
        if waiter is None:
            self._idle.append(connection)
        else:
            waiter.set_result(connection)

    def closed(self, connection: Connection) -> None:
        """Give the slot of a closing connection to the next one who waits."""
        if connection in self._sockets:
            if connection.resting and connection in self._idle:
                self._idle.remove(connection)
            self._give_slot()

    def gone(self, connection: Connection) -> None:
        """Forget a connection whose socket is closed."""
        self._sockets.discard(connection)
        if not self._sockets and self._empty is not None and not self._empty.done():
            self._empty.set_result(None)

    def retire(self) -> None:
        """Close what is idle now and the rest as it falls idle; requests still work."""
        self.retired = True
        for connection in tuple(self._idle):
            connection.close()

    async def aclose(self) -> None:
        """Close everything now and wait for the sockets to be gone."""
        self._shut = True
        while (waiter := self._next_waiter()) is not None:
            waiter.set_result(Grant.CLOSED)
        for connection in tuple(self._sockets):
            connection.lost(None)
        if self._sockets:
            self._empty = asyncio.get_running_loop().create_future()
            await self._empty

    def _make(self) -> Connection:
        return Connection(self, asyncio.get_running_loop(), self._buffer)

    async def _wait(self, limit: float, deadline: float) -> Connection | Grant:
        if self._waiting >= self._max_waiting:
            raise UpstreamError("overloaded", phase="pool", sent=False, detail="too many wait")
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[Connection | Grant] = loop.create_future()
        self._waiters.append(waiter)
        self._waiting += 1
        timer = loop.call_at(limit, _too_late, waiter)
        try:
            given = await waiter
        except BaseException:
            if waiter.done() and not waiter.cancelled():
                self._give_back(waiter.result())
            else:
                self._forget(waiter)
            raise
        finally:
            timer.cancel()
            self._waiting -= 1
        if given is Grant.TOO_LATE:
            self._forget(waiter)
            code = "deadline_exceeded" if limit >= deadline else "overloaded"
            raise UpstreamError(code, phase="pool", sent=False, detail="no connection in time")
        return given

    def _give_back(self, given: Connection | Grant) -> None:
        if given is Grant.SLOT:
            self._give_slot()
        elif isinstance(given, Connection) and not given.is_closed:
            self.release(given)

    def _give_slot(self) -> None:
        waiter = self._next_waiter()
        if waiter is None:
            self._used -= 1
        else:
            waiter.set_result(Grant.SLOT)

    def _forget(self, waiter: asyncio.Future[Connection | Grant]) -> None:
        if waiter in self._waiters:  # unless its turn has come since
            self._waiters.remove(waiter)

    def _next_waiter(self) -> asyncio.Future[Connection | Grant] | None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                return waiter
        return None


def _too_late(waiter: asyncio.Future[Connection | Grant]) -> None:
    if not waiter.done():
        waiter.set_result(Grant.TOO_LATE)
