"""The stores that the suites run over."""

import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from pathlib import Path

import pytest

from gateway.core.caching import CacheStore
from gateway.core.counting import Counters
from gateway.core.ledger import Ledger
from gateway.stores.registry import LEDGERS, open_ledger
from tests.support import caches
from tests.support.counting import BACKENDS, Opening, opened
from tests.support.ledger_rows import Open
from tests.support.translated import Stage, translated


@pytest.fixture(params=sorted(LEDGERS.keys() - {"postgresql"}))
def ledger_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def ledger_url(ledger_kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    if ledger_kind == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return "memory" if ledger_kind == "memory" else f"{ledger_kind}:{tmp_path}/k/gateway.db"


@pytest.fixture
async def open_again(ledger_url: str) -> AsyncIterator[Open]:
    """Open the ledger, or the same one again where it lasts."""
    opened: list[Ledger] = []

    def open_again() -> Ledger:
        opened.append(open_ledger(ledger_url))
        return opened[-1]

    yield open_again
    for ledger in opened:
        await ledger.aclose()


@pytest.fixture
def ledger(open_again: Open) -> Ledger:
    return open_again()


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def opening(backend: str, request: pytest.FixtureRequest) -> Opening:
    return opened(backend, request)


@pytest.fixture
async def counters(opening: Opening) -> AsyncGenerator[Counters]:
    async with opening() as made:
        yield made


@pytest.fixture
def tenant() -> str:
    """Name a tenant that nobody used before: stores are shared by the tests."""
    return f"t-{uuid.uuid4().hex[:12]}"


@pytest.fixture(params=caches.STORES)
def cache_store(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def cache_opening(cache_store: str, request: pytest.FixtureRequest) -> caches.Opening:
    return caches.opened(cache_store, caches.address(cache_store, request))


@pytest.fixture
async def cache(cache_opening: caches.Opening) -> AsyncGenerator[CacheStore]:
    async with cache_opening() as made:
        yield made


@pytest.fixture
async def similar(cache_store: str, cache: CacheStore) -> CacheStore:
    """A cache that can search by similarity."""
    if cache_store in caches.WITHOUT_VECTORS:
        pytest.skip("this server has no vectors")
    return cache


@pytest.fixture
def another(tenant: str) -> str:
    return f"{tenant}-other"


@pytest.fixture(scope="session")
def readers(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stage]:
    """Serve every recorded answer to the clients that read them."""
    with translated(tmp_path_factory.mktemp("readers")) as stage:
        yield stage
