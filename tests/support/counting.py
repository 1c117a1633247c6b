"""The back ends of the counters, opened for tests."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from gateway.core.counting import Counters
from gateway.stores.registry import open_counters
from tests.support.outgoing import Background
from tests.support.redis_server import shared_url

BACKENDS = ("memory", "redis")
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
