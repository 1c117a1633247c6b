"""One server: its connection, who waits for it, and the breaker before it (RS-2, RS-3, RS-12)."""

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from gateway.stores.redis.dial import Unusable
from gateway.stores.redis.failure import Reason, Refused
from gateway.stores.redis.limits import Limits
from gateway.stores.redis.wire import Connection, Pending

Spawn = Callable[[Coroutine[Any, Any, None], str], object]
"""Starts background work under a name."""

_LATE_S: Final = 0.01
_LOOK_AGAIN_S: Final = 0.002


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
        self._loop = asyncio.get_running_loop()
        self._connection: Connection | None = None
        self._backlog: deque[Pending] = deque()
        self._timed: deque[Pending] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._looking_again = False
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
        else:
            self._queue(pending)
        self._timed.append(pending)
        if self._timer is None:
            self._watch(pending.deadline)

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
            if self._loop.time() - self._connected_at < self._limits.pause_max_s:
                await self._wait(_jittered(pause_s))  # it was lost as soon as it was made
            while not self._closing.is_set():
                try:
                    async with asyncio.timeout(self._limits.connect_s):
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
        self._connected_at = self._loop.time()
        self._strikes = 0
        self.down = ""
        connection.belong(self)
        waiting, self._backlog = self._backlog, deque()
        for pending in waiting:
            if not pending.future.done():
                connection.send(pending)
        if self._idle is None:
            self._idle = self._loop.call_later(self._limits.idle_s, self._ask_idle)
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

    def _watch(self, deadline: float) -> None:
        self._due = deadline
        self._timer = self._loop.call_at(deadline, self._check)

    def _check(self) -> None:
        """Fail what was not answered in time; the replies stay awaited and are dropped when they come."""
        now = self._loop.time()
        if now - self._due > _LATE_S and not self._looking_again:
            # The loop was busy: what has arrived is read before anybody is called late.
            self._looking_again = True
            self._timer = self._loop.call_later(_LOOK_AGAIN_S, self._check)
            return
        self._looking_again = False
        timed = self._timed
        while timed and (timed[0].future.done() or timed[0].deadline <= now):
            pending = timed.popleft()
            if not pending.future.done():
                self._fail(pending, "late", "did not answer in time")
                self._strikes += self._limits.strikes if pending.probe else 1
        if self._strikes >= self._limits.strikes:
            self.drop("does not answer")
        elif self._strikes == 1:
            self._probe()
        self._timer = None
        if timed:
            self._watch(timed[0].deadline)

    def _probe(self) -> None:
        """Ask whether the server lives: callers need not come to harm to find out."""
        connection = self._connection
        if connection is not None:
            deadline = self._loop.time() + self._limits.command_s
            pending = Pending(self._loop.create_future(), ("PING",), deadline)
            pending.probe = True
            connection.send(pending)
            self._timed.append(pending)
            if self._timer is None:
                self._watch(pending.deadline)

    def _ask_idle(self) -> None:
        connection, self._idle = self._connection, None
        if connection is not None:
            if self._loop.time() - connection.heard >= self._limits.idle_s:
                self._probe()
            self._idle = self._loop.call_later(self._limits.idle_s, self._ask_idle)

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
