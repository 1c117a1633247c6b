"""The back ends of the counters, opened for tests."""

import itertools
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from gateway.core.counting import Counters, Hold, Window
from gateway.core.scope import Scope
from gateway.stores.registry import open_counters
from tests.support.outgoing import Background
from tests.support.redis_server import shared_url

BACKENDS = ("memory", "redis")
DAY_S = 86_400
LEASE_S = 60.0
Opening = Callable[..., AbstractAsyncContextManager[Counters]]
"""Opens counters; given others, opens the same ones as another process does."""


def opened(backend: str, request: pytest.FixtureRequest) -> Opening:
    """Return how to open a back end."""

    @asynccontextmanager
    async def opening(others: Counters | None = None) -> AsyncGenerator[Counters]:
        if backend == "memory" and others is not None:
            yield others
            return
        background = Background()
        made = open_counters("memory" if backend == "memory" else shared_url(), background.spawn)
        try:
            yield made
        finally:
            await made.aclose()
            await background.join()

    return opening


_ids = itertools.count()


def run() -> str:
    """Name a run."""
    return f"run-{next(_ids)}"


def hold(
    tenant: str,
    name: str = "a",
    amount: int = 1,
    limit: int | None = 10,
    **more: object,
) -> Hold:
    """Write a hold; `more` are its other fields."""
    return Hold(Scope(tenant).key("count", name), amount, limit, **more)  # type: ignore[arg-type]


async def used(counters: Counters, tenant: str, *holds: Hold) -> list[int]:
    """Return what is used of counters."""
    return list(await counters.used(tenant, holds))


async def now_s(counters: Counters, tenant: str) -> int:
    """Return the store's clock."""
    verdict = await counters.reserve(tenant, run(), (), LEASE_S)
    return verdict.now_ms // 1000


async def today(counters: Counters, tenant: str) -> Window:
    """Return the day of the store's clock."""
    start = await now_s(counters, tenant) // DAY_S * DAY_S
    return Window(start, start + DAY_S)


async def take(
    counters: Counters, tenant: str, holds: Sequence[Hold], lease_s: float = LEASE_S
) -> str:
    """Reserve something that must fit."""
    name = run()
    assert (await counters.reserve(tenant, name, holds, lease_s)).granted
    return name
