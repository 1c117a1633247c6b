"""Connections that are never shared by two requests at once: bounded, waited for in order, kept while fresh."""

from __future__ import annotations

import asyncio
from math import inf
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from gateway.core.errors import UpstreamError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.upstream.spec import Spawn
    from gateway.upstream.trip import Trip

KEEP_ALIVE_S: Final = 20.0


class Closing(Protocol):
    """Whatever holds a connection."""

    async def aclose(self) -> None:
        """Close it, and whatever is under way on it."""
        ...


_Lane = TypeVar("_Lane", bound=Closing)


class Lanes(Generic[_Lane]):
    """Owns one lane for each request under way, and those that rest between two."""

    def __init__(
        self,
        make: Callable[[], _Lane],
        spawn: Spawn,
        *,
        max_lanes: int,
        max_waiting: int,
        keep: bool,
    ) -> None:
        self.spawn = spawn
        self._make = make
        self._max_waiting = max_waiting
        self._keep = keep
        self._slots = asyncio.Semaphore(max_lanes)
        self._waiting = 0
        self._idle: list[tuple[float, _Lane]] = []
        self._busy: set[_Lane] = set()
        self._shut = False

    @property
    def used(self) -> int:
        """Requests under way."""
        return len(self._busy)

    async def take(self, trip: Trip) -> _Lane:
        """Return a lane for one request; UpstreamError phase pool."""
        if self._shut:
            raise UpstreamError("draining", phase="pool", sent=False)
        if self._slots.locked():
            if self._waiting >= self._max_waiting:
                raise UpstreamError("overloaded", phase="pool", sent=False, detail="too many wait")
            self._waiting += 1
            try:
                await trip.run(self._slots.acquire())
            finally:
                self._waiting -= 1
        else:
            await self._slots.acquire()
        self._prune(trip.now())
        lane = self._idle.pop()[1] if self._idle else self._make()
        self._busy.add(lane)
        return lane

    async def give(self, lane: _Lane, now: float) -> None:
        """Take back a lane whose answer came to its end."""
        if not self._keep or self._shut:
            await self.drop(lane)
            return
        self._idle.append((now, lane))
        self._leave(lane)
        self._prune(now)

    async def drop(self, lane: _Lane) -> None:
        """Close a lane and whatever is under way on it."""
        try:
            await lane.aclose()
        finally:
            self._leave(lane)

    def retire(self) -> None:
        """Close what is idle now and the rest as it falls idle; requests still work."""
        self._keep = False
        self._prune(inf)

    async def aclose(self) -> None:
        """Close every lane."""
        self._shut = True
        self._prune(inf)
        for lane in tuple(self._busy):
            await lane.aclose()

    def _leave(self, lane: _Lane) -> None:
        if lane in self._busy:
            self._busy.remove(lane)
            self._slots.release()

    def _prune(self, now: float) -> None:
        while self._idle and now - self._idle[0][0] > KEEP_ALIVE_S:
            _, lane = self._idle.pop(0)
            self.spawn(lane.aclose(), "close an idle upstream connection")
