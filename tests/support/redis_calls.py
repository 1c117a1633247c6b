"""Clients of Redis as tests use them: made and closed, timed, watched for their return."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest

from gateway.core.counting import Hold
from gateway.core.errors import StoreError
from gateway.core.scope import Scope
from gateway.stores.redis.client import Client
from gateway.stores.redis.limits import Limits
from tests.support.outgoing import Background

KEY = Scope("t").key("probe")
PATIENT = Limits(command_s=5.0, connect_s=5.0)
"""For tests in which nothing should be late however busy the machine is."""
SLOW_S = 0.1
"""What a call may take that waits out its limit of 75 ms."""
_BEAT_S = 0.002


@asynccontextmanager
async def using(url: str, limits: Limits | None = None) -> AsyncGenerator[Client]:
    """Make a client with work of its own; none of it is left at the end."""
    background = Background()
    client = Client(url, background.spawn, limits)
    try:
        yield client
    finally:
        await client.aclose()
        async with asyncio.timeout(2):
            await background.join()


async def ping(client: Client) -> object:
    """Ask something that any server answers."""
    return await client.command(KEY, "PING")


async def refused_after(client: Client) -> float:
    """Return how long a call took to fail, but for the time that the loop stood still."""
    [failed] = await offered(client, 1, every_s=0)
    return failed.took


async def works_after(
    client: Client, call: Callable[[Client], Awaitable[object]] = ping, within_s: float = 5.0
) -> float:
    """Return how long it took until a call succeeded, but for the time that the loop stood still."""
    start = time.perf_counter()
    async with feeling() as pulse:
        while time.perf_counter() - start < within_s:
            try:
                await call(client)
            except StoreError:
                await asyncio.sleep(0.005)
            else:
                end = time.perf_counter()
                await asyncio.sleep(2 * _BEAT_S)
                return end - start - pulse.lost(start, end)
    pytest.fail(f"nothing worked within {within_s} s")


class Pulse:
    """Feels how long the loop was kept from running, so that a busy machine is not taken for a slow product."""

    def __init__(self) -> None:
        self._lost: list[tuple[float, float]] = []
        self._last = time.perf_counter()

    async def beat(self) -> None:
        """Feel until cancelled."""
        while True:
            await asyncio.sleep(_BEAT_S)
            now = time.perf_counter()
            took, self._last = now - self._last, now
            if took > 1.25 * _BEAT_S:  # within a late beat nothing can be told apart
                self._lost.append((now, took))

    def lost(self, start: float, end: float) -> float:
        """Return how long the loop did not run in a stretch of time, at most."""
        return sum(lost for at, lost in self._lost if at >= start and at - lost <= end)


@asynccontextmanager
async def feeling() -> AsyncGenerator[Pulse]:
    """Feel the loop until the block ends."""
    pulse = Pulse()
    beating = asyncio.ensure_future(pulse.beat())
    try:
        yield pulse
    finally:
        beating.cancel()


class Failed(NamedTuple):
    """A call that failed: when it began, how long it took on an idle machine, and how long the loop stood still."""

    start: float
    took: float
    lost: float


async def offered(client: Client, count: int, every_s: float) -> list[Failed]:
    """Call at a steady rate; return what failed in the order of its start."""
    begin = time.perf_counter()
    failed: list[tuple[float, float]] = []

    async def one() -> None:
        start = time.perf_counter()
        try:
            await ping(client)
        except StoreError:
            failed.append((start, time.perf_counter()))

    async with feeling() as pulse:
        async with asyncio.TaskGroup() as group:
            for _ in range(count):
                group.create_task(one())
                await asyncio.sleep(every_s)
        await asyncio.sleep(2 * _BEAT_S)
    spans = [(start, end, pulse.lost(start, end)) for start, end in sorted(failed)]
    return [Failed(start - begin, end - start - lost, lost) for start, end, lost in spans]


def hold(
    name: str = "n",
    amount: int = 1,
    limit: int | None = 1000,
    tenant: str = "t",
    **more: bool | int,
) -> Hold:
    """Write a hold without a window."""
    return Hold(Scope(tenant).key("count", name), amount, limit, **more)  # type: ignore[arg-type]
