"""A cache that is killed, silent or emptied: refused within its deadline, and used again without a restart."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gateway.core.caching import CacheStore, Entry, Selector
from gateway.core.errors import StoreError
from gateway.stores.registry import open_cache
from tests.support.caches import entry, keep, pool, vector
from tests.support.fault_proxy import FaultProxy, fault_proxy
from tests.support.outgoing import Background
from tests.support.postgres_server import PostgresServer, fresh_schema, running_postgres
from tests.support.redis_calls import Pulse, feeling
from tests.support.redis_server import RedisServer, redis_server, search_module, valkey
from tests.support.tcp_link import linked

OWN = pool("acme")
LATE_S = 0.2
"""What a call of several trips may take on an idle machine, with room."""
ATONCE_S = 0.02
CALLS: dict[str, Callable[[CacheStore], Awaitable[object]]] = {
    "look": lambda cache: cache.look(OWN, "x", "c-x"),
    "nearest": lambda cache: cache.nearest(OWN, "e", vector(), 8),
    "put": lambda cache: cache.put(entry(OWN, epoch=2**50, embedder="e", vector=vector())),
    "alias": lambda cache: cache.alias(entry(OWN, epoch=2**50), "y", "c-y", vector(), "other"),
    "block": lambda cache: cache.block(OWN, "id", "x"),
    "blocked": lambda cache: cache.blocked(OWN, "x"),
    "get": lambda cache: cache.get("acme", "id"),
    "delete": lambda cache: cache.delete(Selector("acme", tag="t")),
    "stats": lambda cache: cache.stats("acme"),
}


@asynccontextmanager
async def cached(url: str, *, begun: bool = True) -> AsyncGenerator[CacheStore]:
    """A cache as the process opens it, with its own deadlines."""
    background = Background()
    made = open_cache(url, background.spawn)
    try:
        if begun:
            await made.begin()
        yield made
    finally:
        await made.aclose()
        await background.join()


@pytest.fixture(params=["sets", "search", "valkey"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[RedisServer]:
    options = ("--loadmodule", search_module()) if request.param == "search" else ()
    program = valkey() if request.param == "valkey" else ""
    with redis_server(tmp_path / "redis", *options, program=program) as running:
        yield running


@pytest.fixture
async def way(server: RedisServer) -> AsyncGenerator[tuple[FaultProxy, CacheStore]]:
    """A cache that reaches its server through a proxy, and has something to give."""
    async with fault_proxy(server.port) as proxy, cached(proxy.url) as cache:
        await kept_at_last(cache)
        yield proxy, cache


async def kept_at_last(cache: CacheStore) -> Entry:
    """Keep an entry as soon as the store takes it, which has to be soon."""
    async with asyncio.timeout(8):
        while True:
            try:
                return await keep(cache, OWN, embedder="e", vector=vector())
            except StoreError:
                await asyncio.sleep(0.01)


async def found_at_last(cache: CacheStore, made: Entry) -> None:
    """Find an entry by its prompt and by its vector, where the store can."""
    wanted = ([made.id], [made.id])
    async with asyncio.timeout(8):
        while True:
            try:
                looked = (await cache.look(OWN, "x", "c-x")).exact
                near = await cache.nearest(OWN, "e", vector(), 8)
            except StoreError:
                await asyncio.sleep(0.01)
                continue
            found = ([looked.id] if looked else [], [each.entry.id for each in near])
            if found == (wanted if cache.has_vectors else (wanted[0], [])):
                return
            await asyncio.sleep(0.01)


async def refused_in(cache: CacheStore, name: str, pulse: Pulse) -> float:
    """Return how long a call took to be refused, but for the time that the loop stood still."""
    start = time.perf_counter()
    with pytest.raises(StoreError) as caught:
        await CALLS[name](cache)
    end = time.perf_counter()
    assert caught.value.code == "state_unavailable"
    await asyncio.sleep(0.005)
    return end - start - pulse.lost(start, end)


async def all_refused(cache: CacheStore, within_s: float = LATE_S) -> list[float]:
    """Have each call refused in time, then again: at once by then."""
    async with feeling() as pulse:
        names = [name for name in CALLS if name != "nearest" or cache.has_vectors]
        first = [await refused_in(cache, name, pulse) for name in names]
        again = [await refused_in(cache, name, pulse) for name in names]
    assert max(first) < within_s
    return again


@pytest.mark.fault("RS-2")
@pytest.mark.bug("K23")
async def test_a_killed_server_is_refused_at_once_and_used_when_it_is_back(
    server: RedisServer,
) -> None:
    async with cached(server.url) as cache:
        made = await kept_at_last(cache)
        server.kill()
        again = await all_refused(cache)
        assert sorted(again)[len(again) // 2] < ATONCE_S

        server.start()
        made = await kept_at_last(cache)
        await found_at_last(cache, made)


@pytest.mark.fault("RS-3")
@pytest.mark.bug("K23")
async def test_a_silent_server_costs_a_bounded_delay(
    way: tuple[FaultProxy, CacheStore],
) -> None:
    proxy, cache = way
    proxy.blackhole()
    again = await all_refused(cache)
    assert sorted(again)[len(again) // 2] < ATONCE_S

    proxy.heal()
    await found_at_last(cache, await kept_at_last(cache))


@pytest.mark.bug("K23")
async def test_a_server_that_was_silent_from_the_start_is_used_once_it_answers(
    server: RedisServer,
) -> None:
    async with fault_proxy(server.port) as proxy:
        proxy.blackhole()
        async with cached(proxy.url, begun=False) as cache:
            assert "does not answer now" in await cache.begin()
            assert not cache.has_vectors
            proxy.heal()
            made = await kept_at_last(cache)
            await found_at_last(cache, made)
            assert ("by similarity" in await cache.begin()) == cache.has_vectors


@pytest.mark.contract("O-4")
async def test_an_emptied_server_finds_nothing_and_begins_anew(
    server: RedisServer, way: tuple[FaultProxy, CacheStore]
) -> None:
    """Deletes are forgotten as well: nothing that was asked for before comes in after that."""
    _, cache = way
    before = (await cache.look(OWN, "x", "")).epoch
    server.ask("FLUSHALL")

    assert (await cache.look(OWN, "x", "c-x"))[:2] == (None, None)
    assert await cache.nearest(OWN, "e", vector(), 8) == []
    assert not await cache.put(entry(OWN, epoch=before))
    await found_at_last(cache, await kept_at_last(cache))


@pytest.mark.contract("O-4")
async def test_marks_that_were_lost_alone_mean_everything(
    server: RedisServer, way: tuple[FaultProxy, CacheStore]
) -> None:
    """A server may drop them when it is full: what they forbade does not come back."""
    _, cache = way
    deleted = await keep(cache, OWN, "y", tags=("t",))
    await cache.look(OWN, "x", "")
    async with cached(way[0].url) as other:
        server.ask("DEL", "gw:{acme}:cache:marks")
        for reader in (other, cache):
            assert (await reader.look(OWN, "x", "c-x"))[:2] == (None, None)
            assert (await reader.look(OWN, "y", ""))[:2] == (None, None)
            assert await reader.nearest(OWN, "e", vector(), 8) == []
            assert not await reader.put(deleted)


async def test_another_server_without_vectors_in_its_place_is_no_error(tmp_path: Path) -> None:
    with redis_server(tmp_path / "redis") as first:
        async with cached(first.url) as cache:
            await kept_at_last(cache)
            first.kill()
            with redis_server(tmp_path / "valkey", port=first.port, program=valkey()):
                made = await kept_at_last(cache)
                assert await cache.nearest(OWN, "e", vector(), 8) == []
                looked = await cache.look(OWN, "x", "")
                assert looked.exact is not None
                assert looked.exact.id == made.id
                assert not cache.has_vectors


# ------------------------------------------------------------------ Postgres


@pytest.fixture(scope="module")
def postgres_server() -> Generator[PostgresServer]:
    with running_postgres() as made:
        yield made


@pytest.fixture
def url(postgres_server: PostgresServer) -> Generator[str]:
    with fresh_schema(postgres_server.url) as made:
        yield made


@pytest.mark.fault("P-11")
@pytest.mark.bug("K23")
async def test_a_silent_postgres_costs_a_bounded_delay(url: str) -> None:
    port = str(urlsplit(url).port)
    async with linked(int(port)) as wire, cached(url.replace(port, str(wire.port))) as cache:
        await found_at_last(cache, await kept_at_last(cache))
        wire.freeze()
        async with feeling() as pulse:
            took = [await refused_in(cache, "look", pulse) for _ in range(20)]
        wire.thaw()
        await found_at_last(cache, await kept_at_last(cache))

    assert max(took) < LATE_S
    assert sorted(took)[len(took) // 2] < ATONCE_S


@pytest.mark.bug("K23")
async def test_a_killed_postgres_is_refused_in_time_and_used_when_it_is_back(
    postgres_server: PostgresServer, url: str
) -> None:
    async with cached(url) as cache:
        made = await kept_at_last(cache)
        await found_at_last(cache, made)
        postgres_server.stop()
        async with feeling() as pulse:
            took = [await refused_in(cache, "look", pulse) for _ in range(20)]
        postgres_server.start()
        await found_at_last(cache, made)

    assert max(took) < LATE_S
