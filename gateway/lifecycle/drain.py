"""Leaving in order: readiness off, a moment to be noticed, no new work, wait, cut, gone (L-1, L-2)."""

import asyncio
from collections.abc import Callable, Coroutine
from enum import Enum
from typing import Any

from gateway.lifecycle.inflight import InFlight

_LAST_WORDS_S = 0.5
_LAST_CALL = 0.25  # this part of the announcement, at most so many seconds
_LAST_CALL_S = 1.0


class Phase(Enum):
    """How far the process is on its way out."""

    SERVING = "serving"
    LEAVING = "leaving"
    REFUSING = "refusing"


class Drain:
    """Tells the others whether this process still takes work, and brings the work to its end.

    For `announce_s` it says that it leaves and takes work; then running requests get `drain_s`.
    `leaving`: every answer is the last of its connection; `refusing`: new requests are turned away.
    """

    def __init__(self, inflight: InFlight, drain_s: float, announce_s: float) -> None:
        self.phase = Phase.SERVING
        self.leaving = False
        self.refusing = False
        self._inflight = inflight
        self._drain_s = drain_s
        self._announce_s = announce_s
        self._limit = 0.0
        self._asked = asyncio.Event()
        self._hurry = asyncio.Event()

    def adopt(self, drain_s: float, announce_s: float) -> None:
        """Take other times for when it comes to leaving."""
        self._drain_s = drain_s
        self._announce_s = announce_s

    @property
    def ready(self) -> bool:
        """Whether a load balancer should send requests here."""
        return self.phase is Phase.SERVING

    def ask(self) -> None:
        """Begin to leave; asked a second time, do not wait for running requests any longer."""
        if self._asked.is_set():
            self._hurry.set()
        self._asked.set()

    async def wait_asked(self) -> None:
        """Wait for the first request to leave."""
        await self._asked.wait()

    async def run(self, before_refusing: Callable[[], None] = lambda: None) -> None:
        """Let the running requests finish within the limit, then end them.

        `before_refusing` is called a moment before new requests are refused: what is on its way is still served.
        """
        self.phase = Phase.LEAVING
        self.leaving = True
        moment_s = min(self._announce_s * _LAST_CALL, _LAST_CALL_S)
        announce_s = self._announce_s - moment_s
        await self._unless_hurried(asyncio.sleep(announce_s), announce_s)
        before_refusing()
        await self._unless_hurried(asyncio.sleep(moment_s), moment_s)
        self.phase = Phase.REFUSING
        self.refusing = True
        self._limit = asyncio.get_running_loop().time() + self._drain_s
        await self._unless_hurried(self._inflight.wait_idle(self._drain_s), self._drain_s)
        if len(self._inflight):
            self._inflight.cut()
            await self._inflight.wait_idle(_LAST_WORDS_S)

    async def finish(self, work: Coroutine[Any, Any, None]) -> None:
        """Do what remains to be done in what is left of the limit; a short moment is always left."""
        left_s = self._limit - asyncio.get_running_loop().time()
        await self._unless_hurried(work, max(left_s, _LAST_WORDS_S))

    async def _unless_hurried(self, work: Coroutine[Any, Any, object], limit_s: float) -> None:
        """Do some work for at most `limit_s` seconds, or until told to hurry; then it is cancelled."""
        doing = asyncio.ensure_future(work)
        hurry = asyncio.ensure_future(self._hurry.wait())
        both = (doing, hurry)
        await asyncio.wait(both, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        for each in both:
            each.cancel()
        await asyncio.gather(*both, return_exceptions=True)
