"""One suite over every store of sealed state in the registry (K32)."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from gateway.core.ports import OpaqueStore
from gateway.core.scope import Scope, digest
from gateway.stores.opaque import MemoryOpaque
from gateway.stores.redis.client import Client
from gateway.stores.registry import open_opaque
from tests.support.outgoing import Background
from tests.support.redis_server import redis_server, shared_url

TTL_S = 30.0
ODD = bytes(range(256)) + b"\r\n$-1\r\n"

pytestmark = pytest.mark.bug("K32")


@pytest.fixture(params=["memory", "redis"])
async def store(request: pytest.FixtureRequest) -> AsyncGenerator[OpaqueStore]:
    background = Background()
    url = "memory" if request.param == "memory" else shared_url()
    store = open_opaque(url, background.spawn)
    yield store
    await store.aclose()
    await background.join()


async def test_items_come_back_byte_for_byte(store: OpaqueStore, tenant: str) -> None:
    items = {"call:a": ODD, "call:b": b"", "call:ünï \n {x}": b"{}", "c" * 10_000: b"long"}
    assert await store.put_many(tenant, items, TTL_S)

    assert await store.get_many(tenant, [*items, "call:unknown"]) == items
    assert await store.get_many(tenant, ["call:b"]) == {"call:b": b""}


async def test_nothing_is_asked_for_and_nothing_kept(store: OpaqueStore, tenant: str) -> None:
    assert await store.put_many(tenant, {}, TTL_S)
    assert await store.get_many(tenant, []) == {}
    assert await store.get_many(tenant, ["call:a"]) == {}


async def test_a_newer_item_replaces_an_older(store: OpaqueStore, tenant: str) -> None:
    await store.put_many(tenant, {"call:a": b"1", "call:b": b"2"}, TTL_S)
    await store.put_many(tenant, {"call:a": b"3"}, TTL_S)

    assert await store.get_many(tenant, ["call:b", "call:a"]) == {"call:a": b"3", "call:b": b"2"}


async def test_a_large_history_comes_back(store: OpaqueStore, tenant: str) -> None:
    items = {f"call:{number}": b"%d" % number * 100 for number in range(1200)}
    assert await store.put_many(tenant, items, TTL_S)

    assert await store.get_many(tenant, list(items)) == items


async def test_items_end_with_their_time(store: OpaqueStore, tenant: str) -> None:
    await store.put_many(tenant, {"call:a": b"1"}, 0.03)
    await store.put_many(tenant, {"call:b": b"2"}, TTL_S)
    await asyncio.sleep(0.06)

    assert await store.get_many(tenant, ["call:a", "call:b"]) == {"call:b": b"2"}


async def test_what_is_used_is_kept_on_and_never_shorter(store: OpaqueStore, tenant: str) -> None:
    await store.put_many(tenant, {"call:a": b"1", "call:b": b"2"}, 0.05)
    await store.put_many(tenant, {"call:c": b"3"}, TTL_S)
    ids = ["call:a", "call:unknown", "call:c"]

    assert await store.get_many(tenant, ids, TTL_S) == {"call:a": b"1", "call:c": b"3"}
    assert await store.get_many(tenant, ["call:c"], 0.01) == {"call:c": b"3"}
    await asyncio.sleep(0.08)
    assert await store.get_many(tenant, [*ids, "call:b"]) == {"call:a": b"1", "call:c": b"3"}
    many = {f"call:{number}": b"x" for number in range(1200)}
    await store.put_many(tenant, many, TTL_S)
    assert await store.get_many(tenant, list(many), TTL_S) == many


@pytest.mark.threat("T-16")
async def test_tenants_do_not_share_an_id(store: OpaqueStore, tenant: str) -> None:
    await store.put_many(tenant, {"call:a": b"1"}, TTL_S)

    assert await store.get_many(f"{tenant}x", ["call:a"]) == {}


@pytest.mark.bug("K38")
async def test_memory_is_bounded_by_number_and_bytes_for_each_tenant() -> None:
    now = [0.0]
    store = MemoryOpaque(max_items=3, max_bytes=25, now=lambda: now[0])
    for number in range(5):
        await store.put_many("acme", {str(number): b"x" * 5}, 10)
    await store.put_many("globex", {"0": b"y"}, 10)
    ids = [str(number) for number in range(5)]

    assert set(await store.get_many("acme", ids)) == {"2", "3", "4"}
    await store.put_many("acme", {"big": b"x" * 20, "huge": b"x" * 26}, 10)
    assert set(await store.get_many("acme", [*ids, "big", "huge"])) == {"4", "big"}
    assert set(await store.get_many("globex", ids)) == {"0"}
    now[0] = 10.0
    assert await store.get_many("acme", ids) == {}
    await store.put_many("acme", {"new": b"z"}, 10)
    assert list(store._shelves["acme"].items) == [digest("new")]
    assert store._shelves["acme"].total == 1


async def test_redis_keeps_items_by_digest_under_the_tenant(tenant: str) -> None:
    background = Background()
    store = open_opaque(shared_url(), background.spawn)
    client = Client(shared_url(), background.spawn)
    await store.put_many(tenant, {"call:a}{b": b"1"}, TTL_S)
    name = Scope(tenant).key("opaque", digest("call:a}{b"))

    assert await client.command(name, "GET", name) == b"1"
    assert 0 < await client.command(name, "PTTL", name) <= TTL_S * 1000
    await client.aclose()
    await store.aclose()
    await background.join()


@pytest.mark.bug("K23")
async def test_redis_that_is_gone_knows_nothing_and_fails_nobody(
    tmp_path: Path, tenant: str
) -> None:
    background = Background()
    with redis_server(tmp_path) as server:
        store = open_opaque(server.url, background.spawn)
        assert await store.put_many(tenant, {"call:a": b"1"}, TTL_S)
        server.kill()
        async with asyncio.timeout(2):
            assert await store.get_many(tenant, ["call:a"]) is None
            assert not await store.put_many(tenant, {"call:a": b"2"}, TTL_S)
        await store.aclose()
        await background.join()
