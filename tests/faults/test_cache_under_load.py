"""What a cache stands on fails while many ask: every request is answered, and none waits beyond the deadlines (K23)."""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.support.cache_scene import Cached, cached, put, where
from tests.support.fault_proxy import fault_proxy
from tests.support.redis_server import RedisServer, redis_server, search_module
from tests.support.scripted_upstream import Peer
from tests.support.serving import Serving

Json = dict[str, Any]
CALLERS = 12
EMBED_MS, STORE_MS = 300, 50
MARGIN_S = 0.6
"""For a machine that does other things: the answers of a provider on it come and go with them."""

pytestmark = pytest.mark.timeout(90)


@pytest.fixture(params=["sets", "search"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[RedisServer]:
    options = ("--loadmodule", search_module()) if request.param == "search" else ()
    with redis_server(tmp_path / "redis", *options) as running:
        yield running


class Load:
    """Callers that ask without a pause: old questions, similar ones and new ones; `took` are seconds."""

    def __init__(self, gateway: Serving, models: Cached) -> None:
        self.gateway = gateway
        self.models = models
        self.took: list[float] = []
        self.places: list[str] = []
        self.codes: set[int] = set()
        self.warned = 0
        self._new = count()
        self._chance = random.Random(5)
        self._goes = True

    async def ask(self) -> None:
        """Ask until told to stop."""
        loop = asyncio.get_running_loop()
        while self._goes:
            which = self._chance.random()
            text = f"How do I set up the garden in version {self._chance.randrange(6)}"
            text += (
                "?"
                if which < 0.6
                else f" and room {next(self._new)}?"
                if which < 0.8
                else ", please?"
            )
            began = loop.time()
            answer = await put(self.gateway, text, session="s")
            self.took.append(loop.time() - began)
            self.places.append(where(answer))
            self.codes.add(answer.status_code)
            self.warned += "cache_unavailable" in answer.headers.get("x-gateway-warnings", "")

    async def phase(self, requests: int = 80) -> float:
        """Let so many requests pass; return the time that 99 of 100 took at the most."""
        self.took.clear()
        self.places.clear()
        self.warned = 0
        while len(self.took) < requests:
            await asyncio.sleep(0.005)
        return sorted(self.took)[int(len(self.took) * 0.99)]

    def stop(self) -> None:
        """Ask no more."""
        self._goes = False


@asynccontextmanager
async def loaded(folder: Path, url: str) -> AsyncGenerator[Load]:
    """Serve a cache with all tiers over a store, with its own deadlines, to callers that ask until the block ends."""

    def kept_there(config: Json) -> None:
        config["stores"] = {"database": "memory", "cache": url}

    options = {"embed_timeout_ms": EMBED_MS, "store_timeout_ms": STORE_MS}
    async with cached(folder, options, config=kept_there) as (gateway, models):
        load = Load(gateway, models)
        async with asyncio.TaskGroup() as group:
            for _ in range(CALLERS):
                group.create_task(load.ask())
            yield load
            load.stop()
    assert load.codes == {200}


async def hits_at_last(load: Load) -> None:
    """Wait until the cache is of use."""
    async with asyncio.timeout(30):
        while True:
            await load.phase(20)
            if sum(place.startswith("hit") for place in load.places) > 5:
                return


async def suffers(load: Load, fault: Callable[[], object], deadline_s: float) -> None:
    """Have a fault come while callers ask: nobody is refused, and nobody waits beyond the deadline."""
    await hits_at_last(load)
    before = await load.phase()
    fault()
    during = await load.phase(160)
    print(f"p99 {before * 1e3:.0f} ms before, {during * 1e3:.0f} ms after the fault")
    assert during < before + deadline_s + MARGIN_S


@pytest.mark.bug("K23")
@pytest.mark.contract("W-CACHE-17", "T-208")
@pytest.mark.fault("RS-2")
async def test_a_store_that_is_killed_under_load(server: RedisServer, tmp_path: Path) -> None:
    async with loaded(tmp_path, server.url) as load:
        await suffers(load, server.kill, 3 * STORE_MS / 1000)
        assert load.warned, "who could not be served from the cache was told"
        server.start()
        await hits_at_last(load)


@pytest.mark.bug("K23")
@pytest.mark.contract("W-CACHE-17")
@pytest.mark.fault("RS-3")
async def test_a_store_that_takes_all_and_answers_nothing_under_load(
    server: RedisServer, tmp_path: Path
) -> None:
    async with fault_proxy(server.port) as proxy, loaded(tmp_path, proxy.url) as load:
        await suffers(load, proxy.blackhole, 3 * STORE_MS / 1000)
        assert load.warned, "who could not be served from the cache was told"
        proxy.heal()
        await hits_at_last(load)


@pytest.mark.bug("K23")
@pytest.mark.contract("O-4")
async def test_a_store_that_is_emptied_under_load(server: RedisServer, tmp_path: Path) -> None:
    async with loaded(tmp_path, server.url) as load:
        for _ in range(3):
            await suffers(load, lambda: server.ask("FLUSHALL"), STORE_MS / 1000)
        await hits_at_last(load)


@pytest.mark.bug("K23")
@pytest.mark.contract("W-CACHE-17", "T-208")
async def test_an_embedder_that_hangs_under_load(server: RedisServer, tmp_path: Path) -> None:
    async def hang(peer: Peer, text: str) -> None:
        del text
        await peer.hang()

    async with loaded(tmp_path, server.url) as load:

        def hangs() -> None:
            load.models.embeds = hang

        await suffers(load, hangs, EMBED_MS / 1000)
        assert "hit-exact" in load.places, "what needs no vector is still found"


@pytest.mark.bug("K23", "K21")
async def test_vectors_of_another_dimension_under_load(server: RedisServer, tmp_path: Path) -> None:
    """The model behind a name is another one from now on: its vectors never meet those of before."""
    async with loaded(tmp_path, server.url) as load:

        def longer(text: str) -> Sequence[float]:
            return [0.0, 1.0, 0.001 * (len(text) % 7), 0.0, 0.0, 0.5]

        def changes() -> None:
            load.models.vectors = longer

        await suffers(load, changes, STORE_MS / 1000)
        await hits_at_last(load)
