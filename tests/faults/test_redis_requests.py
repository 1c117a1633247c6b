"""What callers see while Redis is in trouble: who needs it is refused at once, everybody else is served."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.failing import FINE, Provider
from tests.support.fault_proxy import FaultProxy, fault_proxy
from tests.support.gateway import bearer
from tests.support.redis_calls import feeling
from tests.support.redis_server import redis_server
from tests.support.reloads import following
from tests.support.scripted_upstream import upstream
from tests.support.serving import CHAT, KEY, Serving, config_for, serving

LIMITED, FREE = "sk-limited-0123456789abcdef", "sk-free-0123456789abcdefgh"


@asynccontextmanager
async def before_redis(folder: Path, **stores: Any) -> AsyncGenerator[tuple[Serving, FaultProxy]]:
    """Serve a tenant with limits and one without; all that Redis says passes a proxy."""
    provider = Provider()
    provider.answer = FINE
    with redis_server(folder / "redis") as server:
        async with fault_proxy(server.port) as proxy, upstream(provider.script) as served:
            config = config_for(
                served.url,
                stores={"state": proxy.url, "database": "memory", **stores},
                tenants={
                    "limited": {
                        "keys": [{"id": "k", "secret": LIMITED}],
                        "models": ["m"],
                        "chain": [{"limits": {"requests": {"per_minute": 100_000}}}],
                    },
                    "free": {"keys": [{"id": "k", "secret": FREE}], "models": ["m"]},
                },
            )
            async with serving(config, folder) as gateway:
                yield gateway, proxy


async def ask(gateway: Serving, key: str) -> tuple[int, float]:
    """Return the status of a request and how long it took."""
    start = time.perf_counter()
    answer = await gateway.client.post("/v1/chat/completions", json=CHAT, headers=bearer(key))
    if answer.status_code == 503:
        assert answer.json()["error"]["code"] == "state_unavailable"
        assert "retry-after" in answer.headers
    return answer.status_code, time.perf_counter() - start


async def served_within(gateway: Serving, seconds: float, key: str = LIMITED) -> bool:
    end = time.perf_counter() + seconds
    while (await ask(gateway, key))[0] != 200:
        if time.perf_counter() > end:
            return False
        await asyncio.sleep(0.01)
    return True


@pytest.mark.fault("RS-1", "RS-12")
@pytest.mark.bug("K23")
async def test_a_gateway_that_starts_without_redis_serves_who_needs_none(tmp_path: Path) -> None:
    async with before_redis(tmp_path) as (gateway, proxy):
        await proxy.refuse()

        assert (await ask(gateway, LIMITED))[0] == 503
        assert (await ask(gateway, FREE))[0] == 200
        assert gateway.count("gateway_state_down") == 1
        await proxy.accept()
        assert await served_within(gateway, 5)
        assert gateway.count("gateway_state_down") == 0


@pytest.mark.fault("RS-2", "RS-3")
@pytest.mark.contract("G-7", "G-8", "G-15")
@pytest.mark.bug("K18", "K23")
@pytest.mark.parametrize("silent", [False, True], ids=["killed", "silent"])
async def test_requests_are_refused_at_once_and_served_again_at_once(
    tmp_path: Path, silent: bool
) -> None:
    async with before_redis(tmp_path) as (gateway, proxy):
        assert await served_within(gateway, 5)
        if silent:
            proxy.blackhole()
        else:
            await proxy.refuse()
        async with feeling() as pulse:
            begin = time.perf_counter()
            answers = [await ask(gateway, LIMITED) for _ in range(40)]
            await asyncio.sleep(0.01)
            stood_still = pulse.lost(begin, time.perf_counter())
        others = [await ask(gateway, FREE) for _ in range(10)]

        assert {status for status, _ in answers} == {503}
        assert sum(took for _, took in answers) - stood_still < 40 * 0.02
        assert {status for status, _ in others} == {200}
        assert gateway.count("gateway_state_down") == 1
        assert gateway.count("gateway_state_failures_total", reason="down") > 20

        proxy.heal()
        await proxy.accept()
        assert await served_within(gateway, 5)


@pytest.mark.fault("RS-2")
@pytest.mark.bug("K18")
async def test_an_operator_may_let_requests_pass(tmp_path: Path) -> None:
    async with before_redis(tmp_path, on_state_down="open") as (gateway, proxy):
        await proxy.refuse()

        assert (await ask(gateway, LIMITED))[0] == 200


@pytest.mark.fault("RS-11")
@pytest.mark.bug("K28")
async def test_a_reload_brings_the_new_password(tmp_path: Path) -> None:
    old, new = "canary-old-password", "canary-new-password"
    provider = Provider()
    with redis_server(tmp_path / "redis") as server:
        server.ask("ACL", "SETUSER", "gw", f">{old}", "~*", "&*", "+@all", "on")

        async with upstream(provider.script) as served:

            def config(password: str) -> dict[str, Any]:
                state = f"redis://gw:{password}@127.0.0.1:{server.port}/0"
                limits = {"limits": {"requests": {"per_minute": 100_000}}}
                whole = config_for(served.url, stores={"state": state, "database": "memory"})
                whole["tenants"]["acme"]["chain"] = [limits]
                return whole

            async with following(config(old), tmp_path) as scene:
                assert await served_within(scene.gateway, 5, KEY)
                server.ask("ACL", "SETUSER", "gw", "resetpass", f">{new}")
                assert (await ask(scene.gateway, KEY))[0] == 200

                outcome = await scene.reload(config(new))
                assert (outcome.mistakes, outcome.restart) == ((), ())
                assert (await ask(scene.gateway, KEY))[0] == 200
                server.ask("CLIENT", "KILL", "USER", "gw")
                assert await served_within(scene.gateway, 5, KEY)
                assert b"canary" not in scene.gateway.log.read_bytes()
