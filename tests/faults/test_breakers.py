"""Providers that fail for long, seen by clients: left alone, tried by single calls, used again when they are well."""

import asyncio
import time
from pathlib import Path
from statistics import median

import httpx2
import pytest

from gateway.core.probing import LocalPermits
from gateway.upstream.breaker import NAMES
from tests.support.caller import calling, request
from tests.support.failing import (
    BREAKER,
    DOWN,
    FINE,
    Provider,
    before,
    before_two,
    call,
    due,
    health,
    opened,
    post,
    post_at_once,
    recovers,
    refusal,
    settings,
    until_open,
    url,
)
from tests.support.faulty import WHOLE, streamed
from tests.support.gateway import bearer, run_gateway
from tests.support.redis_server import shared_url
from tests.support.reloads import following
from tests.support.scripted_upstream import until, upstream
from tests.support.serving import CHAT, KEY, STREAM, config_for, serving


@pytest.mark.fault("U-28")
@pytest.mark.contract("G-11")
@pytest.mark.parametrize("chain", [[], ["retry"]], ids=["plain", "retry"])
async def test_calls_of_a_dead_provider_are_answered_at_once_and_never_reach_it(
    tmp_path: Path, chain: list[str]
) -> None:
    provider = Provider()
    long = {"breaker": {**BREAKER, "open_s": 60, "max_open_s": 60}}
    async with before(tmp_path, provider, provider=long, chain=chain) as gateway:
        provider.answer = DOWN
        await until_open(gateway)
        seen, waits = provider.calls, list[float]()
        async with calling(gateway.port) as caller:
            for _ in range(200):
                began = time.perf_counter()
                caller.send(request(CHAT))
                head = await caller.read_until(b"}}")
                waits.append(time.perf_counter() - began)
                assert head.startswith(b"HTTP/1.1 503")
        for body in (CHAT, STREAM):
            assert "outage" in refusal(await gateway.post(body))
        assert provider.calls == seen == 3

    assert median(waits) < 0.01


@pytest.mark.fault("U-28")
async def test_a_provider_that_stays_dead_sees_ever_fewer_probes(tmp_path: Path) -> None:
    provider = Provider()
    async with before(tmp_path, provider) as gateway:
        await opened(gateway, provider)
        began, calls = time.monotonic(), 0
        while time.monotonic() - began < 2.0:
            await gateway.post(CHAT)
            calls += 1
        probes = provider.calls - 3

    assert calls > 20
    # At most 0.15 s after opening, then at most each 0.3 s.
    assert 2 <= probes <= 8


@pytest.mark.fault("U-28")
async def test_one_good_probe_brings_all_traffic_back(tmp_path: Path) -> None:
    provider = Provider()
    async with before(tmp_path, provider) as gateway:
        await opened(gateway, provider)
        provider.answer = FINE
        await due(gateway)

        assert await post(gateway, 1) == [200]
        assert health(gateway)["state"] == "closed"
        assert [each.status_code for each in await post_at_once(gateway, 50)] == [200] * 50
        assert provider.calls == 3 + 51


@pytest.mark.fault("U-28")
async def test_a_probe_that_streams_brings_traffic_back_with_its_first_event(
    tmp_path: Path,
) -> None:
    provider = Provider()
    async with before(tmp_path, provider) as gateway:
        await opened(gateway, provider)
        whole = streamed(*WHOLE)
        provider.answer = whole[: whole.index(b"second") - 40]
        await due(gateway)
        async with calling(gateway.port) as caller:
            caller.send(request(STREAM))
            await caller.read_until(b"first")
            assert health(gateway)["state"] == "closed"


@pytest.mark.bug("K12")
@pytest.mark.fault("U-28")
async def test_a_crowd_at_a_provider_that_wakes_is_one_call_for_it(tmp_path: Path) -> None:
    provider = Provider()
    async with before(tmp_path, provider) as gateway:
        await opened(gateway, provider)
        provider.answer = FINE
        provider.go.clear()
        await due(gateway)
        crowd = [asyncio.ensure_future(gateway.post(CHAT)) for _ in range(100)]
        await until(lambda: sum(each.done() for each in crowd) == 99)
        assert provider.running == 1
        provider.go.set()
        answers = await asyncio.gather(*crowd)

    refused = [each for each in answers if each.status_code != 200]
    assert len(refused) == 99
    assert all("outage" in refusal(each) for each in refused)
    assert provider.calls == 4


@pytest.mark.bug("K12", "K18")
@pytest.mark.fault("U-28")
@pytest.mark.parametrize("store", ["memory", "redis"])
async def test_replicas_send_a_provider_that_wakes_one_call_between_them(
    tmp_path: Path, store: str
) -> None:
    provider = Provider()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    async with upstream(provider.script) as served:
        state = "memory" if store == "memory" else shared_url()
        config = settings(served, stores={"state": state, "database": "memory"})
        async with (
            serving(config, tmp_path / "a") as one,
            serving(config, tmp_path / "b") as other,
        ):
            if store == "memory":
                permits = LocalPermits()
                one.worker.health.share(permits)
                other.worker.health.share(permits)
            for each in (one, other):
                await opened(each, provider)
            provider.answer = FINE
            provider.go.clear()
            await due(one)
            await due(other)
            crowd = [
                asyncio.ensure_future(each.post(CHAT)) for each in (one, other) for _ in range(50)
            ]
            await until(lambda: sum(each.done() for each in crowd) == 99)
            assert provider.calls == 7
            provider.go.set()
            await asyncio.gather(*crowd)
            for each in (one, other):
                await recovers(each)
            seen = provider.calls
            assert seen <= 7 + 2, "a good probe of each"
            assert await post(one, 5) + await post(other, 5) == [200] * 10
            assert provider.calls == seen + 10


@pytest.mark.fault("U-8", "U-28")
async def test_a_closed_port_counts_and_is_found_open_again(tmp_path: Path) -> None:
    provider = Provider()
    async with upstream(provider.script) as served:
        config = settings(served)
        port = served.port
    async with serving(config, tmp_path) as gateway:
        first = [await gateway.post(CHAT) for _ in range(4)]
        assert [each.status_code for each in first] == [503] * 4
        assert "outage" in refusal(first[-1])
        async with upstream(provider.script, port=port):
            await due(gateway)
            assert await post(gateway, 3) == [200] * 3


@pytest.mark.bug("K12")
async def test_a_reload_keeps_what_is_known_of_what_it_does_not_touch(tmp_path: Path) -> None:
    provider = Provider()
    async with upstream(provider.script) as served:
        long = {"breaker": {**BREAKER, "open_s": 60, "max_open_s": 60}}
        config = settings(served, provider=long)
        async with following(config, tmp_path) as follower:
            gateway = follower.gateway
            await opened(gateway, provider)
            config["models"]["other"] = config["models"]["m"]
            await follower.reload(config)
            assert health(gateway)["state"] == "open"
            assert "outage" in refusal(await gateway.post(CHAT))
            elsewhere = f"http://localhost:{served.port}/v1"
            config["providers"]["up"]["base_url"] = elsewhere
            await follower.reload(config)
            provider.answer = FINE
            assert await post(gateway, 1) == [200], "another address is another target"
            assert gateway.count("gateway_breaker_state", provider="up") == 0


@pytest.mark.bug("K12")
@pytest.mark.parametrize("balance", ["weighted", "least_busy", "session"])
async def test_traffic_moves_away_from_a_dead_target_and_comes_back(
    tmp_path: Path, balance: str
) -> None:
    one, other = Provider(), Provider()
    async with before_two(tmp_path, one, other, balance=balance) as gateway:
        one.answer = other.answer = FINE
        assert await post(gateway, 4) == [200] * 4
        one.answer = DOWN
        statuses = [(await call(gateway, number)).status_code for number in range(100)]
        assert statuses.count(500) == 3, "no caller's request is lost to a probe"
        assert statuses.count(200) == 97
        assert health(gateway)["state"] == "open"
        one.answer = FINE
        await due(gateway)
        seen = one.calls
        assert [(await call(gateway, number)).status_code for number in range(100)] == [200] * 100
        assert health(gateway)["state"] == "closed"
        assert one.calls > seen


@pytest.mark.bug("K12")
async def test_a_target_that_refuses_connections_costs_no_caller_anything(tmp_path: Path) -> None:
    one, other = Provider(), Provider()
    async with before_two(tmp_path, one, other, dead="http://127.0.0.1:9/v1") as gateway:
        assert await post(gateway, 60) == [200] * 60
        assert health(gateway)["state"] == "open"
        tried = gateway.count("gateway_upstream_attempts_total", provider="up")
        assert 3 <= tried <= 6, "three calls found it out, the rest are probes"


async def test_the_state_of_a_target_is_a_metric(tmp_path: Path) -> None:
    provider = Provider()
    async with before(tmp_path, provider) as gateway:
        assert await post(gateway, 1) == [200]
        labels = {"provider": "up", "model": "m-upstream"}
        assert gateway.count("gateway_breaker_state", **labels) == 0
        await opened(gateway, provider)
        assert gateway.count("gateway_breaker_state", **labels) == NAMES.index("open")
        provider.answer = FINE
        await due(gateway)
        await post(gateway, 1)
        assert gateway.count("gateway_breaker_state", **labels) == 0


@pytest.mark.fault("U-8", "U-28")
async def test_a_dead_host_is_found_out_once_for_all_its_models(tmp_path: Path) -> None:
    provider = {"breaker": {"failures": 3, "open_s": 60}}
    config = config_for("http://127.0.0.1:9/v1", provider=provider)
    config["models"]["m"]["targets"] = [
        {"provider": "up", "model": f"m{number}"} for number in range(3)
    ]
    async with serving(config, tmp_path) as gateway:
        first = await gateway.post(CHAT)
        assert first.headers["x-gateway-attempts"] == "3"
        for _ in range(20):
            assert "outage" in refusal(await gateway.post(CHAT))
        assert gateway.count("gateway_upstream_attempts_total") == 3


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
async def test_operators_see_what_is_left_alone(tmp_path: Path, workers: int) -> None:
    provider = Provider(DOWN)
    long = {"breaker": {"failures": 1, "open_s": 60}}
    async with upstream(provider.script) as served:
        config = settings(served, provider=long, server={"workers": workers})
        with run_gateway(config, tmp_path) as gateway:
            async with httpx2.AsyncClient(trust_env=False, headers=bearer(KEY)) as client:
                assert (await client.get(f"{gateway.admin}/admin/health")).status_code == 200
                await client.post(f"{gateway.url}/v1/chat/completions", json=CHAT)
                shown = (await client.get(f"{gateway.admin}/admin/health")).json()

    (target,) = shown["targets"]
    assert (target["provider"], target["model"], target["state"]) == ("up", "m-upstream", "open")
    assert target["limit"] is None
    assert (shown["keys"] is None) == (workers > 1)


@pytest.mark.fault("U-28")
async def test_a_model_that_is_down_makes_room_for_its_fallback_at_once(tmp_path: Path) -> None:
    one, other = Provider(DOWN), Provider()
    chain = [{"fallback": {"models": ["spare"]}}, {"retry": {"initial_delay_ms": 1}}]
    async with upstream(one.script) as first, upstream(other.script) as second:
        config = settings(first, chain=chain, provider={"breaker": {"failures": 3, "open_s": 60}})
        config["providers"]["other"] = {**config["providers"]["up"], "base_url": url(second)}
        config["models"]["spare"] = {"targets": [{"provider": "other", "model": "m-upstream"}]}
        config["tenants"]["acme"]["models"].append("spare")
        async with serving(config, tmp_path) as gateway:
            began = time.monotonic()
            assert await post(gateway, 20) == [200] * 20
            assert one.calls == 3
            assert time.monotonic() - began < 5.0
