"""What clients are told while the process leaves, and what is not told to the log."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.caller import calling, request
from tests.support.faulty import GOOD, HEALTHY
from tests.support.scripted_upstream import upstream
from tests.support.serving import CHAT, KEY, config_for, serving


async def test_while_leaving_every_answer_is_the_last_of_its_connection(tmp_path: Path) -> None:
    async with upstream(HEALTHY) as served:
        config = config_for(f"http://localhost:{served.port}/v1", server={"announce_s": 0.5})
        async with serving(config, tmp_path) as gateway:
            before = await gateway.post(CHAT)
            leaving = asyncio.ensure_future(gateway.worker.drain.run())
            await asyncio.sleep(0)
            during = await gateway.post(CHAT)
            await leaving
            after = await gateway.post(CHAT)

    assert [before.status_code, during.status_code, after.status_code] == [200, 200, 503]
    assert "connection" not in before.headers
    assert during.headers["connection"] == "close"
    assert after.headers["connection"] == "close"


@pytest.mark.contract("G-3")
@pytest.mark.fault("L-2")
async def test_connections_that_rest_are_closed_before_their_next_request_is_refused(
    tmp_path: Path,
) -> None:
    async with upstream(HEALTHY) as served:
        config = config_for(f"http://localhost:{served.port}/v1", server={"announce_s": 0})
        async with serving(config, tmp_path) as gateway, calling(gateway.port) as resting:
            resting.send(request(CHAT))
            await resting.read_until(GOOD)
            async with calling(gateway.port) as fresh:
                await gateway.worker.drain.run(gateway.listener.close_idle)
                at_its_end = await resting.read_to_end()
                fresh.send(request(CHAT))
                refused = await fresh.read_to_end()

    assert at_its_end == b""
    assert b"HTTP/1.1 503" in refused
    assert b'"draining"' in refused


@pytest.mark.contract("G-3")
async def test_a_request_that_has_come_unread_keeps_its_connection(tmp_path: Path) -> None:
    async with upstream(HEALTHY) as served:
        config = config_for(f"http://localhost:{served.port}/v1")
        async with serving(config, tmp_path) as gateway, calling(gateway.port) as caller:
            caller.send(request(CHAT))
            await caller.read_until(GOOD)
            caller.send(request(CHAT))
            gateway.listener.close_idle()
            await caller.read_until(GOOD)


async def test_the_words_of_a_caller_are_not_in_the_log(tmp_path: Path) -> None:
    async with upstream(HEALTHY) as served:
        config: dict[str, Any] = config_for(f"http://localhost:{served.port}/v1")
        config["models"] = {"up/*": {"targets": [{"provider": "up", "model": "*"}]}}
        keys = [{"id": "k", "secret": KEY}]
        config["tenants"] = {"acme": {"keys": keys, "models": ["up/*"]}}
        async with serving(config, tmp_path) as gateway:
            answer = await gateway.post({**CHAT, "model": "up/my secret letter"})
        log = gateway.log.read_text()

    assert answer.headers["x-gateway-model"] == "up/my secret letter"
    assert "secret letter" not in log
    assert '"target_model":"*"' in log
