"""Keeps callers who cannot wait from waiting: the work goes on behind them, so that connections come to be."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from gateway.core import clock
from gateway.core.errors import StoreError

Result = TypeVar("Result")
Spawn = Callable[[Coroutine[Any, Any, None], str], object]
"""Starts background work under a name."""

STRIKES: Final = 3
"""Calls in a row without a reply in time after which calls fail at once."""
REST_S: Final = 0.25
"""How long nobody tries then; after that one call at a time."""


class Bounded:
    """Runs calls of one store, each within the time that its caller has."""

    def __init__(self, spawn: Spawn) -> None:
        self._spawn = spawn
        self._strikes = 0
        self._since = 0.0
        self._probing = False

    async def run(
        self, call: Callable[[], Coroutine[Any, Any, Result]], seconds: float, *, at_once: bool
    ) -> Result:
        """Return what a call returns; raises StoreError, and when it took too long leaves it to itself.

        `at_once`: fail without a try while calls do not end in time.
        """
        probes = self._strikes >= STRIKES
        if probes and at_once:
            if self._probing or clock.monotonic() - self._since < REST_S:
                raise StoreError("state_unavailable", detail="Postgres does not answer in time")
            self._probing = True
        waiting: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._spawn(self._work(call, waiting), "cache in Postgres")
        try:
            async with asyncio.timeout(seconds):
                return await waiting
        except TimeoutError:
            self._strikes += 1
            self._since = clock.monotonic()
            raise StoreError(
                "state_unavailable", detail=f"Postgres did not answer within {seconds:g} s"
            ) from None

    async def _work(
        self, call: Callable[[], Coroutine[Any, Any, Result]], waiting: asyncio.Future[Result]
    ) -> None:
        try:
            result = await call()
        except StoreError as error:
            if not waiting.done():
                waiting.set_exception(error)
        except BaseException:
            if not waiting.done():
                waiting.set_exception(
                    StoreError("state_unavailable", detail="the work was stopped")
                )
            raise
        else:
            if not waiting.done():
                self._strikes = 0
                waiting.set_result(result)
        finally:
            self._probing = False
