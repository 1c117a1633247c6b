"""How many calls one target takes at once: found by growing on success and shrinking when it says it is full."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from math import floor, inf
from typing import NamedTuple

_USED = 2


class ConcurrencyRules(NamedTuple):
    """The bounds of a limit. `most` inf: without one until the provider asks for less. `least` inf: never less.

    Times are seconds.
    """

    most: float = inf
    least: float = 5
    decrease: float = 0.8
    recover_s: float = 60.0
    queue_s: float = 1.0


class Places:
    """The places at one target. `taken` counts calls that run, and those that were just called from the queue."""

    __slots__ = (
        "_cut_at",
        "_queue",
        "_served",
        "_successes",
        "limit",
        "on_change",
        "rules",
        "taken",
    )

    def __init__(
        self, rules: ConcurrencyRules, on_change: Callable[[], None] | None = None
    ) -> None:
        self.rules = rules
        self.on_change = on_change
        self.taken = 0
        self.limit = rules.most
        self._cut_at = 0.0
        self._successes = 0
        self._served = True
        self._queue: deque[asyncio.Future[Places]] = deque()

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        return len(self._queue)

    def is_full(self, now: float) -> bool:
        """Tell whether there is no place; a limit that was not met again for a while is forgotten."""
        if self.taken < self.limit:
            return False
        if self.limit < self.rules.most and now - self._cut_at > self.rules.recover_s:
            self._set(self.rules.most)
        return self.taken >= self.limit

    def leave(self) -> None:
        """Give a place back."""
        self.taken -= 1
        if self._queue:
            self._call()

    def grow(self) -> None:
        """Take a success: as many of them as there are places make one place more, while most are in use."""
        self._served = True
        if self.limit < self.rules.most and self.taken * _USED >= self.limit:
            self._successes += 1
            if self._successes >= self.limit:
                self._set(min(self.rules.most, self.limit + 1))

    def shrink(self, started: float, now: float) -> bool:
        """Take a refusal for being full; False when nothing was served since the last one: less is no cure then.

        Calls that started before the last refusal that counted say nothing new.
        """
        if started < self._cut_at:
            return True
        served, self._served = self._served, False
        self._cut_at = now
        least = min(self.rules.least, self.rules.most)
        used = min(self.limit, self.taken)
        if used > least:
            self._set(max(least, floor(used * self.rules.decrease)))
        return served

    def _set(self, limit: float) -> None:
        self.limit = limit
        self._successes = 0
        if self.on_change is not None:
            self.on_change()
        if self._queue:
            self._call()

    def _call(self) -> None:
        """Give free places to those who wait, in order."""
        while self._queue and self.taken < self.limit:
            waiter = self._queue.popleft()
            if not waiter.done():
                self.taken += 1
                waiter.set_result(self)

    def join(self, waiter: "asyncio.Future[Places]") -> None:
        """Put somebody at the end of the queue."""
        self._queue.append(waiter)

    def part(self, waiter: "asyncio.Future[Places]") -> None:
        """Take somebody out of the queue, if still there."""
        if waiter in self._queue:
            self._queue.remove(waiter)


async def wait_any(several: Sequence[Places], until: float) -> Places | None:
    """Wait for a place at any of these until a time of the loop's clock; None when there was none.

    The place is free for the caller until it awaits anything. As many may wait as there are places.
    """
    queues = [places for places in several if places.waiting < places.limit]
    if not queues:
        return None
    waiter: asyncio.Future[Places] = asyncio.get_running_loop().create_future()
    for places in queues:
        places.join(waiter)
    found: Places | None = None
    try:
        async with asyncio.timeout_at(until):
            found = await waiter
    except TimeoutError:
        return None
    finally:
        for places in queues:
            places.part(waiter)
        if found is not None:
            found.taken -= 1
        elif waiter.done() and not waiter.cancelled():
            waiter.result().leave()  # called, but gone
    return found
