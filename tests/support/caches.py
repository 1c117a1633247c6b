"""Caches of answers, opened for tests over every store, and entries with vectors whose similarity is known."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from typing import Any

import numpy as np
import pytest

from gateway.core.caching import CacheStore, Entry, Pool
from gateway.stores.cache_memory import MemoryCache
from gateway.stores.postgres.cache import PostgresCache
from gateway.stores.registry import open_cache
from tests.support.outgoing import Background
from tests.support.postgres_server import sql
from tests.support.redis_server import search_module, shared_server, valkey

STORES = ("memory", "memory+usearch", "redis sets", "redis search", "valkey", "postgres")
WITHOUT_VECTORS = ("valkey",)
DIMENSION = 8
Opening = Callable[[], AbstractAsyncContextManager[CacheStore]]
"""Opens a cache; each time as another process does, where the store is shared."""

_ids = count()


def address(store: str, request: pytest.FixtureRequest) -> str:
    """Return the address of a store, started where it is not yet."""
    match store:
        case "redis sets":
            return shared_server()
        case "redis search":
            return shared_server("--loadmodule", search_module())
        case "valkey":
            return shared_server(program=valkey())
        case "postgres":
            return str(request.getfixturevalue("postgres_url"))
        case _:
            return "memory"


def opened(store: str, url: str) -> Opening:
    """Return how to open a cache."""
    memory = MemoryCache(large=4 if store == "memory+usearch" else 10**9)

    @asynccontextmanager
    async def opening() -> AsyncGenerator[CacheStore]:
        if url == "memory":
            yield memory
            return
        background = Background()
        if store == "postgres":
            made: CacheStore = PostgresCache(url, background.spawn, read_s=5.0)
        else:
            made = open_cache(url, background.spawn)
        try:
            await made.begin()
            yield made
        finally:
            await made.aclose()
            await background.join()

    return opening


def vector(similarity: float = 1.0, side: int = 1, dimension: int = DIMENSION) -> bytes:
    """Return a vector with this similarity to `vector()`; it leans to one of several sides."""
    made = np.zeros(dimension, np.float32)
    made[0] = similarity
    made[side] = (1 - similarity**2) ** 0.5
    return made.tobytes()


def new_id() -> str:
    """Name an entry."""
    return f"entry-{next(_ids)}"


def pool(tenant: str, value: str = "s", **more: str) -> Pool:
    """Describe a pool of a tenant."""
    fields = {"namespace": "n", "scope": "session", "fingerprint": "f", **more}
    return Pool(tenant=tenant, value=value, **fields)


def entry(of: Pool, exact: str = "x", **more: Any) -> Entry:
    """Write an entry that lives for a minute; `more` are its other fields."""
    fields: dict[str, Any] = {
        "id": new_id(),
        "asked": f"what is {exact}?",
        "canonical": f"c-{exact}",
        "answer": b"answer \x00\xff",
        "created": 1_000.0,
        "expires": 1_060.0,
        **more,
    }
    return Entry(pool=of, exact=exact, **fields)


async def keep(cache: CacheStore, of: Pool, exact: str = "x", **more: Any) -> Entry:
    """Keep an entry as a request does that looked before."""
    epoch = (await cache.look(of, exact, "")).epoch
    made = entry(of, exact, **{"epoch": epoch, **more})
    assert await cache.put(made)
    return made


async def keep_many(cache: CacheStore, entries: list[Entry], at_once: int = 64) -> None:
    """Keep many entries, some at once."""
    for at in range(0, len(entries), at_once):
        assert all(await asyncio.gather(*map(cache.put, entries[at : at + at_once])))


def same(found: Entry | None, kept: Entry) -> bool:
    """Tell whether an entry came back whole; its times are the store's."""
    if found is None:
        return False
    assert found.expires - found.created == pytest.approx(kept.expires - kept.created, abs=0.01)
    names = set(Entry.__struct_fields__) - {"created", "expires"}
    return all(getattr(found, name) == getattr(kept, name) for name in names)


def crowd(url: str) -> None:
    """Copy what is foreign nine times inside Postgres, which takes minutes to be told so much by its own port."""
    sql(
        url,
        "INSERT INTO gateway_cache SELECT tenant, id || n, partition, namespace, scope, value, model, agent, tags, "
        "written, answer, vector, created, expires FROM gateway_cache, generate_series(1, 9) AS n "
        "WHERE answer = 'foreign'",
        "INSERT INTO gateway_cache_prompts SELECT p.tenant, prompt || n, '', space, entry || n, alias, made, "
        "p.expires, v FROM gateway_cache_prompts AS p JOIN gateway_cache AS e ON e.tenant = p.tenant "
        "AND e.id = p.entry, generate_series(1, 9) AS n WHERE answer = 'foreign'",
    )


async def ids(
    cache: CacheStore, of: Pool, asked: bytes, embedder: str = "e", most: int = 8
) -> list[str]:
    """Return the ids of what is near."""
    return [found.entry.id for found in await cache.nearest(of, embedder, asked, most)]


async def gone(cache: CacheStore, of: Pool, exact: str = "x") -> None:
    """Wait until a prompt finds nothing."""
    async with asyncio.timeout(5):
        while (await cache.look(of, exact, "")).exact is not None:
            await asyncio.sleep(0.01)
