"""Limits as a caller sees them: refused in time, told when to come back, counted for the right owner."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from gateway.core.counting import answers_at_once
from gateway.stores.memory import MemoryCounters
from tests.support.models import ask, chained, refuse, said
from tests.support.serving import Serving

REJECTED = "gateway_limit_rejections_total"


def memory(gateway: Serving) -> Any:
    counters = gateway.worker._state._counters
    assert isinstance(counters, MemoryCounters)
    return counters._counters


def limits(**options: object) -> list[dict[str, Any]]:
    return [{"limits": options}]


@pytest.mark.bug("K14")
async def test_one_more_than_the_limit_is_refused_with_the_time_to_come_back(
    tmp_path: Path,
) -> None:
    async with chained(tmp_path, limits(requests={"per_day": 2}), m1=[said()]) as (gateway, models):
        answers = [await gateway.post(ask()) for _ in range(3)]

        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert models.n() == 2
        last = answers[-1]
        assert last.json()["error"]["code"] == "limit_exceeded"
        assert last.json()["error"]["type"] == "rate_limit_error"
        assert 0 < int(last.headers["retry-after"]) <= 86_400
        assert last.headers["x-should-retry"] == "true"
        assert gateway.count(REJECTED, limit="limits", unit="requests") == 1


async def test_every_answer_tells_what_is_left(tmp_path: Path) -> None:
    chain = limits(requests={"per_day": 5, "per_hour": 3}, tokens={"per_day": 10_000})
    async with chained(tmp_path, chain, m1=[said(tokens=(10, 5))]) as (gateway, _):
        headers = [(await gateway.post(ask(max_tokens=50))).headers for _ in range(2)]

    assert [each["x-ratelimit-limit-requests"] for each in headers] == ["3", "3"]
    assert [each["x-ratelimit-remaining-requests"] for each in headers] == ["2", "1"]
    assert headers[0]["x-ratelimit-limit-tokens"] == "10000"
    assert 9000 < int(headers[1]["x-ratelimit-remaining-tokens"]) < 10_000 - 50
    assert headers[0]["x-ratelimit-reset-requests"].endswith("s")


@pytest.mark.bug("K14")
async def test_calls_at_once_are_counted_while_they_run(tmp_path: Path) -> None:
    async with chained(tmp_path, limits(concurrent=2), m1=[said(delay_s=0.2)]) as (gateway, models):
        answers = await asyncio.gather(*(gateway.post(ask()) for _ in range(5)))
        again = await gateway.post(ask())

    assert sorted(answer.status_code for answer in answers) == [200, 200, 429, 429, 429]
    assert (again.status_code, models.n()) == (200, 3)


async def test_a_call_waits_for_a_place_as_long_as_it_may(tmp_path: Path) -> None:
    chain = limits(concurrent=1, queue_ms=5000)
    async with chained(tmp_path, chain, m1=[said(delay_s=0.05)]) as (gateway, _):
        answers = await asyncio.gather(*(gateway.post(ask()) for _ in range(4)))

    assert [answer.status_code for answer in answers] == [200] * 4


async def test_and_no_longer(tmp_path: Path) -> None:
    chain = limits(requests={"per_day": 1}, queue_ms=100)
    async with chained(tmp_path, chain, m1=[said()]) as (gateway, _):
        await gateway.post(ask())
        began = time.monotonic()
        answer = await gateway.post(ask())

    assert answer.status_code == 429
    assert 0.09 < time.monotonic() - began < 3


@pytest.mark.bug("K17")
async def test_a_window_opens_again_by_the_clock_alone(tmp_path: Path) -> None:
    async with chained(tmp_path, limits(requests={"per_second": 1}), m1=[said()]) as (gateway, _):
        statuses: list[int] = []
        until = time.monotonic() + 2.5
        while time.monotonic() < until:
            statuses.append((await gateway.post(ask())).status_code)
            await asyncio.sleep(0.05)

    assert 2 <= statuses.count(200) <= 4
    assert statuses.count(429) > 5


@pytest.mark.parametrize(
    ("scope", "one", "other"),
    [
        ("user", {"x_gateway_user": "ann"}, {"x_gateway_user": "bob"}),
        ("session", {"x_gateway_session": "s1"}, {"x_gateway_session": "s2"}),
    ],
)
async def test_each_owner_has_its_own(
    scope: str, one: dict[str, str], other: dict[str, str], tmp_path: Path
) -> None:
    chain = limits(requests={"per_day": 1}, scope=scope)
    async with chained(tmp_path, chain, m1=[said()]) as (gateway, _):
        statuses = [
            (await gateway.post(ask(), **who)).status_code for who in (one, one, other, {}, {})
        ]

    assert statuses == [200, 429, 200, 200, 429]


async def test_each_model_has_its_own(tmp_path: Path) -> None:
    chain = limits(requests={"per_day": 1}, scope="model")
    async with chained(tmp_path, chain, m1=[said()], m2=[said()]) as (gateway, _):
        statuses = [(await gateway.post(ask(model))).status_code for model in ("m1", "m1", "m2")]

    assert statuses == [200, 429, 200]


@pytest.mark.bug("K14")
async def test_a_refused_call_changes_no_counter(tmp_path: Path) -> None:
    chain = [
        {"limits": {"requests": {"per_day": 10}, "id": "wide"}},
        {"limits": {"requests": {"per_hour": 1}, "id": "tight"}},
    ]
    async with chained(tmp_path, chain, m1=[said()]) as (gateway, _):
        for _ in range(4):
            await gateway.post(ask())
        await gateway.worker._state._settler.drain(1)
        found = {
            name[1].split(":")[3]: each.spent + each.held for name, each in memory(gateway).items()
        }

    assert found == {"wide": 1, "tight": 1}


async def test_a_call_that_failed_counts_as_a_request(tmp_path: Path) -> None:
    async with chained(tmp_path, limits(requests={"per_day": 1}), m1=[refuse(400)]) as (gateway, _):
        statuses = [(await gateway.post(ask())).status_code for _ in range(2)]

    assert statuses == [400, 429]


async def test_a_call_larger_than_the_limit_passes_once_nothing_else_counts(tmp_path: Path) -> None:
    chain = limits(tokens={"per_day": 100})
    async with chained(tmp_path, chain, m1=[said(tokens=(50, 30))]) as (gateway, models):
        statuses = [(await gateway.post(ask(max_tokens=5000))).status_code for _ in range(2)]

    assert (statuses, models.n()) == ([200, 429], 1)


async def test_in_shadow_a_limit_refuses_nothing(tmp_path: Path) -> None:
    chain = limits(mode="shadow", requests={"per_day": 1})
    async with chained(tmp_path, chain, m1=[said()]) as (gateway, _):
        answers = [await gateway.post(ask()) for _ in range(3)]

        assert [answer.status_code for answer in answers] == [200] * 3
        assert "x-ratelimit-limit-requests" not in answers[0].headers
        assert gateway.count("gateway_shadow_verdicts_total", verdict="limit_exceeded") == 2


@pytest.mark.bug("K14")
async def test_layers_side_by_side_ask_the_store_once(tmp_path: Path) -> None:
    chain = [
        *limits(requests={"per_day": 9}, concurrent=3),
        {"budget": {"limits": [{"tokens": 100_000, "per": "day"}]}},
        {"limits": {"id": "more", "tokens": {"per_minute": 50_000}}},
    ]
    async with chained(tmp_path, chain, m1=[said()]) as (gateway, _):
        asked: list[str] = []
        counters = gateway.worker._state._counters
        assert answers_at_once(counters)
        own = counters.reserve_now

        def reserve_now(*arguments: Any, **named: Any) -> Any:
            asked.append(arguments[1])
            return own(*arguments, **named)

        counters.reserve_now = reserve_now
        await gateway.post(ask())
        first = len(asked)  # the first call of all also fetches what the ledger knows
        assert (await gateway.post(ask())).status_code == 200

    assert len(asked) - first == 1
