"""The bound on wrong hits of a pool, from the first label to a fall and back, as callers and operators see it."""

import asyncio
from collections.abc import Iterator
from itertools import count, product
from pathlib import Path
from string import ascii_lowercase
from typing import Any
from zlib import crc32

import pytest

from gateway.middleware.semantic_cache.fingerprint import exact_of
from gateway.middleware.semantic_cache.layer import SemanticCache
from gateway.middleware.semantic_cache.online.features import Seen
from gateway.middleware.semantic_cache.online.pools import Pools
from tests.support.cache_scene import cached, put, where
from tests.support.models import said
from tests.support.operators import admin
from tests.support.serving import Serving

Json = dict[str, Any]
OPTIONS: Json = {
    "scope": "tenant",
    "canonical": False,
    "coalesce": False,
    "verify": "none",
    "threshold": 0.6,
    "max_wrong_hit_rate": 0.05,
}
ENOUGH = 600
FEW = 20


def questions() -> Iterator[str]:
    """Ask for one thing in ever other words, of which no guard knows any."""
    letters = "".join(letter for letter in ascii_lowercase if letter not in "aeiou")
    for one in product(letters, "aeiou", letters, letters, "aeiou"):
        yield f"how do I pay the {''.join(one)} bill"


def near(text: str) -> list[float]:
    """Return vectors that are near one another, and no two the same."""
    mark = crc32(text.encode())
    return [1.0, *(0.02 * (mark >> shift & 15) / 15 for shift in range(0, 28, 4))]


def changes(gateway: Serving) -> tuple[float, float]:
    """Return how often the bound came to hold, and how often it broke."""
    name = "gateway_cache_pool_changes_total"
    return gateway.count(name, change="certified"), gateway.count(name, change="broken")


def bound(gateway: Serving) -> float:
    return gateway.count("gateway_cache_wrong_hit_bound", tenant="acme", namespace="default")


async def until_certified(
    gateway: Serving, asked: Iterator[str], times: int, *, is_whole: bool
) -> None:
    """Ask until the bound came to hold so often; but for some the labels are repeated, where it is not the whole."""
    for turn in range(ENOUGH if is_whole else FEW):
        await put(gateway, next(asked))
        if changes(gateway)[0] == times:
            return
        if turn == FEW - 1 and not is_whole:
            await repeat_labels(pools_of(gateway))
    async with asyncio.timeout(5):
        while changes(gateway)[0] < times:
            await asyncio.sleep(0.01)


def pools_of(gateway: Serving) -> Pools:
    layers = [
        layer.middleware
        for caller in gateway.worker.current.snapshot.principals.values()
        for layer in caller.chain.layers
    ]
    [learning] = [each._learning for each in layers if isinstance(each, SemanticCache)]
    assert learning is not None
    return learning._pools


async def repeat_labels(pools: Pools) -> None:
    """Give a pool labels like the newest of those that it has."""
    [(name, model)] = pools._models.items()
    async with asyncio.timeout(5):
        while model.labels < FEW - 1:  # the first question had no candidate
            await asyncio.sleep(0.01)
    rows = model.rows().features[-FEW:].tolist()
    for number in range(ENOUGH):
        pools.label(name, Seen("a", tuple(rows[number % len(rows)])), right=True)


@pytest.mark.bug("K21")
@pytest.mark.contract("O-4")
@pytest.mark.parametrize("way", ["admin", "another worker"])
async def test_reports_end_what_the_verifier_was_sure_of(way: str, tmp_path: Path) -> None:
    """Where another process took the report, the negative entry tells of it with the next such question."""
    asked = (f"please how can I reset my password{'?' * marks}" for marks in range(1, 400))
    options = {"scope": "tenant", "canonical": False, "max_wrong_hit_rate": 0.02}
    async with (
        cached(tmp_path, options, vectors=near, m1=[said("the same answer")]) as (gateway, _),
        admin(gateway) as operator,
    ):
        await put(gateway, "how do I reset my password?")
        served = await near_hits(gateway, asked, 20)
        store = gateway.worker.cache
        assert store is not None
        for name, question in served[:12]:
            if way == "admin":
                report = {"tenant": "acme", "id": name, "question": question}
                assert (await operator.post("/wrong", json=report)).status_code == 200
                continue
            entry = await store.get("acme", name)
            assert entry is not None
            await store.block(entry.pool, name, exact_of(question))
            await put(gateway, question)
        told = changes(gateway)
        after = {where(await put(gateway, next(asked))) for _ in range(10)}
        own = await put(gateway, "how do I reset my password?")

    assert told == (0, 1)
    assert after == {"miss"}
    assert where(own) == "hit-exact"


@pytest.mark.bug("K21")
@pytest.mark.parametrize(
    "is_whole",
    [
        pytest.param(False, id="few"),
        pytest.param(True, id="all", marks=[pytest.mark.soak, pytest.mark.timeout(300)]),
    ],
)
async def test_reports_of_wrong_answers_break_the_bound_and_labels_make_it_hold_again(
    is_whole: bool, tmp_path: Path
) -> None:
    asked = questions()
    async with (
        cached(tmp_path, OPTIONS, vectors=near, m1=[said("the same answer")]) as (gateway, models),
        admin(gateway) as operator,
    ):
        before = bound(gateway)
        await until_certified(gateway, asked, 1, is_whole=is_whole)
        proven = bound(gateway)
        served = await near_hits(gateway, asked, 12)
        for name, question in served[:6]:
            report = {"tenant": "acme", "id": name, "question": question}
            assert (await operator.post("/wrong", json=report)).status_code == 200
        broken, fallen = changes(gateway), bound(gateway)
        calls = models.n()
        after = [where(await put(gateway, next(asked))) for _ in range(20)]
        asked_anew = models.n() - calls
        await until_certified(gateway, asked, 2, is_whole=is_whole)
        again = bound(gateway)
        served_again = await near_hits(gateway, asked, 3)

    assert before == 1.0
    assert 0 < proven <= 1.5 * OPTIONS["max_wrong_hit_rate"]
    assert (broken, fallen) == ((1, 1), 1.0)
    assert (after, asked_anew) == (["miss"] * 20, 20)
    assert 0 < again <= 1.5 * OPTIONS["max_wrong_hit_rate"]
    assert len(served_again) == 3


async def near_hits(gateway: Serving, asked: Iterator[str], wanted: int) -> list[tuple[str, str]]:
    """Ask until so many questions were answered from others; return entries and questions."""
    found: list[tuple[str, str]] = []
    for tries in count():
        assert tries < 3 * wanted + 20
        question = next(asked)
        answer = await put(gateway, question)
        if where(answer) == "hit-semantic":
            found.append((answer.headers["x-gateway-cache-id"], question))
        if len(found) == wanted:
            return found
    raise AssertionError
