"""Names to addresses, off the loop: one look-up per name at a time, few threads, the last good answer kept."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from gateway.core.clock import monotonic
from gateway.core.errors import UpstreamError

GetAddrInfo = Callable[..., Sequence[tuple[Any, ...]]]

FRESH_S: Final = 30.0
"""An answer is used without asking again for this long."""
PATIENCE_S: Final = 1.0
"""After this the last good answer is used while the look-up goes on."""
MAX_THREADS: Final = 8
_MAX_NAMES: Final = 4096


class _Entry:
    """What is known of one name."""

    __slots__ = ("addresses", "error", "hung", "running", "until", "waiters")

    def __init__(self) -> None:
        self.addresses: tuple[str, ...] = ()
        self.until = 0.0
        self.running = False
        self.hung = False  # the look-up has run out of patience; whoever asks gets the last answer
        self.error = ""
        self.waiters: list[asyncio.Future[None]] = []


class Resolver:
    """Resolves names with the system's resolver in daemon threads: a hung look-up holds nothing else up."""

    def __init__(
        self, getaddrinfo: GetAddrInfo = socket.getaddrinfo, clock: Callable[[], float] = monotonic
    ) -> None:
        self._getaddrinfo = getaddrinfo
        self._clock = clock
        self._entries: dict[str, _Entry] = {}
        self._queue: deque[tuple[str, _Entry, asyncio.AbstractEventLoop]] = deque()
        self._threads = 0

    async def resolve(self, host: str) -> tuple[str, ...]:
        """Return the addresses of a name, at least one; UpstreamError upstream_unavailable, phase connect."""
        loop = asyncio.get_running_loop()
        entry = self._entries.get(host)
        if entry is None:
            if len(self._entries) >= _MAX_NAMES:
                self._entries.clear()
            entry = self._entries[host] = _Entry()
        if entry.addresses and self._clock() < entry.until:
            return entry.addresses
        if not entry.running:
            entry.running = True
            self._queue.append((host, entry, loop))
            self._start()
        if not (entry.addresses and entry.hung):
            await self._wait(entry, loop)
        if not entry.addresses:
            raise UpstreamError(
                "upstream_unavailable",
                phase="connect",
                sent=False,
                detail=f"no address: {entry.error}",
            )
        return entry.addresses

    async def _wait(self, entry: _Entry, loop: asyncio.AbstractEventLoop) -> None:
        waiter = loop.create_future()
        entry.waiters.append(waiter)
        timer = loop.call_later(PATIENCE_S, _give_up, entry) if entry.addresses else None
        try:
            await waiter
        finally:
            if timer is not None:
                timer.cancel()
            if waiter in entry.waiters:
                entry.waiters.remove(waiter)

    def _start(self) -> None:
        while self._queue and self._threads < MAX_THREADS:
            self._threads += 1
            job = self._queue.popleft()
            # A daemon: a look-up that hangs must not hold up the end of the process.
            threading.Thread(target=self._look_up, args=job, name="resolver", daemon=True).start()

    def _look_up(self, host: str, entry: _Entry, loop: asyncio.AbstractEventLoop) -> None:
        found: tuple[str, ...] = ()
        error = "nothing found"
        try:
            rows = self._getaddrinfo(host, None, type=socket.SOCK_STREAM)
            found = tuple(dict.fromkeys(str(row[4][0]) for row in rows))
        except (OSError, ValueError) as exc:  # of which UnicodeError is one
            error = type(exc).__name__
        try:
            loop.call_soon_threadsafe(self._finish, entry, found, error)
        except RuntimeError:
            return  # the loop is closed; nobody waits any more

    def _finish(self, entry: _Entry, found: tuple[str, ...], error: str) -> None:
        self._threads -= 1
        entry.running = entry.hung = False
        entry.error = error
        if found:
            entry.addresses = found
            entry.until = self._clock() + FRESH_S
        for waiter in entry.waiters:
            _wake(waiter)
        self._start()


def _give_up(entry: _Entry) -> None:
    entry.hung = True
    for waiter in entry.waiters:
        _wake(waiter)


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
