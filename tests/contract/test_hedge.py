"""Hedged calls as a caller and the provider see them."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.models import HANG, ask, chained, refuse, said, texts
from tests.support.scripted_upstream import until

Chain = list[dict[str, Any]]


def hedge(after_ms: object = 150, **options: object) -> Chain:
    """Return a chain of one hedge."""
    return [{"hedge": {"after_ms": after_ms, **options}}]


def patient(config: dict[str, Any]) -> None:
    """Let a call take its time."""
    config["providers"]["up"]["timeout"]["first_byte_s"] = 20


@pytest.mark.bug("K05")
@pytest.mark.parametrize("stream", [False, True])
async def test_the_second_call_answers_and_the_first_is_ended(stream: bool, tmp_path: Path) -> None:
    async with chained(tmp_path, hedge(), m1=[HANG, said("one two")], config=patient) as (
        gateway,
        models,
    ):
        loop = asyncio.get_running_loop()
        began = loop.time()
        answer = await gateway.post(ask(stream=stream))
        took = loop.time() - began
        outcomes = [
            gateway.count("gateway_upstream_attempts_total", outcome=outcome)
            for outcome in ("ok", "hedged")
        ]
        won = gateway.count("gateway_hedges_total", outcome="second")

    assert (answer.status_code, models.n()) == (200, 2)
    assert answer.headers["x-gateway-attempts"] == "2"
    assert took < 5
    assert "one two" in (texts(answer.text) if stream else answer.text)
    assert (outcomes, won) == ([1, 1], 1)


async def test_a_first_call_that_is_only_a_little_slow_wins(tmp_path: Path) -> None:
    steps = [said("first", delay_s=0.5), said("second", delay_s=5)]
    async with chained(tmp_path, hedge(), m1=steps, config=patient) as (gateway, models):
        answer = await gateway.post(ask())
        won = gateway.count("gateway_hedges_total", outcome="first")

    assert "first" in answer.text
    assert (models.n(), won) == (2, 1)


@pytest.mark.parametrize(
    "more", [{"tools": [{"type": "function", "function": {"name": "f"}}]}, {"functions": []}]
)
async def test_requests_that_may_act_are_never_made_twice(
    more: Mapping[str, Any], tmp_path: Path
) -> None:
    async with chained(tmp_path, hedge(10), m1=[said(delay_s=0.2)]) as (gateway, models):
        await gateway.post(ask(**more))

    assert models.n() == 1


async def test_a_quick_answer_and_a_quick_refusal_stay_alone(tmp_path: Path) -> None:
    async with chained(tmp_path, hedge(5000), m1=[said(), refuse(503)]) as (gateway, models):
        answers = [(await gateway.post(ask())).status_code for _ in range(2)]

    assert (answers, models.n()) == ([200, 503], 2)


async def test_when_the_second_fails_the_first_is_waited_for(tmp_path: Path) -> None:
    steps = [said("late", delay_s=0.6), refuse(503)]
    async with chained(tmp_path, hedge(), m1=steps) as (gateway, models):
        answer = await gateway.post(ask())

    assert (answer.status_code, models.n()) == (200, 2)


async def test_when_both_fail_the_first_error_is_the_answer(tmp_path: Path) -> None:
    steps = [replace(refuse(429), delay_s=0.6), refuse(503)]
    async with chained(tmp_path, hedge(), m1=steps) as (gateway, models):
        answer = await gateway.post(ask())

    assert (answer.status_code, models.n()) == (429, 2)


@pytest.mark.bug("K05")
@pytest.mark.contract("G-10")
async def test_who_leaves_ends_both_calls(tmp_path: Path) -> None:
    async with chained(tmp_path, hedge(), m1=[HANG], config=patient) as (gateway, models):
        with pytest.raises(httpx2.TimeoutException):
            await gateway.client.post(
                "/v1/chat/completions", json=ask(), timeout=httpx2.Timeout(0.8)
            )
        await until(lambda: not gateway.running)
        left = gateway.count("gateway_upstream_attempts_total", outcome="client_gone")

    assert (models.n(), left) == (2, 2)


@pytest.mark.contract("G-11")
async def test_second_calls_stay_within_their_share(tmp_path: Path) -> None:
    chain = hedge(5)
    async with chained(tmp_path, chain, m1=[said(delay_s=0.03)]) as (gateway, models):
        for _ in range(6):
            await asyncio.gather(*(gateway.post(ask()) for _ in range(10)))
        withheld = gateway.count("gateway_hedges_total", outcome="budget")

    assert models.n() == 70
    assert withheld == 50


async def test_a_shadow_only_counts(tmp_path: Path) -> None:
    chain = hedge(20, mode="shadow")
    async with chained(tmp_path, chain, m1=[said(delay_s=0.2)]) as (gateway, models):
        await gateway.post(ask())

        assert gateway.count("gateway_shadow_verdicts_total", verdict="hedge") == 1
    assert models.n() == 1


async def test_it_learns_what_slow_is(tmp_path: Path) -> None:
    steps = [*[said() for _ in range(20)], HANG, said("quick")]
    async with chained(tmp_path, hedge("p95"), m1=steps, config=patient) as (gateway, models):
        for _ in range(20):
            await gateway.post(ask())
        learned = models.n()
        answer = await gateway.post(ask())

    assert (learned, models.n()) == (20, 22)
    assert "quick" in answer.text
