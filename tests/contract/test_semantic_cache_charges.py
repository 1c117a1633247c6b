"""What the cache asks other models is charged to the run: ledger, budget and metrics have it, however the run ends."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gateway.core.ledger import UsageQuery
from tests.support.budgets import counters_of, priced
from tests.support.cache_scene import Cached, cached, put, where
from tests.support.models import HANG, Step, refuse, said
from tests.support.scripted_upstream import Peer, until
from tests.support.serving import Serving

Json = dict[str, Any]
BUDGET = {"budget": {"limits": [{"usd": 100, "per": "total"}, {"tokens": 10**6, "per": "total"}]}}
PRICES = {
    "up/m1": {"input": 10, "output": 20},
    "up/m2": {"input": 100, "output": 200},
    "up/embed": {"input": 1000, "output": 0},
}
FIRST = "How do I reset my password?"
NEAR = "Can you tell me how I reset the password of mine?"
OPTIONS: Json = {
    "scope": "tenant",
    "canonical": False,
    "verify": "llm",
    "judge": "m2",
    "threshold": 0.5,
    "judge_timeout_ms": 5000,
}
EMBED, MODEL, JUDGE = (1, 1, 0, 1000, 0), (1, 3, 2, 70, 0), (1, 3, 2, 700, 0)
"""Of one call: calls, tokens of prompt and answer, millionths of a dollar, how many are no exact numbers."""
Rows = dict[str, tuple[int, ...]]


async def rows(gateway: Serving, calls: int) -> Rows:
    """Return what the ledger has of each model, once it has so many calls."""
    ledger = gateway.worker._state.ledger
    async with asyncio.timeout(10):
        while True:
            found = await ledger.usage(UsageQuery(0, 4_000_000_000_000, ("model",)))
            if sum(row.calls for row in found) >= calls:
                break
            await asyncio.sleep(0.01)
    return {
        row.group[0]: (row.calls, row.input, row.output, row.cost_micro, row.uncertain)
        for row in found
    }


def sums(*parts: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sum(each) for each in zip(*parts, strict=True))


async def check_books(gateway: Serving, found: Rows) -> None:
    """Assert that budget and metrics say what the ledger says, and that nothing is held any more."""
    await until(lambda: not gateway.running)
    await gateway.worker._state._settler.drain(1)
    counters = counters_of(gateway)
    spent = sorted((name[1], each.spent, each.held) for name, each in counters._counters.items())
    every = sums(*found.values())
    assert [each[1:] for each in spent] == [(every[1] + every[2], 0), (every[3], 0)]
    assert not counters._tenants["acme"].reservations
    for model, row in found.items():
        cost = gateway.count("gateway_cost_usd_total", tenant="acme", model=model)
        assert cost == pytest.approx(row[3] / 1e6)
        if not row[4]:
            tokens = gateway.count("gateway_tokens_total", tenant="acme", model=model)
            assert tokens == row[1] + row[2], model


def scene(tmp_path: Path, judge: Step, **options: Any) -> Any:
    prices = priced(**PRICES)
    own = {**OPTIONS, **options}
    return cached(tmp_path, own, outer=[BUDGET], config=prices, m1=[said()], m2=[judge])


async def test_a_miss_is_charged_for_its_vector(tmp_path: Path) -> None:
    async with scene(tmp_path, said("yes")) as (gateway, _):
        answer = await put(gateway, FIRST)
        found = await rows(gateway, 2)
        await check_books(gateway, found)

    assert where(answer) == "miss"
    assert found == {"embed": EMBED, "m1": MODEL}


async def test_an_exact_hit_is_charged_nothing(tmp_path: Path) -> None:
    async with scene(tmp_path, said("yes")) as (gateway, _):
        await put(gateway, FIRST)
        answer = await put(gateway, FIRST)
        found = await rows(gateway, 2)
        await check_books(gateway, found)

    assert where(answer) == "hit-exact"
    assert found == {"embed": EMBED, "m1": MODEL}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_hit_is_charged_for_its_vector_and_its_judge(stream: bool, tmp_path: Path) -> None:
    async with scene(tmp_path, said("yes")) as (gateway, _):
        await put(gateway, FIRST)
        answer = await put(gateway, NEAR, stream=stream)
        found = await rows(gateway, 4)
        await check_books(gateway, found)

    assert where(answer) == "hit-semantic"
    assert found == {"embed": sums(EMBED, EMBED), "m1": MODEL, "m2": JUDGE}


@pytest.mark.parametrize(
    ("judge", "charged"),
    [(said("no"), JUDGE), (said("perhaps"), JUDGE), (refuse(500), None), (refuse(401), None)],
    ids=["no", "no clear word", "failed", "refused"],
)
async def test_whatever_the_judge_says_it_is_charged_what_it_cost(
    judge: Step, charged: tuple[int, ...] | None, tmp_path: Path
) -> None:
    async with scene(tmp_path, judge) as (gateway, _):
        await put(gateway, FIRST)
        answer = await put(gateway, NEAR)
        found = await rows(gateway, 4 + (charged is not None))
        await check_books(gateway, found)

    assert where(answer) == "miss"
    asked = {} if charged is None else {"m2": charged}
    assert found == {"embed": sums(EMBED, EMBED), "m1": sums(MODEL, MODEL), **asked}


async def test_a_judge_that_gives_no_word_in_time_may_have_cost_something(tmp_path: Path) -> None:
    async with scene(tmp_path, HANG, judge_timeout_ms=100) as (gateway, _):
        await put(gateway, FIRST)
        answer = await put(gateway, NEAR)
        found = await rows(gateway, 5)
        await check_books(gateway, found)

    assert where(answer) == "miss"
    assert (found["embed"], found["m1"]) == (sums(EMBED, EMBED), sums(MODEL, MODEL))
    assert_uncertain(found["m2"])


async def test_an_embedder_that_gives_no_vector_in_time_may_have_cost_something(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, said("yes"), embed_timeout_ms=100) as (gateway, models):
        models.embeds = hang
        answer = await put(gateway, FIRST)
        found = await rows(gateway, 2)
        await check_books(gateway, found)

    assert where(answer) == "miss"
    assert found["m1"] == MODEL
    assert_uncertain(found["embed"])


@pytest.mark.parametrize("slow", ["judge", "embedder"])
async def test_a_client_that_leaves_meanwhile_pays_for_what_was_asked(
    slow: str, tmp_path: Path
) -> None:
    async with scene(tmp_path, HANG, embed_timeout_ms=5000) as (gateway, models):
        await put(gateway, FIRST)
        if slow == "embedder":
            models.embeds = hang
        with suppress(httpx2.TimeoutException):
            await leave(gateway, models, 2)
        found = await rows(gateway, 3 if slow == "embedder" else 4)
        await check_books(gateway, found)

    assert found["m1"] == MODEL
    assert_uncertain(found["m2" if slow == "judge" else "embed"])


async def test_what_is_asked_behind_an_answer_is_in_the_ledger_of_its_tenant(
    tmp_path: Path,
) -> None:
    """Comparisons of answers are no part of the caller's request: its budget does not pay for them."""
    script = [said("it takes five days"), said("it takes seven days")]
    options = {**OPTIONS, "max_wrong_hit_rate": 0.02}
    async with cached(
        tmp_path, options, outer=[BUDGET], config=priced(**PRICES), m1=script, m2=[said("no")]
    ) as (gateway, models):
        await put(gateway, FIRST)
        await put(gateway, NEAR)
        found = await rows(gateway, 7)

        assert models.n("m2") == 1
        assert found["m2"] == JUDGE
        assert found["embed"] == sums(*[EMBED] * 4)


def assert_uncertain(row: tuple[int, ...]) -> None:
    calls, tokens, _, micro, uncertain = row
    assert uncertain == 1
    assert tokens > calls - 1
    assert micro > 0


async def hang(peer: Peer, text: str) -> None:
    """Never answer."""
    del text
    await peer.hang()


async def leave(gateway: Serving, models: Cached, vectors: int) -> None:
    """Ask, and leave once so many vectors were asked for, and the judge where it is slow."""
    task = asyncio.create_task(put(gateway, NEAR))
    await until(lambda: len(models.embedded) == vectors and (models.embeds or models.n("m2")))
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
