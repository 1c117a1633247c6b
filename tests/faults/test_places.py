"""Providers that are full or overloaded: passed over, waited for a moment, sent as much as they take."""

import asyncio
import time
from pathlib import Path

import pytest

from tests.support.caller import calling, request
from tests.support.failing import (
    FINE,
    Provider,
    before,
    before_two,
    health,
    post,
    settings,
    status,
)
from tests.support.scripted_upstream import Peer, until, upstream
from tests.support.serving import CHAT, STREAM, serving


@pytest.mark.fault("U-27")
@pytest.mark.contract("G-18")
async def test_a_full_target_is_passed_over_and_full_ones_are_waited_for_a_moment(
    tmp_path: Path,
) -> None:
    one, other = Provider(), Provider()
    one.go.clear()
    other.go.clear()
    bounds = {"concurrency": {"max": 2, "queue_s": 0.2}}
    async with before_two(tmp_path, one, other, provider=bounds) as gateway:
        running = [asyncio.ensure_future(gateway.post(CHAT)) for _ in range(4)]
        await until(lambda: one.running == other.running == 2)
        began = time.monotonic()
        late = await gateway.post(CHAT)
        took = time.monotonic() - began
        assert (late.status_code, late.json()["error"]["code"]) == (503, "overloaded")
        assert late.headers["retry-after"] == "1"
        assert late.headers["x-should-retry"] == "true"
        assert 0.15 < took < 3.0
        waits = asyncio.ensure_future(gateway.post(CHAT))
        await until(lambda: health(gateway)["waiting"] == 1)
        other.go.set()
        assert (await waits).status_code == 200
        one.go.set()
        assert [each.status_code for each in await asyncio.gather(*running)] == [200] * 4


@pytest.mark.fault("U-27")
async def test_places_come_back_from_clients_that_left(tmp_path: Path) -> None:
    provider = Provider()
    bounds = {"concurrency": {"max": 2, "queue_s": 0.2}}
    async with before(tmp_path, provider, provider=bounds) as gateway:
        for _ in range(10):
            provider.go.clear()
            async with calling(gateway.port) as one, calling(gateway.port) as other:
                for caller in (one, other):
                    caller.send(request(STREAM))
                await until(lambda: health(gateway)["in_flight"] == 2)
            await until(lambda: not health(gateway)["in_flight"])
            provider.go.set()
            assert await post(gateway, 2) == [200] * 2


class Limited:
    """A provider that takes so many calls at once and no more."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.running = 0
        self.most = 0

    async def script(self, peer: Peer) -> None:
        """Answer after a moment, or refuse at once."""
        while True:
            await peer.request()
            if self.running >= self.room:
                await peer.send(status("503 Busy", '{"error":{"message":"overloaded"}}'))
                continue
            self.running += 1
            self.most = max(self.most, self.running)
            try:
                await asyncio.sleep(0.03)
            finally:
                self.running -= 1
            await peer.send(FINE)


@pytest.mark.contract("G-18")
async def test_an_overloaded_provider_gets_as_much_as_it_takes_and_stays_in_use(
    tmp_path: Path,
) -> None:
    provider, statuses = Limited(8), list[int]()
    bounds = {"concurrency": {"min": 2, "queue_s": 0.5}}
    async with (
        upstream(provider.script) as served,
        serving(settings(served, provider=bounds), tmp_path) as gateway,
    ):

        async def client() -> None:
            for _ in range(25):
                answer = await gateway.post(CHAT)
                statuses.append(answer.status_code)
                if answer.status_code != 200:
                    await asyncio.sleep(0.05)

        await asyncio.gather(*(client() for _ in range(24)))
        described = health(gateway)
        told = gateway.count("gateway_target_concurrency_limit", provider="up")
        refused = gateway.count("gateway_upstream_attempts_total", outcome="upstream_unavailable")
        good = gateway.count("gateway_upstream_attempts_total", outcome="ok")

    assert described["state"] == "closed"
    assert 2 <= described["limit"] == told < 24
    assert provider.most >= 6
    assert refused < good / 3, "most of what is sent is taken"
