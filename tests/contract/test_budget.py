"""Budgets as a caller and a provider see them: per run (W-BUD, T-181 to T-188), per window, and within a stream."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gateway.config.errors import ConfigError
from gateway.core.ledger import Total
from tests.support.budgets import USED, budget, counters_of, details, priced, total
from tests.support.models import RESET, Step, ask, chained, cut, refuse, said, texts
from tests.support.scripted_upstream import until


@pytest.mark.contract("W-BUD-2", "T-181")
async def test_runs_side_by_side_are_counted_apart(tmp_path: Path) -> None:
    chain = budget(max_tokens=50)
    async with chained(tmp_path, chain, m1=[said(tokens=(30, 10), delay_s=0.05)]) as (gateway, _):
        answers = await asyncio.gather(gateway.post(ask()), gateway.post(ask()))

    assert [answer.status_code for answer in answers] == [200, 200]


@pytest.mark.contract("W-BUD-1", "W-BUD-3", "W-BUD-4", "T-182")
async def test_an_answer_over_the_cap_of_a_run_is_refused_and_paid(tmp_path: Path) -> None:
    async with chained(tmp_path, budget(max_tokens=60), m1=[said(tokens=(150, 50))]) as (
        gateway,
        _,
    ):
        answer = await gateway.post(ask())

        assert (answer.status_code, answer.json()["error"]["code"]) == (429, "budget_exceeded")
        assert answer.headers["x-should-retry"] == "false"
        assert details(answer).items() >= {"unit": "tokens", "limit": 60, "actual": 200}.items()
        assert (await total(gateway, 1)).tokens == 200
        assert gateway.count(USED, budget="budget", unit="tokens") == 1


@pytest.mark.contract("W-BUD-3", "D-10")
@pytest.mark.parametrize(("used", "status"), [(60, 200), (61, 429)])
async def test_as_much_as_the_cap_is_not_too_much(used: int, status: int, tmp_path: Path) -> None:
    chain = budget(limits=[{"tokens": 60, "per": "run"}])
    async with chained(tmp_path, chain, m1=[said(tokens=(used, 0))]) as (gateway, _):
        assert (await gateway.post(ask())).status_code == status


@pytest.mark.contract("W-BUD-3")
async def test_a_stream_over_the_cap_of_its_run_does_not_end_well(tmp_path: Path) -> None:
    async with chained(tmp_path, budget(max_tokens=60), m1=[said("a b", tokens=(150, 50))]) as (
        gateway,
        _,
    ):
        answer = await gateway.post(ask(stream=True))

    assert texts(answer.text) in {"a", "a b"}
    assert "budget_exceeded" in answer.text
    assert "[DONE]" not in answer.text


@pytest.mark.contract("W-BUD-6", "D-11", "T-184")
async def test_where_a_budget_only_warns_there_is_one_warning(tmp_path: Path) -> None:
    chain = budget(max_tokens=60, max_cost_usd=0.0001, on_exceeded="warn")
    async with chained(tmp_path, chain, config=priced(), m1=[said(tokens=(150, 50))]) as (
        gateway,
        _,
    ):
        answer = await gateway.post(ask())

    assert answer.status_code == 200
    assert answer.headers["x-gateway-warnings"].count("budget_exceeded") == 1


@pytest.mark.contract("W-BUD-5", "T-185")
async def test_dollars_are_counted_by_the_price_of_the_model(tmp_path: Path) -> None:
    chain = budget(max_cost_usd=0.01)
    prices = priced(**{"up/m1": {"input": 10, "output": 20}})
    async with chained(tmp_path, chain, config=prices, m1=[said(tokens=(1000, 1000))]) as (
        gateway,
        _,
    ):
        answer = await gateway.post(ask())

    assert answer.status_code == 429
    assert details(answer).items() >= {"unit": "usd", "limit": 0.01, "actual": 0.03}.items()


@pytest.mark.bug("K16")
@pytest.mark.contract("W-BUD-5")
@pytest.mark.parametrize("per", ["run", "day"])
async def test_a_model_without_a_price_is_refused_under_a_cap_of_dollars(
    per: str, tmp_path: Path
) -> None:
    chain = budget(limits=[{"usd": 1, "per": per}])
    async with chained(tmp_path, chain, m1=[said()]) as (gateway, models):
        answer = await gateway.post(ask())

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "unpriced_model")
    assert "m1" in answer.json()["error"]["message"]
    assert models.n() == 0


@pytest.mark.contract("W-BUD-5", "T-186")
@pytest.mark.parametrize("per", ["run", "day"])
async def test_or_only_its_tokens_are_counted(per: str, tmp_path: Path) -> None:
    chain = budget(
        limits=[{"usd": 1, "per": per}, {"tokens": 9000, "per": per}], unpriced="tokens_only"
    )
    async with chained(tmp_path, chain, m1=[said(tokens=(10, 2))]) as (gateway, models):
        answer = await gateway.post(ask())

        assert (answer.status_code, models.n()) == (200, 1)
        assert answer.headers["x-gateway-warnings"].count("the price of m1 is not known") == 1
        assert await total(gateway, 1) == Total(0, 12, 1)


@pytest.mark.contract("W-BUD-5", "X-5", "T-187")
async def test_the_model_that_answered_is_paid(tmp_path: Path) -> None:
    chain = [*budget(max_cost_usd=0.001), {"fallback": {"models": ["m2"]}}]
    async with chained(
        tmp_path, chain, config=priced(), m1=[refuse(503)], m2=[said(tokens=(10, 10))]
    ) as (gateway, _):
        answer = await gateway.post(ask())

        assert details(answer).items() >= {"unit": "usd", "limit": 0.001, "actual": 0.003}.items()
        assert await total(gateway, 1) == Total(3000, 20, 1)


@pytest.mark.contract("W-BUD-8", "T-188")
async def test_a_run_may_be_bound_in_time(tmp_path: Path) -> None:
    chain = budget(contract={"max_latency_ms": 50})
    async with chained(tmp_path, chain, m1=[said(delay_s=0.1)]) as (gateway, _):
        answer = await gateway.post(ask())

    assert answer.status_code == 429
    assert details(answer)["dimension"] == "latency"
    assert details(answer)["actual"] > details(answer)["limit"] == 50


@pytest.mark.contract("W-BUD-8")
async def test_or_go_on_with_a_warning(tmp_path: Path) -> None:
    chain = budget(contract={"max_tokens": 1, "max_latency_ms": 1, "on_violation": "fallback"})
    async with chained(tmp_path, chain, m1=[said(delay_s=0.01)]) as (gateway, _):
        answer = await gateway.post(ask())

    assert answer.status_code == 200
    assert answer.headers["x-gateway-warnings"].count("budget_exceeded") == 1


@pytest.mark.contract("W-BUD-9")
async def test_without_caps_nothing_is_held(tmp_path: Path) -> None:
    async with chained(tmp_path, [{"budget": None}], m1=[said(tokens=(10**6, 10**6))]) as (
        gateway,
        _,
    ):
        assert (await gateway.post(ask())).status_code == 200


# ---------------------------------------------------------------- windows


@pytest.mark.bug("K14")
@pytest.mark.contract("W-BUD-1")
async def test_what_could_pass_the_cap_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    chain = budget(limits=[{"tokens": 300, "per": "day"}])
    async with chained(tmp_path, chain, m1=[said(tokens=(10, 5))]) as (gateway, models):
        first = await gateway.post(ask(max_tokens=150))
        second = await gateway.post(ask(max_tokens=280))

        assert (first.status_code, second.status_code, models.n()) == (200, 429, 1)
        assert details(second).items() >= {"unit": "tokens", "limit": 300, "per": "day"}.items()
        assert details(second)["actual"] == 15
        assert second.headers["x-should-retry"] == "false"
        assert (await gateway.post(ask(max_tokens=150))).status_code == 200


@pytest.mark.bug("K14")
@pytest.mark.parametrize(
    "fields",
    [
        {"max_tokens": 99999999999999999999},
        {"max_tokens": 2**63 - 1},
        {"max_completion_tokens": 10**400},
        {"max_tokens": 5, "n": 10**18},
        {"max_tokens": 10**18, "n": 10**18, "best_of": 10**30},
    ],
)
async def test_whoever_asks_for_more_than_there_is_is_refused(
    fields: dict[str, Any], tmp_path: Path
) -> None:
    chain = budget(limits=[{"usd": 1, "per": "day"}, {"tokens": 10_000, "per": "day"}])
    async with chained(tmp_path, chain, config=priced(), m1=[said()]) as (gateway, models):
        answer = await gateway.post(ask(**fields))

        assert (answer.status_code, models.n()) == (429, 0), answer.text
        assert answer.json()["error"]["code"] == "budget_exceeded"


@pytest.mark.bug("K14")
async def test_calls_side_by_side_never_hold_more_than_the_cap(tmp_path: Path) -> None:
    chain = budget(limits=[{"tokens": 1000, "per": "day", "scope": "key"}])
    async with chained(tmp_path, chain, m1=[said(tokens=(10, 200), delay_s=0.1)]) as (
        gateway,
        models,
    ):
        answers = await asyncio.gather(*(gateway.post(ask(max_tokens=200)) for _ in range(20)))

        passed = [answer.status_code for answer in answers].count(200)
        assert passed == models.n() == 3
        assert (await total(gateway, passed)).tokens <= 1000


@pytest.mark.bug("K15")
async def test_a_bound_that_was_missing_is_made_and_named(tmp_path: Path) -> None:
    chain = budget(limits=[{"tokens": 10_000, "per": "day"}])
    async with chained(tmp_path, chain, m1=[said()]) as (gateway, models):
        answer = await gateway.post(ask())

    assert models.asked[0].body["max_completion_tokens"] == 4096
    assert "max_completion_tokens was set to 4096" in answer.headers["x-gateway-warnings"]


@pytest.mark.bug("K15")
async def test_a_bound_of_the_target_is_left_alone(tmp_path: Path) -> None:
    def config(whole: dict[str, Any]) -> None:
        whole["models"]["m1"]["targets"][0]["params"] = {"max_tokens": 77}

    chain = budget(limits=[{"tokens": 1000, "per": "day"}])
    async with chained(tmp_path, chain, config=config, m1=[said()]) as (gateway, models):
        answer = await gateway.post(ask())

    assert answer.status_code == 200
    assert "x-gateway-warnings" not in answer.headers
    assert models.asked[0].body["max_tokens"] == 77


@pytest.mark.contract("W-BUD-1")
async def test_near_the_cap_a_cheaper_model_answers(tmp_path: Path) -> None:
    prices = {"up/m1": {"input": 1000, "output": 1000}, "up/m2": {"input": 1, "output": 1}}
    chain = budget(limits=[{"usd": 0.5, "per": "month"}], on_exceeded={"fallback": "m2"})
    async with chained(
        tmp_path, chain, config=priced(**prices), m1=[said("dear", (10, 300))], m2=[said("cheap")]
    ) as (gateway, models):
        answers = [await gateway.post(ask(max_tokens=300)) for _ in range(2)]

    assert [each.json()["choices"][0]["message"]["content"] for each in answers] == [
        "dear",
        "cheap",
    ]
    assert models.order == ["m1", "m2"]
    assert answers[1].headers["x-gateway-model"] == "up/m2"
    assert "m2 was called" in answers[1].headers["x-gateway-warnings"]


@pytest.mark.bug("K11", "K30")
async def test_no_key_gets_a_cheaper_model_that_it_does_not_open(tmp_path: Path) -> None:
    def narrow(config: dict[str, Any]) -> None:
        dear, cheap = {"input": 1000, "output": 1000}, {"input": 1, "output": 1}
        priced(**{"up/m1": dear, "up/m2": cheap})(config)
        config["tenants"]["acme"]["keys"][0]["models"] = ["m1"]

    chain = budget(limits=[{"usd": 0.2, "per": "day"}], on_exceeded={"fallback": "m2"})
    async with chained(tmp_path, chain, config=narrow, m1=[said()], m2=[said()]) as (
        gateway,
        models,
    ):
        answer = await gateway.post(ask(max_tokens=300))

    assert (answer.status_code, details(answer)["unit"]) == (429, "usd")
    assert models.n() == 0


async def test_in_shadow_a_budget_is_counted_and_refuses_nothing(tmp_path: Path) -> None:
    chain = budget(mode="shadow", limits=[{"tokens": 10, "per": "day"}], max_tokens=1)
    async with chained(tmp_path, chain, m1=[said(tokens=(10, 5))]) as (gateway, models):
        answers = [await gateway.post(ask()) for _ in range(2)]

        assert [answer.status_code for answer in answers] == [200, 200]
        assert "x-gateway-warnings" not in answers[0].headers
        assert "max_completion_tokens" not in models.asked[0].body
        assert gateway.count("gateway_shadow_verdicts_total", middleware="budget") >= 2
        assert gateway.count(USED) == 0


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"limits": [{"per": "day"}]}, "needs either usd or tokens"),
        ({"limits": [{"usd": 1, "tokens": 1, "per": "day"}]}, "needs either usd or tokens"),
        ({"limits": [{"usd": 1, "per": "year"}]}, "per"),
        ({"limits": [{"usd": 1, "per": "day"}], "timezone": "Mars/Base"}, "time zone"),
        ({"on_exceeded": {"fallback": "m9"}}, "R-22"),
        ({"max_token": 1}, "max_tokens"),
        ({"limits": [{"usd": 0.0000001, "per": "day"}]}, "0.000001 or more"),
        ({"max_cost_usd": 0.0000009}, "0.000001 or more"),
        ({"contract": {"max_cost_usd": 0.0000009}}, "0.000001 or more"),
    ],
)
async def test_a_mistake_in_its_options_stops_the_start(
    options: dict[str, Any], word: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=word):
        async with chained(tmp_path, budget(**options), m1=[said()]):
            pass


# ---------------------------------------------------------------- every ending


ENDINGS: list[tuple[str, Step, bool, tuple[int, int], str]] = [
    ("whole", said(tokens=(10, 5)), False, (15, 15), "exact"),
    ("streamed", said("a b", tokens=(10, 5)), True, (15, 15), "exact"),
    ("cut", cut(2), True, (3, 400), "estimated"),
    ("whole without usage", said(tokens=None), False, (20, 900), "estimated"),
    ("refused", refuse(400), False, (0, 0), ""),
    ("never answered", RESET, False, (20, 400), "uncertain"),
]


@pytest.mark.bug("K15")
@pytest.mark.parametrize(
    ("step", "stream", "tokens", "kind"),
    [row[1:] for row in ENDINGS],
    ids=[row[0] for row in ENDINGS],
)
async def test_whatever_the_ending_the_counters_say_what_the_ledger_says(
    step: Step, stream: bool, tokens: tuple[int, int], kind: str, tmp_path: Path
) -> None:
    chain = budget(limits=[{"tokens": 100_000, "per": "total"}, {"usd": 9, "per": "total"}])
    async with chained(tmp_path, chain, config=priced(), m1=[step]) as (gateway, _):
        await gateway.post(ask(stream=stream))
        found = await total(gateway, 1 if kind else 0)

        assert tokens[0] <= found.tokens <= tokens[1]
        state = gateway.worker._state
        await state._settler.drain(1)
        counters = counters_of(gateway)
        spent = sorted(
            (name[1], each.spent, each.held) for name, each in counters._counters.items()
        )
        assert [each[1:] for each in spent] == [(found.tokens, 0), (found.cost_micro, 0)]
        assert not counters._tenants["acme"].reservations


@pytest.mark.bug("K15")
async def test_a_client_that_leaves_pays_for_what_was_made(tmp_path: Path) -> None:
    chain = budget(limits=[{"tokens": 100_000, "per": "total"}])
    slow = Step("ok", "one two three four five six", gap_s=0.05)
    async with chained(tmp_path, chain, m1=[slow]) as (gateway, _):
        async with gateway.client.stream(
            "POST", "/v1/chat/completions", json=ask(stream=True)
        ) as answer:
            async for line in answer.aiter_lines():
                if "two" in line:
                    break
        found = await total(gateway, 1)
        await until(lambda: not gateway.running)

        counters = counters_of(gateway)
        await gateway.worker._state._settler.drain(1)
        assert [each.spent for each in counters._counters.values()] == [found.tokens]
        assert found.tokens > 3


# ---------------------------------------------------------------- within a stream
