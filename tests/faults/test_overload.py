"""More work than there is room for: refused at once and with advice, while what runs goes on."""

import asyncio
import time
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.support.caller import calling, request
from tests.support.faulty import GOOD, HEALTHY, withstanding
from tests.support.scripted_upstream import Peer, Script, ok, until
from tests.support.serving import CHAT, STREAM, Serving

LOOPS = ("uvloop",)


class Held:
    """A provider that keeps every request until it is let go."""

    def __init__(self) -> None:
        self.go = asyncio.Event()

    def script(self) -> Script:
        async def script(peer: Peer) -> None:
            await peer.request()
            await self.go.wait()
            await peer.send(ok(GOOD))
            await HEALTHY(peer)

        return script


async def post_raw(gateway: Serving, body: dict[str, Any]) -> bytes:
    async with calling(gateway.port) as caller:
        caller.send(request(body, "Connection: close"))
        return await caller.read_to_end()


@pytest.mark.fault("C-27")
@pytest.mark.bug("K38")
@pytest.mark.parametrize("body", [CHAT, STREAM], ids=["plain", "stream"])
async def test_what_is_above_the_limit_is_refused_at_once(
    tmp_path: Path, body: dict[str, Any]
) -> None:
    held = Held()
    limit = {"max_in_flight": 10}
    async with withstanding(tmp_path, held.script(), server=limit) as (gateway, served):
        running = [asyncio.ensure_future(post_raw(gateway, CHAT)) for _ in range(10)]
        await until(lambda: len(served.requests) == 10)
        waits: list[float] = []
        alive: list[float] = []
        for _ in range(50):
            began = time.monotonic()
            assert (await gateway.client.get("/livez")).status_code == 200
            alive.append(time.monotonic() - began)
            began = time.monotonic()
            answer = await gateway.post(body)
            waits.append(time.monotonic() - began)
            assert answer.status_code == 503
            assert answer.json()["error"]["code"] == "overloaded"
            assert answer.headers["x-should-retry"] == "true"
            assert answer.headers["retry-after"] == "1"
            assert answer.headers["x-request-id"]
        assert median(waits) < median(alive) * 2 + 0.01, (
            "a refusal costs hardly more than a sign of life"
        )
        assert (await gateway.client.get("/readyz")).status_code == 200
        assert gateway.count("gateway_shed_requests_total", reason="overloaded") == 50
        assert gateway.running == 10
        held.go.set()
        assert all(GOOD in answer for answer in await asyncio.gather(*running))
        assert len(served.requests) == 10


@pytest.mark.fault("C-27")
@pytest.mark.bug("K38")
@pytest.mark.slow
async def test_a_crowd_of_one_key_is_served_up_to_the_limit_and_no_further(tmp_path: Path) -> None:
    held = Held()
    limit = {"max_in_flight": 100}
    async with withstanding(tmp_path, held.script(), server=limit) as (gateway, served):
        crowd = [asyncio.ensure_future(post_raw(gateway, CHAT)) for _ in range(2000)]
        await until(lambda: sum(task.done() for task in crowd) == 1900, 20)
        refused = [task.result() for task in crowd if task.done()]
        assert all(b"HTTP/1.1 503" in answer and b'"overloaded"' in answer for answer in refused)
        assert len(served.requests) == 100
        held.go.set()
        answers = await asyncio.gather(*crowd)
        assert sum(GOOD in answer for answer in answers) == 100
        await until(lambda: len(gateway.records()) == 2000)


@pytest.mark.fault("U-27")
@pytest.mark.bug("K13", "K38")
async def test_a_full_provider_refuses_beyond_its_queue_and_others_are_served(
    tmp_path: Path,
) -> None:
    held = Held()
    tight = {"max_connections": 2, "max_waiting": 3, "timeout": {"pool_s": 0.4}}
    async with withstanding(tmp_path, held.script(), provider=tight) as (gateway, served):
        running = [asyncio.ensure_future(gateway.post(CHAT)) for _ in range(2)]
        await until(lambda: len(served.requests) == 2)
        waiting = [asyncio.ensure_future(gateway.post(CHAT)) for _ in range(3)]
        await until(lambda: gateway.running == 5)
        began = time.monotonic()
        beyond = await gateway.post(CHAT)
        assert time.monotonic() - began < 0.3
        late = await asyncio.gather(*waiting)
        for answer in (beyond, *late):
            assert answer.status_code == 503
            assert answer.json()["error"]["code"] == "overloaded"
            assert answer.headers["x-should-retry"] == "true"
        held.go.set()
        assert [answer.status_code for answer in await asyncio.gather(*running)] == [200, 200]
        assert len(served.requests) == 2
