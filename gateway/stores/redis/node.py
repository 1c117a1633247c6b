"""One server: its connection, who waits for it, and the breaker before it (RS-2, RS-3, RS-12)."""

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from math import inf
from typing import Any, Final

from gateway.stores.redis.dial import Unusable
from gateway.stores.redis.failure import Reason, Refused
from gateway.stores.redis.limits import Limits
from gateway.stores.redis.patience import patience
from gateway.stores.redis.wire import Connection, Pending

Spawn = Callable[[Coroutine[Any, Any, None], str], object]
"""Starts background work under a name."""

_POLLS: Final = 3
"""After so many turns of the loop all that had arrived before them was read, whatever the loop."""


class Node:
    """A server that calls are sent to. `name` stands in errors; `open` makes a connection that may serve at once.

    While it is down calls fail at once, and one attempt at a time is made to reach it.
    """

    def __init__(
        self,
        name: str,
        open_: Callable[[], Awaitable[Connection]],
        spawn: Spawn,
        limits: Limits,
    ) -> None:
        self.name = name
        self._open = open_
        self._spawn = spawn
        self._limits = limits
        self.loop = asyncio.get_running_loop()
        self._connection: Connection | None = None
        self._backlog: deque[Pending] = deque()
        self._timed: deque[Pending] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._watching = False
        self._connected_at = -1.0
        self._strikes = 0
        self._dialing = False
        self._closing = asyncio.Event()
        self.down = ""
        self.on_change: Callable[[], None] = lambda: None

    def __len__(self) -> int:
        return len(self._backlog) + (len(self._connection) if self._connection else 0)

    def submit(self, pending: Pending) -> None:
        """Send a command, or keep it until the connection is there; raises Refused while the server is down."""
        connection = self._connection
        if connection is not None and len(connection) < self._limits.waiting:
            connection.send(pending)
            self._await(pending)
        else:
            self._queue(pending)

    def _queue(self, pending: Pending) -> None:
        if self._closing.is_set():
            raise self._refusal("down", "is closed")
        if self.down:
            raise self._refusal("down", self.down)
        if self._connection is not None or len(self._backlog) >= self._limits.waiting:
            raise self._refusal("late", "has too many calls waiting")
        self._backlog.append(pending)
        self._start()

    def _start(self) -> None:
        if not self._dialing and not self._closing.is_set():
            self._dialing = True
            self._spawn(self._dial(), "redis-connect")

    async def _dial(self) -> None:
        pause_s = self._limits.pause_s
        try:
            if self.loop.time() - self._connected_at < self._limits.pause_max_s:
                await self._wait(_jittered(pause_s))  # it was lost as soon as it was made
            while not self._closing.is_set():
                try:
                    async with patience(self._limits.connect_s):
                        connection = await self._open()
                    if connection.closed:
                        raise ConnectionResetError("the server hung up")
                except TimeoutError:
                    why = "does not answer"
                except (OSError, UnicodeError, Unusable) as error:
                    why = f"cannot be used: {error}"
                else:
                    self._dialing = False
                    self._use(connection)
                    return
                self._fall(why)
                await self._wait(_jittered(pause_s))
                pause_s = min(2 * pause_s, self._limits.pause_max_s)
        finally:
            if self._dialing:  # cancelled: the next call begins anew
                self._dialing = False
                self._fall("is not connected")
                self.down = ""

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._closing.wait()
        except TimeoutError:
            return

    def _use(self, connection: Connection) -> None:
        if self._closing.is_set():
            connection.abort()
            return
        self._connection = connection
        self._connected_at = self.loop.time()
        self._strikes = 0
        self.down = ""
        connection.belong(self)
        waiting, self._backlog = self._backlog, deque()
        for pending in waiting:
            if not pending.future.done():
                connection.send(pending)
                self._await(pending)
        if self._idle is None:
            self._idle = self.loop.call_later(self._limits.idle_s, self._ask_idle)
        self.on_change()

    def served(self) -> None:
        """Forget failures: replies come."""
        self._strikes = 0

    def lost(self, connection: Connection) -> None:
        """Connect anew and send once more what may be; the rest has failed."""
        if connection is not self._connection:
            return
        self._connection = None
        for pending in connection.take():
            if pending.again and not pending.future.done():
                pending.again = False
                self._backlog.append(pending)
            else:
                self._fail(pending, "lost", "hung up")
        self._start()

    def drop(self, why: str) -> None:
        """Give the connection up, fail what waits, and try to reach the server until it may serve."""
        connection, self._connection = self._connection, None
        if connection is not None:
            for pending in connection.take():
                self._fail(pending, "late", why)
            connection.abort()
            self._fall(why)
            self._start()

    def _fall(self, why: str) -> None:
        """Fail all that waits and all that comes, until there is a connection."""
        self.down = why
        waiting, self._backlog = self._backlog, deque()
        for pending in waiting:
            self._fail(pending, "down", why)
        self.on_change()

    def _await(self, pending: Pending) -> None:
        """Have a command that was sent fail when the server stays silent."""
        self._timed.append(pending)
        if not self._watching:
            self._watching = True
            self._timer = self.loop.call_later(self._limits.command_s, self._check)

    def _check(self) -> None:
        """Judge who waits, once all that has arrived until now was read."""
        self.loop.call_soon(self._look, self.loop.time(), _POLLS)

    def _look(self, at: float, polls: int) -> None:
        if polls:
            self.loop.call_soon(self._look, at, polls - 1)
        elif not self._closing.is_set():
            self._judge(at)

    def _judge(self, at: float) -> None:
        """Fail what was not answered in time; the replies stay awaited and are dropped when they come."""
        timed, next_at = self._timed, inf
        while timed:
            pending = timed[0]
            if not pending.future.done():
                next_at = self._due(pending)
                if next_at > at:
                    break
                self._fail(pending, "late", "did not answer in time")
                self._strikes += self._limits.strikes if pending.probe else 1
            timed.popleft()
        if self._strikes >= self._limits.strikes:
            self.drop("does not answer")
        elif self._strikes == 1:
            self._probe()
        self._watching = bool(timed)
        if timed:
            # What is not written yet is looked at again as if it were written now.
            latest = self.loop.time() + self._limits.command_s
            self._timer = self.loop.call_at(min(next_at, latest), self._check)

    def _due(self, pending: Pending) -> float:
        """Return when a command has failed: after a silence since it was written, or too long in any case."""
        limits, written = self._limits, pending.written[0]
        heard = self._connection.heard if self._connection is not None else 0.0
        silent = max(written, heard) + limits.command_s
        return min(silent, written + max(limits.longest_s, limits.command_s))

    def _probe(self) -> None:
        """Ask whether the server lives: callers need not come to harm to find out."""
        connection = self._connection
        if connection is not None:
            pending = Pending(self.loop.create_future(), ("PING",))
            pending.probe = True
            connection.send(pending)
            self._await(pending)

    def _ask_idle(self) -> None:
        connection, self._idle = self._connection, None
        if connection is not None:
            if self.loop.time() - connection.heard >= self._limits.idle_s:
                self._probe()
            self._idle = self.loop.call_later(self._limits.idle_s, self._ask_idle)

    def _fail(self, pending: Pending, reason: Reason, why: str) -> None:
        if not pending.future.done():
            if pending.probe:
                pending.future.cancel()
            else:
                pending.future.set_exception(self._refusal(reason, why))

    def _refusal(self, reason: Reason, why: str) -> Refused:
        return Refused(reason, f"{self.name} {why}")

    def close(self) -> None:
        """Drop the connection; later calls are refused."""
        self._closing.set()
        self.drop("is closed")
        self._fall("is closed")
        for timer in (self._timer, self._idle):
            if timer is not None:
                timer.cancel()


def _jittered(seconds: float) -> float:
    return seconds * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
