"""Where cached answers may be kept: a cluster, a numbered database, a Postgres without vectors, one that is full."""

import random
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from gateway.core.caching import CacheStore, Found, Pool, Selector
from gateway.stores.cache_memory import MemoryCache
from gateway.stores.postgres.cache import PostgresCache
from gateway.stores.registry import open_cache
from tests.support.caches import (
    STORES,
    address,
    entry,
    ids,
    keep,
    opened,
    pool,
    vector,
)
from tests.support.outgoing import Background
from tests.support.postgres_server import sql
from tests.support.redis_server import redis_cluster, redis_server, search_module

PATIENT = "socket_timeout=5&socket_connect_timeout=5"


@asynccontextmanager
async def cached(url: str) -> AsyncGenerator[CacheStore]:
    background = Background()
    made = open_cache(url, background.spawn)
    try:
        await made.begin()
        yield made
    finally:
        await made.aclose()
        await background.join()


async def serves(cache: CacheStore, tenant: str) -> None:
    """Keep, find by each way, lead there, block, delete."""
    own = pool(tenant)
    made = await keep(cache, own, embedder="e", vector=vector())
    assert await cache.alias(made, "y", "c-y", vector(0.9), "other")
    for exact, canonical in (("x", "c-x"), ("y", "c-y")):
        looked = await cache.look(own, exact, canonical)
        assert [found and found.id for found in looked[:2]] == [made.id] * 2
    if cache.has_vectors:
        assert await ids(cache, own, vector()) == [made.id] * 2
    await cache.block(own, made.id, "y")
    assert await cache.blocked(own, "y") == {made.id}
    assert (await cache.stats(tenant))["entries"] == 1
    assert await cache.delete(Selector(tenant, tag="absent")) in {0, -1}
    assert await cache.get(tenant, made.id) is not None
    assert await cache.delete(Selector(tenant)) in {1, -1}
    assert (await cache.look(own, "x", "c-x"))[:2] == (None, None)
    assert await ids(cache, own, vector()) == []


@pytest.mark.slow
async def test_a_cluster_keeps_all_of_a_tenant_in_one_slot(tmp_path: Path) -> None:
    with redis_cluster(tmp_path, replicas=False) as nodes:
        async with cached(f"redis+cluster://127.0.0.1:{nodes[0].port}?{PATIENT}") as cache:
            tenants = [f"t-{number}" for number in range(12)]
            for tenant in tenants:
                await serves(cache, tenant)
                await keep(cache, pool(tenant), embedder="e", vector=vector())
        for tenant in tenants:
            assert sum(bool(node.ask("KEYS", f"gw:{{{tenant}}}:*")) for node in nodes) == 1
        assert sum(bool(node.ask("DBSIZE")) for node in nodes) == 3
        strays = [key for node in nodes for key in node.ask("KEYS", "*") if "{" not in key]
        assert strays == []


async def test_an_index_that_the_server_will_not_make_leaves_the_sets(tmp_path: Path) -> None:
    """The search module indexes database 0 alone."""
    with redis_server(tmp_path, "--loadmodule", search_module()) as server:
        async with cached(f"redis://127.0.0.1:{server.port}/3?{PATIENT}") as cache:
            await serves(cache, "acme")
            assert cache.has_vectors


@pytest.mark.parametrize("rights", [(), ("+vadd", "+vsim", "+vrem"), ("+ft.create", "+ft.search")])
async def test_a_user_with_the_least_rights_uses_what_they_allow(
    tmp_path: Path, rights: tuple[str, ...]
) -> None:
    common = [
        "on",
        ">pw",
        "~gw:*",
        "-@all",
        "+@connection",
        "+@read",
        "+@write",
        "+@scripting",
        "+time",
        "+info",
    ]
    with redis_server(tmp_path, "--loadmodule", search_module()) as server:
        server.ask("ACL", "SETUSER", "gw", *common, *rights)
        async with cached(f"redis://gw:pw@127.0.0.1:{server.port}/0?{PATIENT}") as cache:
            assert cache.has_vectors == bool(rights)
            await serves(cache, "acme")
        assert cache.has_vectors == bool(rights)


async def test_a_changed_embedder_is_a_new_index(tmp_path: Path) -> None:
    with redis_server(tmp_path, "--loadmodule", search_module()) as server:
        async with cached(f"{server.url}?{PATIENT}") as cache:
            own = pool("acme")
            for number, embedder in enumerate(("small", "large")):
                await keep(cache, own, f"{number}", embedder=embedder, vector=vector())
            await keep(cache, own, "2", embedder="large", vector=vector(dimension=16))
            names = server.ask("FT._LIST")

    assert len(names) == 3
    assert len({name.split(":")[-3] for name in names}) == 2
    assert sorted(name.split(":")[-2] for name in names) == ["16", "8", "8"]


async def test_a_full_server_that_may_drop_keys_never_gives_back_what_was_deleted(
    tmp_path: Path,
) -> None:
    limits = ("--maxmemory", "24mb", "--maxmemory-policy", "allkeys-random")
    with redis_server(tmp_path, *limits) as server:
        async with cached(f"{server.url}?{PATIENT}") as cache:
            own = pool("acme")
            for round_ in range(6):
                for number in range(40):
                    epoch = (await cache.look(own, f"{number}", "")).epoch
                    made = entry(own, f"{number}", epoch=epoch, answer=b"a" * 200_000, agent=f"{round_}")  # fmt: skip
                    await cache.put(made)
                await cache.delete(Selector("acme", agent=f"{round_}"))
                for number in range(40):
                    assert (await cache.look(own, f"{number}", f"c-{number}"))[:2] == (None, None)


@pytest.mark.parametrize("may_extend", [True, False])
async def test_postgres_without_the_extension_finds_equal_prompts(
    postgres: str, may_extend: bool
) -> None:
    """A user who may not install it, on a server where nobody did."""
    name = f"d_{uuid.uuid4().hex}"
    sql(postgres, f"CREATE ROLE {name} LOGIN PASSWORD 'x'", f"CREATE DATABASE {name} OWNER {name}")
    parts = urlsplit(postgres)
    where = parts.netloc.rpartition("@")[2]
    url = urlunsplit(parts._replace(path=f"/{name}", netloc=f"{name}:x@{where}"))
    if may_extend:
        sql(url.replace(f"{name}:x@", "postgres@"), "CREATE SCHEMA odd", "CREATE EXTENSION vector SCHEMA odd")  # fmt: skip
        sql(url.replace(f"{name}:x@", "postgres@"), f"GRANT USAGE ON SCHEMA odd TO {name}")
    background = Background()
    cache = PostgresCache(url, background.spawn, read_s=5.0)
    try:
        words = await cache.begin()
        await serves(cache, "acme")
    finally:
        await cache.aclose()
        await background.join()
        sql(postgres, f"DROP DATABASE {name} WITH (FORCE)", f"DROP ROLE {name}")

    assert cache.has_vectors == may_extend
    assert ("equal prompts alone" in words) != may_extend


def chosen(pools: list[Pool], dice: random.Random) -> Pool:
    return pools[dice.randrange(len(pools))]


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.bug("K19")
@pytest.mark.contract("O-4")
@pytest.mark.parametrize("store", STORES)
async def test_random_work_of_many_pools_never_crosses(
    store: str, tenant: str, request: pytest.FixtureRequest
) -> None:
    """The same ids, keys and vectors everywhere; each answer names its pool and the epoch of its deletes."""
    dice = random.Random(7)
    pools = [
        pool(f"{tenant}-{n}", f"s{value}", namespace=namespace, fingerprint=f"f{fingerprint}")
        for n in range(3)
        for value in range(2)
        for namespace in ("n", "m")
        for fingerprint in range(2)
    ]
    life = dict.fromkeys(pools, 0)
    found = 0
    async with opened(store, address(store, request))() as cache:
        for _ in range(400 if store == "postgres" else 2_000):
            own, prompt = chosen(pools, dice), f"x{dice.randrange(6)}"
            looked = await cache.look(own, prompt, f"c-{prompt}")
            asked = vector(dice.choice((1.0, 0.5, -0.5)), dice.randrange(1, 4))
            near: list[Found] = list(await cache.nearest(own, "e", asked, 3))
            answers = [each.answer for each in looked[:2] if each] + [each.entry.answer for each in near]  # fmt: skip
            found += len(answers)
            assert set(answers) <= {f"{own} {life[own]}".encode()}
            if dice.random() < 0.6:
                number = f"id-{own.partition[:2]}-{dice.randrange(10**9)}"
                made = entry(
                    own, prompt, id=number, epoch=looked.epoch, embedder="e", vector=asked,
                    answer=f"{own} {life[own]}".encode(), expires=4_600.0,
                )  # fmt: skip
                assert await cache.put(made)
            elif dice.random() < 0.1:
                selector = Selector(own.tenant, namespace=own.namespace, value=own.value)
                await cache.delete(selector)
                for each in pools:
                    if each.tenant == own.tenant and each.namespace == own.namespace and each.value == own.value:  # fmt: skip
                        life[each] += 1
    assert found > 100


def test_memory_is_opened_without_an_address() -> None:
    assert isinstance(open_cache("memory", Background().spawn), MemoryCache)
