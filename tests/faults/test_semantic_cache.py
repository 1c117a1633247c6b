"""What the cache depends on fails: no request does, and none waits for long (K23, W-CACHE-17)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gateway.core import codec
from tests.support.cache_scene import cached, put, where
from tests.support.redis_server import redis_server
from tests.support.scripted_upstream import Peer

Json = dict[str, Any]


async def timed(work: Any) -> tuple[Any, float]:
    """Return what comes of work, and how long it took."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    return await work, loop.time() - began


@pytest.mark.bug("K23")
async def test_an_embedder_that_hangs_costs_its_deadline_and_then_nothing(tmp_path: Path) -> None:
    async def hang(peer: Peer, text: str) -> None:
        del text
        await peer.hang()

    options = {"embed_timeout_ms": 300, "canonical": False}
    async with cached(tmp_path, options) as (gateway, models):
        models.embeds = hang
        answers = [await timed(put(gateway, f"question {at} of many")) for at in range(8)]
        exact = await put(gateway, "question 0 of many")

    assert {answer.status_code for answer, _ in answers} == {200}
    assert {where(answer) for answer, _ in answers} == {"miss"}
    assert all("cache_unavailable" in answer.headers["x-gateway-warnings"] for answer, _ in answers)
    assert len(models.embedded) == 5
    assert max(took for _, took in answers[5:]) < 0.3
    assert where(exact) == "hit-exact"


@pytest.mark.bug("K23")
@pytest.mark.parametrize("fault", ["killed", "paused"])
async def test_a_store_that_is_gone_is_a_miss_until_it_is_back(fault: str, tmp_path: Path) -> None:
    with redis_server(tmp_path / "redis") as redis:

        def kept_there(config: Json) -> None:
            config["stores"] = {"database": "memory", "cache": redis.url}

        options = {"semantic": False, "store_timeout_ms": 500}
        async with cached(tmp_path, options, config=kept_there) as (gateway, models):
            await put(gateway)
            before = await put(gateway)
            if fault == "killed":
                redis.kill()
            else:
                redis.pause()
            answers = [await timed(put(gateway)) for _ in range(8)]
            if fault == "paused":
                redis.resume()
                async with asyncio.timeout(20):
                    while where(await put(gateway)) != "hit-exact":
                        await asyncio.sleep(0.1)

    assert where(before) == "hit-exact"
    assert {answer.status_code for answer, _ in answers} == {200}
    assert {where(answer) for answer, _ in answers} == {"miss"}
    assert all("cache_unavailable" in answer.headers["x-gateway-warnings"] for answer, _ in answers)
    assert max(took for _, took in answers[-2:]) < 0.5
    assert models.n() >= 9


@pytest.mark.bug("K19")
async def test_a_record_that_is_not_what_its_key_says_is_not_served(tmp_path: Path) -> None:
    async with cached(tmp_path, {"semantic": False}) as (gateway, models):
        await put(gateway, session="s")
        cache: Any = gateway.worker._state.cache
        for shelf in cache._shelves.values():
            for kept in shelf.entries.values():
                foreign = codec.replace(kept.entry.pool, tenant="other")
                kept.entry = codec.replace(kept.entry, pool=foreign)
        answer = await put(gateway, session="s")

        assert gateway.count("gateway_cache_scope_mismatch_total") == 1

    assert where(answer) == "miss"
    assert models.n() == 2
