"""The store behind its time limit and its breaker: whoever asks gets an answer or `Down`, and never waits long."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from gateway.core.errors import StoreError
from gateway.middleware.semantic_cache.health import Breaker

_T = TypeVar("_T")


class Down(Exception):
    """The store does not answer: the caller makes a miss of it (W-CACHE-17)."""


class Keeper:
    """Bounds what is asked of a store; `at_once`: of one that never waits for anything."""

    def __init__(self, timeout_ms: float, *, at_once: bool = False) -> None:
        self._timeout_s = timeout_ms / 1000
        self._at_once = at_once
        self._breaker = Breaker()

    async def ask(self, work: Awaitable[_T]) -> _T:
        """Return what a store answers; raises Down."""
        if self._breaker.is_open:
            _drop(work)
            raise Down
        try:
            if self._at_once:
                return await work
            async with asyncio.timeout(self._timeout_s):
                result = await work
        except (StoreError, TimeoutError) as error:
            self._breaker.failed()
            raise Down from error
        self._breaker.worked()
        return result


def _drop(work: Awaitable[object]) -> None:
    if asyncio.iscoroutine(work):
        work.close()
