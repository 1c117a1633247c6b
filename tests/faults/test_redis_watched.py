"""Operators see how the shared state fares."""

from contextlib import suppress
from pathlib import Path

import pytest

from gateway.core.errors import StoreError
from gateway.stores.redis.counters import RedisCounters
from gateway.stores.registry import open_counters, watch_state
from tests.support.fault_proxy import fault_proxy
from tests.support.outgoing import Background
from tests.support.redis_calls import hold
from tests.support.redis_server import redis_server
from tests.support.scripted_upstream import until

LEASE_S = 60.0


class Seen:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.is_down = False
        self.reasons: list[str] = []

    def down(self, *, is_down: bool) -> None:
        self.is_down = is_down

    def failed(self, reason: str) -> None:
        self.reasons.append(reason)


@pytest.mark.fault("RS-2", "RS-5", "RS-12")
@pytest.mark.bug("K18", "K23")
async def test_each_failure_and_the_return_are_told(tmp_path: Path) -> None:
    background, seen = Background(), Seen()
    with redis_server(tmp_path) as server:
        async with fault_proxy(server.port) as proxy:
            counters = open_counters(proxy.url, background.spawn)
            assert isinstance(counters, RedisCounters)
            watch_state(proxy.url, background.spawn, seen)
            await counters.used("t", [hold()])
            assert (seen.is_down, seen.reasons) == (False, [])

            server.ask("CONFIG", "SET", "maxmemory", "100kb")
            with pytest.raises(StoreError):
                await counters.reserve("t", "run", [hold()], LEASE_S)
            assert (seen.is_down, seen.reasons) == (False, ["full"])

            await proxy.refuse()
            await until(lambda: seen.is_down)
            with pytest.raises(StoreError):
                await counters.used("t", [hold()])
            assert seen.reasons == ["full", "down"]

            await proxy.accept()
            await until(lambda: not seen.is_down)
            await counters.used("t", [hold()])

            proxy.blackhole()
            with pytest.raises(StoreError):
                await counters.used("t", [hold()])
            await until(lambda: seen.is_down)
            assert seen.reasons == ["full", "down", "late"]

            await counters.aclose()
            seen.is_down = False
            with suppress(StoreError):
                await counters.used("t", [hold()])
            assert not seen.is_down
    await background.join()


def test_of_memory_nothing_is_told() -> None:
    watch_state("memory", lambda work, _: work.close(), Seen())
