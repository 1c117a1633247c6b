"""Options of the whole suite."""

import asyncio
import gc
import os
from collections.abc import Callable, Generator, Mapping

import pytest
import uvloop
from hypothesis import HealthCheck, settings

from tests.support.postgres_server import any_postgres, fresh_schema
from tests.support.rounds import QUICK

_LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}

settings.register_profile("local", deadline=None, max_examples=100)
settings.register_profile(
    "ci",
    deadline=None,
    max_examples=200,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=20)
settings.load_profile("quick" if QUICK else "ci" if os.environ.get("CI") else "local")


# Thousands of tests are collected and all of them stay: looking through them for cycles again and again would take
# longer than finding them, and each `gc.collect()` of a test a tenth of a second.
gc.disable()


def pytest_collection_finish() -> None:
    """Look for cycles again, among what the tests themselves make."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run the tests of a module that names `LOOPS` on each of these loops; all others on asyncio's."""
    module = item.getparent(pytest.Module)
    names: tuple[str, ...] = getattr(module.obj if module else None, "LOOPS", ("asyncio",))
    return {name: _LOOPS[name] for name in names}


@pytest.fixture(scope="session")
def postgres() -> Generator[str]:
    """The address of a Postgres that the tests of this process share."""
    with any_postgres() as url:
        yield url


@pytest.fixture
def postgres_url(postgres: str) -> Generator[str]:
    """An address in it whose tables are this test's own."""
    with fresh_schema(postgres) as url:
        yield url
