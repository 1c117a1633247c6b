"""Models behind a star, seen by clients: each name fails, waits and recovers by itself."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.failing import (
    BREAKER,
    DOWN,
    FINE,
    Provider,
    refusal,
    settings,
    status,
)
from tests.support.reloads import following
from tests.support.scripted_upstream import ScriptedUpstream, until, upstream
from tests.support.serving import CHAT, Serving, serving

LONG = {"breaker": {**BREAKER, "open_s": 60, "max_open_s": 60}}
SLOW = status("429 Slow", "{}", "retry-after: 30")


def wide(served: ScriptedUpstream, model: str = "*", **more: Any) -> dict[str, Any]:
    """Return a configuration whose names `b-…` are served by one target with a star."""
    config = settings(served, provider=LONG, **more)
    config["models"] = {"b-*": {"targets": [{"provider": "up", "model": model}]}}
    config["tenants"]["acme"]["models"] = ["b-*"]
    return config


@asynccontextmanager
async def before_names(
    folder: Path, provider: Provider, model: str = "*", **more: Any
) -> AsyncGenerator[Serving]:
    """Serve a gateway before one provider of many models."""
    async with (
        upstream(provider.script) as served,
        serving(wide(served, model, **more), folder) as gateway,
    ):
        yield gateway
        provider.go.set()
        await until(lambda: not gateway.running)
        targets = gateway.worker.health.describe()["targets"]
        assert [each["in_flight"] for each in targets] == [0] * len(targets)


async def ask(gateway: Serving, name: str) -> httpx2.Response:
    return await gateway.post({**CHAT, "model": name})


async def fails(gateway: Serving, provider: Provider, name: str) -> None:
    """Have a provider fail for one name until that is left alone."""
    provider.answer = DOWN
    assert [(await ask(gateway, name)).status_code for _ in range(3)] == [500] * 3
    provider.answer = FINE
    assert "outage" in refusal(await ask(gateway, name))


@pytest.mark.bug("K12")
@pytest.mark.fault("U-28")
@pytest.mark.parametrize("model", ["*", "vendor/*"])
async def test_a_name_that_fails_is_left_alone_and_no_other_name(
    tmp_path: Path, model: str
) -> None:
    provider = Provider()
    async with before_names(tmp_path, provider, model) as gateway:
        await fails(gateway, provider, "b-1")

        assert (await ask(gateway, "b-2")).status_code == 200
        assert provider.calls == 4


@pytest.mark.bug("K09")
async def test_a_name_whose_quota_is_used_up_waits_and_no_other_name(tmp_path: Path) -> None:
    provider = Provider(SLOW)
    async with before_names(tmp_path, provider) as gateway:
        assert (await ask(gateway, "b-3")).status_code == 429
        provider.answer = FINE

        assert (await ask(gateway, "b-4")).status_code == 200
        limited = await ask(gateway, "b-3")
        assert limited.status_code == 429
        assert 0 < int(limited.headers["retry-after"]) <= 30
        assert provider.calls == 2


@pytest.mark.bug("K12")
async def test_places_are_counted_by_name(tmp_path: Path) -> None:
    provider = Provider()
    one = {**LONG, "concurrency": {"max": 1, "min": 1, "queue_s": 0.05}}
    async with upstream(provider.script) as served:
        config = wide(served)
        config["providers"]["up"].update(one)
        async with serving(config, tmp_path) as gateway:
            provider.go.clear()
            calls = [asyncio.ensure_future(ask(gateway, name)) for name in ("b-1", "b-2")]
            await until(lambda: provider.running == 2)
            assert (await ask(gateway, "b-1")).status_code == 503
            provider.go.set()
            assert [each.status_code for each in await asyncio.gather(*calls)] == [200, 200]


@pytest.mark.bug("K12")
@pytest.mark.fault("U-8")
async def test_a_host_that_is_gone_is_gone_for_every_name(tmp_path: Path) -> None:
    provider = Provider()
    async with upstream(provider.script) as served:
        config = wide(served)
    async with serving(config, tmp_path) as gateway:
        answers = [await ask(gateway, f"b-{number}") for number in range(3)]
        assert [each.status_code for each in answers] == [503] * 3
        assert "outage" in refusal(await ask(gateway, "b-9"))


@pytest.mark.bug("K12")
async def test_metrics_name_the_target_and_never_what_callers_asked_for(tmp_path: Path) -> None:
    provider = Provider()
    async with before_names(tmp_path, provider) as gateway:
        await fails(gateway, provider, "b-zebra")
        await ask(gateway, "b-okapi")
        series = gateway.series()

        assert list(series["gateway_breaker_state"]) == [("up", "*")]
        assert gateway.count("gateway_breaker_state", model="*") == 2
        assert "zebra" not in str(series)
        assert "okapi" not in str(series)
        known = {each.get("served"): each for each in gateway.worker.health.describe()["targets"]}
        assert known["b-zebra"]["state"] == "open"
        assert known["b-okapi"]["state"] == "closed"


@pytest.mark.bug("K12")
async def test_a_reload_keeps_what_is_known_of_names(tmp_path: Path) -> None:
    provider = Provider()
    async with upstream(provider.script) as served:
        config = wide(served)
        async with following(config, tmp_path) as follower:
            gateway = follower.gateway
            await fails(gateway, provider, "b-1")
            config["models"]["b-*"]["balance"] = "session"
            await follower.reload(config)
            follower.retire()

            assert "outage" in refusal(await ask(gateway, "b-1"))
            assert (await ask(gateway, "b-2")).status_code == 200


@pytest.mark.contract("G-STAT-9")
async def test_clients_are_told_not_to_repeat_what_a_quota_that_is_out_refused(
    tmp_path: Path,
) -> None:
    out = '{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}'
    provider = Provider(status("429 Out", out))
    async with before_names(tmp_path, provider) as gateway:
        assert (await ask(gateway, "b-1")).headers["x-should-retry"] == "false"
        provider.answer = status("429 Slow")
        limited = await ask(gateway, "b-1")
        assert (limited.status_code, limited.headers.get("x-should-retry")) == (429, None)
