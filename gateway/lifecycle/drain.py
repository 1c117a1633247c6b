"""Leaving in order: readiness off, a moment to be noticed, no new work, wait, cut, gone (L-1, L-2)."""

import asyncio
from enum import Enum

from gateway.lifecycle.inflight import InFlight

_ANNOUNCE_S = 0.3
_LAST_WORDS_S = 2.0


class Phase(Enum):
    """How far the process is on its way out."""

    SERVING = "serving"
    LEAVING = "leaving"
    REFUSING = "refusing"


class Drain:
    """Tells the others whether this process still takes work, and brings the work to its end."""

    def __init__(self, inflight: InFlight, drain_s: float) -> None:
        self.phase = Phase.SERVING
        self._inflight = inflight
        self._drain_s = drain_s
        self._asked = asyncio.Event()
        self._hurry = asyncio.Event()

    @property
    def ready(self) -> bool:
        """Whether a load balancer should send requests here."""
        return self.phase is Phase.SERVING

    @property
    def refusing(self) -> bool:
        """Whether new requests are turned away."""
        return self.phase is Phase.REFUSING

    def ask(self) -> None:
        """Begin to leave; asked a second time, do not wait for running requests any longer."""
        if self._asked.is_set():
            self._hurry.set()
        self._asked.set()

    async def wait_asked(self) -> None:
        """Wait for the first request to leave."""
        await self._asked.wait()

    async def run(self) -> None:
        """Let the running requests finish within the limit, then end them."""
        self.phase = Phase.LEAVING
        await self._pause(_ANNOUNCE_S)
        self.phase = Phase.REFUSING
        idle = asyncio.ensure_future(self._inflight.wait_idle(self._drain_s))
        hurry = asyncio.ensure_future(self._hurry.wait())
        await asyncio.wait((idle, hurry), return_when=asyncio.FIRST_COMPLETED)
        for waiting in (idle, hurry):
            waiting.cancel()
        if len(self._inflight):
            self._inflight.cut()
            await self._inflight.wait_idle(_LAST_WORDS_S)

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._hurry.wait()
        except TimeoutError:
            return
