"""What Redis and the way to it may do: be killed, silent, late, full, forgetful (rows RS, G-7, G-8)."""

import asyncio
import random
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.core.counting import Ended, Holds
from gateway.core.errors import StoreError
from gateway.stores.redis.counters import RedisCounters
from gateway.stores.registry import log_in_as
from tests.support.fault_proxy import fault_proxy
from tests.support.redis_calls import (
    KEY,
    PATIENT,
    SLOW_S,
    hold,
    offered,
    ping,
    refused_after,
    using,
    works_after,
)
from tests.support.redis_server import RedisServer, free_port, redis_server
from tests.support.scripted_upstream import until

LOOPS = ("asyncio", "uvloop")
LEASE_S = 60.0
ATONCE_S = 0.01
AT_LEISURE_S = 1.0
"""Far from the limit of patient calls."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with redis_server(tmp_path / "redis") as running:
        yield running


@pytest.mark.fault("RS-1")
async def test_down_at_the_start_is_no_harm_once_it_is_up(tmp_path: Path) -> None:
    server = RedisServer(tmp_path, port=free_port())
    async with using(server.url) as client:
        first, second = await refused_after(client), await refused_after(client)
        server.start()
        try:
            back = await works_after(client)
        finally:
            server.kill()

    assert first < SLOW_S
    assert second < ATONCE_S
    assert back < 0.5


@pytest.mark.fault("RS-2", "RS-12")
@pytest.mark.contract("G-7")
async def test_a_killed_server_refuses_at_once_and_is_back_at_once(server: RedisServer) -> None:
    async with using(server.url) as client:
        await ping(client)
        server.kill()

        failed = await offered(client, 50, every_s=0.01)
        server.start()
        back = await works_after(client)
        after = await offered(client, 50, every_s=0.002)

    assert len(failed) == 50
    assert max(one.took for one in failed) < SLOW_S
    assert sorted(one.took for one in failed)[45] < ATONCE_S
    assert back < 0.3
    assert after == []


@pytest.mark.fault("RS-2")
async def test_calls_survive_a_connection_that_was_closed_under_them(server: RedisServer) -> None:
    async with fault_proxy(server.port) as proxy, using(proxy.url, PATIENT) as client:
        await ping(client)
        proxy.cut()
        assert await ping(client) == b"PONG"

        proxy.swallow_replies = True
        waiting = [asyncio.ensure_future(ping(client)) for _ in range(5)]
        await asyncio.sleep(0.01)
        proxy.heal()
        proxy.cut()
        assert await asyncio.gather(*waiting) == [b"PONG"] * 5


async def test_what_may_not_be_sent_twice_fails_with_its_connection(server: RedisServer) -> None:
    async with fault_proxy(server.port) as proxy, using(proxy.url, PATIENT) as client:
        await ping(client)
        proxy.swallow_replies = True
        waiting = asyncio.ensure_future(client.command(KEY, "INCR", KEY, again=False))
        await until(lambda: server.ask("GET", KEY) == "1")
        proxy.heal()
        proxy.cut()

        with pytest.raises(StoreError):
            await waiting
        assert server.ask("GET", KEY) == "1"


@pytest.mark.fault("RS-3")
@pytest.mark.contract("G-8")
@pytest.mark.bug("K23")
async def test_a_silent_server_costs_a_bounded_delay(server: RedisServer) -> None:
    async with fault_proxy(server.port) as proxy, using(proxy.url) as client:
        await ping(client)
        proxy.blackhole()

        failed = await offered(client, 200, every_s=0.003)
        accepted = proxy.accepted
        proxy.heal()
        back = await works_after(client)

    late = [one.took for one in failed if one.start > SLOW_S + one.lost]
    assert len(failed) == 200
    assert max(one.took for one in failed) < SLOW_S
    assert len(late) > 100
    assert sorted(late)[int(len(late) * 0.99)] < ATONCE_S
    assert accepted < 12
    assert back < 0.5


@pytest.mark.fault("RS-3")
async def test_a_server_that_falls_silent_is_noticed_without_traffic(server: RedisServer) -> None:
    """One call pays, the next one that comes later does not."""
    async with fault_proxy(server.port) as proxy, using(proxy.url) as client:
        await ping(client)
        proxy.blackhole()
        await refused_after(client)
        await asyncio.sleep(0.2)

        assert await refused_after(client) < ATONCE_S


@pytest.mark.fault("RS-4")
async def test_a_little_late_is_waited_for(server: RedisServer) -> None:
    async with fault_proxy(server.port) as proxy, using(proxy.url) as client:
        await ping(client)
        proxy.delay_s = 0.03

        failed = await offered(client, 30, every_s=0.005)

    assert [one for one in failed if one.lost < 0.02] == []


@pytest.mark.fault("RS-4")
@pytest.mark.parametrize("delay_s", [0.3, 3.0])
async def test_very_late_is_down(server: RedisServer, delay_s: float) -> None:
    async with fault_proxy(server.port) as proxy, using(proxy.url) as client:
        await ping(client)
        proxy.delay_s = delay_s

        failed = await offered(client, 100, every_s=0.005)
        proxy.heal()
        back = await works_after(client)

    assert len(failed) == 100
    assert max(one.took for one in failed) < SLOW_S
    assert sorted(one.took for one in failed if one.start > SLOW_S)[-3] < ATONCE_S
    assert back < 0.5


@pytest.mark.fault("RS-4", "RS-13")
@pytest.mark.threat("T-16")
async def test_replies_reach_those_who_asked_whoever_leaves(server: RedisServer) -> None:
    rng = random.Random(4)

    async with fault_proxy(server.port) as proxy, using(proxy.url, PATIENT) as client:
        wrong: list[tuple[str, object]] = []
        answered = 0

        async def one(name: str) -> None:
            nonlocal answered
            if rng.random() < 0.5:
                reply = await client.command(KEY, "ECHO", name)
            else:
                reply = await client.script("used", [f"gw:{{t}}:{name}"], ())
            answered += 1
            if reply not in (name.encode(), [0]):
                wrong.append((name, reply))

        async def leave_early(name: str) -> None:
            try:
                async with asyncio.timeout(rng.choice((0.0, 0.002, 0.02, 5.0))):
                    await one(name)
            except (TimeoutError, StoreError):
                return

        async with asyncio.TaskGroup() as group:
            for number in range(3000):
                if number % 100 == 0:
                    proxy.delay_s = rng.choice((0.0, 0.002, 0.01, 0.03))
                if number % 500 == 0:
                    proxy.cut()
                group.create_task(leave_early(f"name-{number}"))
                if number % 7 == 0:
                    await asyncio.sleep(0)
                if number % 50 == 0:
                    await asyncio.sleep(0.002)
        proxy.heal()
        await works_after(client)

    assert wrong == []
    assert answered > 300


@pytest.mark.fault("RS-13")
async def test_a_late_reply_is_dropped(server: RedisServer) -> None:
    async with fault_proxy(server.port) as proxy, using(proxy.url, PATIENT) as client:
        await ping(client)
        proxy.delay_s = 0.03
        for number in range(20):
            gone = asyncio.ensure_future(client.command(KEY, "ECHO", f"gone-{number}"))
            await asyncio.sleep(0)
            gone.cancel()
            assert await client.command(KEY, "ECHO", f"here-{number}") == f"here-{number}".encode()
        assert proxy.accepted == 1


@pytest.mark.fault("RS-5")
async def test_a_full_server_refuses_reservations_and_still_settles(server: RedisServer) -> None:
    async with using(server.url, PATIENT) as client:
        counters = RedisCounters(client)
        await counters.reserve("t", "run", [hold(amount=5)], LEASE_S)
        server.ask("CONFIG", "SET", "maxmemory", "100kb")
        start = time.perf_counter()

        with pytest.raises(StoreError, match="store"):
            await counters.reserve("t", "other", [hold()], LEASE_S)
        assert time.perf_counter() - start < AT_LEISURE_S
        assert await counters.used("t", [hold()]) == [5]
        await counters.renew("t", ["run"], 0.0)
        assert [one.id for one in await counters.expired("t", 5)] == ["run"]
        assert await counters.settle("t", "run", [hold()], [3])
        assert await counters.used("t", [hold()]) == [3]

        server.ask("CONFIG", "SET", "maxmemory", "0")
        assert (await counters.reserve("t", "other", [hold()], LEASE_S)).granted


@pytest.mark.fault("RS-5")
@pytest.mark.bug("K15")
async def test_one_run_that_cannot_be_settled_keeps_out_no_others(server: RedisServer) -> None:
    async with using(server.url, PATIENT) as client:
        counters = RedisCounters(client)
        ended: list[Ended] = []
        for number in range(5):
            holds = Holds([hold(f"c{number}")])
            assert (await counters.reserve("t", f"run{number}", holds, LEASE_S)).granted
            ended.append(Ended("t", f"run{number}", holds, (number,)))
        server.ask("SET", f"{ended[2].holds[0].key}:0-0", "no counter")

        errors = await counters.settle_all(ended)

        assert [error is None for error in errors] == [True, True, False, True, True]
        left = [holds for at, (_, _, holds, _) in enumerate(ended) if at != 2]
        assert [await counters.used("t", each) for each in left] == [[0], [1], [3], [4]]


@pytest.mark.fault("RS-6")
async def test_a_server_that_became_a_replica_is_left_until_it_is_none(server: RedisServer) -> None:
    async with using(server.url, PATIENT) as client:
        counters = RedisCounters(client)
        await counters.reserve("t", "run", [hold()], LEASE_S)
        server.ask("REPLICAOF", "127.0.0.1", free_port())

        waits: list[float] = []
        for _ in range(20):
            start = time.perf_counter()
            with pytest.raises(StoreError):
                await counters.reserve("t", "other", [hold()], LEASE_S)
            waits.append(time.perf_counter() - start)
        server.ask("REPLICAOF", "NO", "ONE")
        back = await works_after(client)

        assert max(waits) < AT_LEISURE_S
        assert back < 0.3
        assert (await counters.reserve("t", "other", [hold()], LEASE_S)).granted


@pytest.mark.fault("RS-8")
async def test_forgotten_scripts_are_loaded_in_the_same_call(server: RedisServer) -> None:
    async with using(server.url, PATIENT) as client:
        counters = RedisCounters(client)
        for number in range(5):
            server.ask("SCRIPT", "FLUSH")
            assert (await counters.reserve("t", f"{number}", [hold()], LEASE_S)).granted
        calls = server.ask("INFO", "commandstats")["cmdstat_eval"]["calls"]

    assert calls == 5


@pytest.mark.fault("RS-10")
async def test_without_a_free_connection_it_is_down_and_loses_none(server: RedisServer) -> None:
    async with fault_proxy(server.port) as proxy, using(proxy.url) as client:
        server.ask("CONFIG", "SET", "maxclients", "1")
        holder = _Held(server)
        try:
            failed = await offered(client, 40, every_s=0.01)
            left = proxy.open
        finally:
            holder.close()
        back = await works_after(client)

    assert len(failed) == 40
    assert max(one.took for one in failed) < SLOW_S
    assert left <= 1
    assert back < 0.5


class _Held:
    """Somebody else's connection, which takes the last place."""

    def __init__(self, server: RedisServer) -> None:
        self._sock = socket.create_connection(("127.0.0.1", server.port))
        self._sock.sendall(b"PING\r\n")
        assert self._sock.recv(100).startswith(b"+PONG")

    def close(self) -> None:
        self._sock.close()


@pytest.mark.fault("RS-11")
@pytest.mark.bug("K28")
async def test_a_changed_password_counts_from_the_next_connection_on(server: RedisServer) -> None:
    old, new = "canary-old-password", "canary-new-password"
    rule = ("~*", "&*", "+@all", "on")
    server.ask("ACL", "SETUSER", "gw", f">{old}", *rule)
    address = f"redis://gw:{{}}@127.0.0.1:{server.port}/0"
    async with using(address.format(old), PATIENT) as client:
        await ping(client)
        server.ask("ACL", "SETUSER", "gw", "resetpass", f">{new}")
        assert await ping(client) == b"PONG"

        server.ask("CLIENT", "KILL", "USER", "gw")
        with pytest.raises(StoreError) as caught:
            await ping(client)
        log_in_as(client._key[0], client._key[1], address.format(new))
        back = await works_after(client)

    assert "canary" not in f"{caught.value!r} {caught.value.detail}"
    assert "WRONGPASS" in caught.value.detail
    assert back < 0.3


@pytest.mark.fault("RS-12")
async def test_those_who_come_back_do_not_come_at_once(server: RedisServer) -> None:
    async with fault_proxy(server.port) as proxy, asyncio.TaskGroup() as group:
        await proxy.refuse()
        done = asyncio.Event()

        async def other() -> None:
            async with using(proxy.url, PATIENT) as client:
                while not done.is_set():
                    await asyncio.sleep(0.01)
                    try:
                        await ping(client)
                    except StoreError:
                        continue

        for _ in range(20):
            group.create_task(other())
        await asyncio.sleep(0.6)
        await proxy.accept()
        await until(lambda: proxy.open == 20)
        accepted = proxy.accepted
        await asyncio.sleep(0.2)
        done.set()

    assert accepted == 20
    assert proxy.accepted == 20
