"""Answers past their time: served a while longer by the same question, and renewed behind it (`stale_ttl_s`)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.budgets import counters_of, total
from tests.support.cache_scene import Cached, cached, put, text_of, where
from tests.support.models import Step, refuse, said

LATER_S = 0.3
STALE = {"ttl_s": 0.2, "stale_ttl_s": 60}


async def until_asked(models: Cached, times: int) -> None:
    """Wait until the model has been asked so often, and its answer is kept."""
    async with asyncio.timeout(5):
        while models.n() < times:
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)


@pytest.mark.contract("W-CACHE-7")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", ["chat", "messages", "responses"])
async def test_an_old_answer_is_served_and_renewed_behind(
    dialect: str, stream: bool, tmp_path: Path
) -> None:
    script = [said("old"), said("new", delay_s=0.05)]
    async with cached(tmp_path, STALE, m1=script) as (gateway, models):
        await put(gateway, "hi", dialect)
        await asyncio.sleep(LATER_S)
        late = await put(gateway, "hi", dialect, stream=stream)
        await until_asked(models, 2)
        await asyncio.sleep(0.05)
        again = await put(gateway, "hi", dialect)
        assert models.n() <= 3

    assert where(late) == where(again) == "hit-exact"
    assert text_of(late, dialect, stream=stream) == "old"
    assert text_of(again, dialect, stream=False) == "new"


async def test_the_same_question_is_renewed_once_at_a_time(tmp_path: Path) -> None:
    script = [said("old"), said("new", delay_s=0.2)]
    async with cached(tmp_path, STALE, m1=script) as (gateway, models):
        await put(gateway)
        await asyncio.sleep(LATER_S)
        answers = [await put(gateway) for _ in range(5)]
        assert models.n() == 2

    assert {text_of(each, "chat", stream=False) for each in answers} == {"old"}


async def test_another_wording_is_served_stale_too_but_a_similar_question_is_not(
    tmp_path: Path,
) -> None:
    first = "How do I reset my password?"
    async with cached(tmp_path, STALE) as (gateway, models):
        await put(gateway, first)
        await asyncio.sleep(LATER_S)
        near = await put(gateway, "What is the way to change the reset of my password?")
        assert models.n() == 2
        same = await put(gateway, "Please, how do I reset my password?")

    assert where(near) == "miss"
    assert where(same) == "hit-semantic"


@pytest.mark.contract("W-CACHE-15")
@pytest.mark.parametrize(
    "more",
    [
        {"headers": {"cache_control": "max-age=0"}},
        {"gateway": {"cache": {"ttl_s": 0.1}}},
        {"gateway": {"cache": {"ttl_s": 0.25}}},
        {"headers": {"cache_control": "no-cache"}},
    ],
)
async def test_who_asks_for_an_age_gets_nothing_stale(more: Any, tmp_path: Path) -> None:
    async with cached(tmp_path, STALE, m1=[said("old"), said("new")]) as (gateway, _):
        await put(gateway)
        await asyncio.sleep(LATER_S)
        late = await put(gateway, **more)

    assert text_of(late, "chat", stream=False) == "new"


@pytest.mark.bug("K23")
@pytest.mark.parametrize("step", [refuse(500), said(""), Step("reset")])
async def test_a_renewal_that_fails_leaves_the_old_answer(step: Step, tmp_path: Path) -> None:
    async with cached(tmp_path, STALE, m1=[said("old"), step]) as (gateway, models):
        await put(gateway)
        await asyncio.sleep(LATER_S)
        await put(gateway)
        await until_asked(models, 2)
        late = await put(gateway)

    assert late.status_code == 200
    assert text_of(late, "chat", stream=False) == "old"


async def test_an_answer_is_gone_when_its_second_time_is_over(tmp_path: Path) -> None:
    script = [said("old"), said("new")]
    options = {"ttl_s": 0.1, "stale_ttl_s": 0.1}
    async with cached(tmp_path, options, m1=script) as (gateway, _):
        await put(gateway)
        await asyncio.sleep(LATER_S)
        late = await put(gateway)

    assert where(late) == "miss"


@pytest.mark.parametrize("inside", [False, True])
async def test_a_renewal_is_charged_to_the_budgets_around_it(inside: bool, tmp_path: Path) -> None:
    budget = {"budget": {"limits": [{"tokens": 100_000, "per": "total"}]}}
    around: dict[str, Any] = {"inner" if inside else "outer": [budget]}
    script = [said("old"), said("new")]
    async with cached(tmp_path, {**STALE, "semantic": False}, m1=script, **around) as (
        gateway,
        models,
    ):
        await put(gateway)
        await asyncio.sleep(LATER_S)
        await put(gateway)
        await until_asked(models, 2)
        found = await total(gateway, 2)
        await gateway.worker._state._settler.drain(1)
        counters = counters_of(gateway)
        held = counters._tenants["acme"].reservations
        assert [each.spent for each in counters._counters.values()] == [found.tokens] == [10]
        assert not held
