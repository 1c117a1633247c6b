"""Sentinels name another primary, slots of a cluster move, writes are lost on the way (RS-6, RS-7, RS-9)."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from redis.crc import key_slot

from gateway.core.errors import StoreError
from gateway.stores.redis.client import Client
from gateway.stores.redis.counters import RedisCounters
from tests.support.redis_calls import PATIENT, hold, using, works_after
from tests.support.redis_server import (
    RedisServer,
    free_port,
    redis_cluster,
    redis_sentinels,
    redis_server,
    wait_for,
)

LEASE_S = 60.0
pytestmark = pytest.mark.slow


async def reserves(client: Client) -> object:
    return await RedisCounters(client).reserve("t", "run", [hold()], LEASE_S)


def slot() -> int:
    return key_slot(b"gw:{t}:x")


@pytest.fixture
def sentinels(
    tmp_path: Path,
) -> Iterator[tuple[RedisServer, RedisServer, list[RedisServer], str]]:
    with redis_sentinels(tmp_path) as (primary, replica, guards):
        hosts = ",".join(f"127.0.0.1:{guard.port}" for guard in guards)
        yield primary, replica, guards, f"redis+sentinel://{hosts}/state"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[list[RedisServer]]:
    with redis_cluster(tmp_path) as nodes:
        yield nodes


def cluster_url(*nodes: RedisServer) -> str:
    return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in nodes)


def owner(nodes: list[RedisServer]) -> RedisServer:
    """Return the primary that holds the tenant's slot."""
    return next(node for node in nodes[:3] if _owns(node))


def _owns(node: RedisServer) -> bool:
    for first, last, primary, *_ in node.ask("CLUSTER", "SLOTS"):
        if first <= slot() <= last:
            return bool(primary[1] == node.port)
    return False


@pytest.mark.fault("RS-6", "RS-7")
@pytest.mark.bug("K15")
async def test_the_new_primary_is_used_once_sentinels_name_it(
    sentinels: tuple[RedisServer, RedisServer, list[RedisServer], str],
) -> None:
    primary, replica, guards, url = sentinels
    async with using(url) as client:
        counters = RedisCounters(client)
        lifted = hold(lifted=True)
        await counters.reserve("t", "run", [lifted._replace(base=5)], LEASE_S)
        assert await counters.settle("t", "before", [lifted], [2])
        primary.ask("WAIT", 1, 1000)
        primary.kill()
        with pytest.raises(StoreError):
            await reserves(client)
        wait_for(lambda: named(guards[0]) == replica.port, "another primary", within_s=20)
        start = time.perf_counter()
        await works_after(client, reserves)
        back = time.perf_counter() - start

        assert back < 1
        assert not await counters.settle("t", "before", [lifted], [2])
        verdict = await counters.reserve("t", "after", [lifted], LEASE_S)
        assert verdict.missing == (0,)
        verdict = await counters.reserve("t", "after", [lifted._replace(base=9)], LEASE_S)
        assert verdict.used == (11,)


def named(guard: RedisServer) -> int:
    return int(guard.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "state")[1])


@pytest.mark.fault("RS-6")
async def test_a_primary_that_lives_is_left_when_sentinels_name_another(
    sentinels: tuple[RedisServer, RedisServer, list[RedisServer], str],
) -> None:
    _, replica, guards, url = sentinels
    async with using(url) as client:
        await works_after(client, reserves)
        guards[1].ask("SENTINEL", "FAILOVER", "state")
        wait_for(lambda: named(guards[0]) == replica.port, "another primary", within_s=20)

        def moved() -> bool:
            return bool(replica.ask("EXISTS", "gw:{t}:moved"))

        async def mark(client: Client) -> object:
            return await client.command("gw:{t}:x", "SET", "gw:{t}:moved", "1")

        start = time.perf_counter()
        while not moved() and time.perf_counter() - start < 10:
            with suppress(StoreError):
                await mark(client)
            await asyncio.sleep(0.02)

        assert moved()
        assert time.perf_counter() - start < 2


@pytest.mark.fault("RS-6")
async def test_one_sentinel_is_enough(
    sentinels: tuple[RedisServer, RedisServer, list[RedisServer], str],
) -> None:
    _, _, guards, url = sentinels
    guards[0].pause()
    guards[1].kill()
    async with using(url, PATIENT._replace(connect_s=1.0)) as client:
        await works_after(client, reserves)


@pytest.mark.fault("RS-7")
@pytest.mark.bug("K15")
async def test_after_a_restart_counters_are_lifted_anew(tmp_path: Path) -> None:
    with redis_server(tmp_path, "--appendonly", "yes", "--appendfsync", "always") as server:
        async with using(server.url) as client:
            counters = RedisCounters(client)
            lifted = hold(lifted=True)
            name = "run"
            await counters.reserve("t", name, [lifted._replace(base=5)], LEASE_S)
            server.kill()
            server.start()
            await works_after(client, reserves)

            verdict = await counters.reserve("t", "next", [lifted], LEASE_S)
            assert verdict.missing == (0,)
            assert verdict.used == (6,)
            verdict = await counters.reserve("t", "next", [lifted._replace(base=7)], LEASE_S)
            assert verdict.used == (9,)
            assert (await counters.reserve("t", "last", [lifted], LEASE_S)).granted
            assert await counters.settle("t", name, [lifted], [1])


@pytest.mark.fault("RS-9")
async def test_a_cluster_serves_all_tenants(cluster: list[RedisServer]) -> None:
    async with using(cluster_url(cluster[0])) as client:
        counters = RedisCounters(client)
        for number in range(20):
            tenant = f"tenant-{number}"
            holds = [hold("a", tenant=tenant), hold("b", tenant=tenant)]
            await works_after(client)
            assert (await counters.reserve(tenant, "run", holds, 0.0)).granted
            assert (await counters.extend(tenant, "run", [2, 3])).used == (2, 3)
            assert [one.id for one in await counters.expired(tenant, 5)] == ["run"]
            assert await counters.settle(tenant, "run", holds, [1, 1])


@pytest.mark.fault("RS-9")
async def test_a_slot_that_moves_is_followed_before_while_and_after(
    cluster: list[RedisServer],
) -> None:
    source = owner(cluster)
    target = next(node for node in cluster[:3] if node is not source)
    async with using(cluster_url(source), PATIENT) as client:
        counters = RedisCounters(client)
        assert (await counters.reserve("t", "before", [hold()], LEASE_S)).used == (1,)
        target.ask("CLUSTER", "SETSLOT", slot(), "IMPORTING", source.ask("CLUSTER", "MYID"))
        source.ask("CLUSTER", "SETSLOT", slot(), "MIGRATING", target.ask("CLUSTER", "MYID"))

        assert await counters.used("t", [hold()]) == [1]
        moving = asyncio.ensure_future(
            counters.reserve("t", "while", [hold(), hold("new")], LEASE_S)
        )
        await asyncio.sleep(0.02)
        keys = source.ask("CLUSTER", "GETKEYSINSLOT", slot(), 100)
        source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
        assert (await counters.extend("t", "before", [2])).granted
        assert not moving.done()
        for node in (target, source):
            node.ask("CLUSTER", "SETSLOT", slot(), "NODE", target.ask("CLUSTER", "MYID"))
        assert (await moving).granted

        verdict = await counters.reserve("t", "after", [hold()], LEASE_S)

        assert verdict.granted
        assert verdict.used == (4,)
        assert target.ask("EXISTS", "gw:{t}:counters:run:after") == 1


@pytest.mark.fault("RS-9", "RS-6")
async def test_the_replica_of_a_dead_node_is_found(cluster: list[RedisServer]) -> None:
    dead = owner(cluster)
    async with using(cluster_url(*cluster[:3])) as client:
        await works_after(client, reserves)
        dead.kill()
        start = time.perf_counter()
        with pytest.raises(StoreError):
            await RedisCounters(client).reserve("t", "other", [hold()], LEASE_S)
        assert time.perf_counter() - start < 1
        replica = cluster[3 + cluster.index(dead)]
        wait_for(lambda: replica.ask("ROLE")[0] == "master", "promotion", within_s=20)

        assert await works_after(client, reserves, within_s=10) < 5


@pytest.mark.fault("RS-9")
async def test_a_cluster_that_is_not_there_is_down(tmp_path: Path) -> None:
    async with using(f"redis+cluster://127.0.0.1:{free_port()}") as client:
        waits: list[float] = []
        for _ in range(5):
            start = time.perf_counter()
            with pytest.raises(StoreError):
                await reserves(client)
            waits.append(time.perf_counter() - start)

        assert sorted(waits)[2] < 0.05


@pytest.mark.fault("RS-9")
@pytest.mark.threat("T-16")
async def test_keys_of_two_tenants_are_never_in_one_script(cluster: list[RedisServer]) -> None:
    async with using(cluster_url(*cluster[:3]), PATIENT) as client:
        holds = [hold(tenant="t"), hold(tenant="another")]

        with pytest.raises(StoreError) as caught:
            await RedisCounters(client).reserve("t", "run", holds, LEASE_S)

        assert "CROSSSLOT" in caught.value.detail
        assert await RedisCounters(client).used("t", [hold()]) == [0]
