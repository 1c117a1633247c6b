"""The same question in flight is asked once: who asks meanwhile follows the answer from its first event (O-1).

A flight belongs to one pool and one exact key, so that nothing is shared that the cache itself would not share.
"""

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from gateway.core import clock
from gateway.core.answer import Answer, Collector, Event
from gateway.core.errors import UpstreamError

Key = tuple[str, str]
_TRIES = 2
"""Leaders of one question in a row; who waited in vain for the last of them asks for itself."""


class Told(NamedTuple):
    """Where a leader found its answer; followers tell the same of theirs."""

    cache: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Flight:
    """One question that is being answered. Used on one loop.

    `epoch` is that of the pool when its leader looked, None before.
    """

    __slots__ = ("_waiting", "done", "epoch", "events", "failed", "followers", "number", "told")

    def __init__(self, number: int) -> None:
        self.number = number
        self.events: list[Event] = []
        self.done = False
        self.epoch: int | None = None
        self.failed = False
        self.followers = 0
        self.told: Told | None = None
        self._waiting: list[asyncio.Future[None]] = []

    def add(self, events: Iterable[Event]) -> None:
        """Take the next events."""
        self.events += events
        self._wake()

    def land(self) -> None:
        """End well."""
        self.done = True
        self._wake()

    def fail(self) -> None:
        """End without a whole answer; without effect after `land`."""
        if not self.done:
            self.failed = True
            self._wake()

    @property
    def is_over(self) -> bool:
        """Whether no more events come."""
        return self.done or self.failed

    def is_before(self, epoch: int | None) -> bool:
        """Tell whether something was deleted between its leader's look and that of who would follow."""
        return self.epoch is not None and epoch is not None and self.epoch < epoch

    async def more(self, seen: int, deadline: float) -> None:
        """Wait for more than `seen` events or the end; raises UpstreamError `deadline_exceeded`."""
        while len(self.events) <= seen and not self.is_over:
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                async with asyncio.timeout_at(deadline):
                    await waiter
            except TimeoutError:
                if deadline > clock.monotonic():
                    raise
                raise UpstreamError("deadline_exceeded", phase="first_byte") from None

    async def end(self, deadline: float) -> None:
        """Wait for the end."""
        while not self.is_over:
            await self.more(len(self.events), deadline)

    def answer(self, collector: Collector) -> Answer:
        """Return the whole answer, once it has landed."""
        collector.add(self.events)
        return collector.answer()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)


class Flights:
    """The flights of one cache of a chain."""

    def __init__(self) -> None:
        self._open: dict[Key, Flight] = {}

    def find(self, key: Key) -> Flight | None:
        """Return the flight to follow."""
        return self._open.get(key)

    def lead(self, key: Key, number: int) -> Flight:
        """Begin a flight; it must be closed."""
        flight = self._open[key] = Flight(number)
        return flight

    def close(self, key: Key, flight: Flight) -> None:
        """Let nobody follow any more; a flight that has not landed has failed."""
        flight.fail()
        if self._open.get(key) is flight:
            del self._open[key]

    @staticmethod
    def is_last(flight: Flight) -> bool:
        """Whether nobody is to lead after this one."""
        return flight.number + 1 >= _TRIES
