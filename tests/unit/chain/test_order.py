"""Which orders of a chain are refused, warned of or explained; each message says what to write instead."""

from collections.abc import Sequence
from typing import Any

import pytest

from gateway.chain.order import RULES, check_order
from gateway.config.chain import ChainEntry
from gateway.config.errors import Place

OUT = {"output": [{"kind": "regex"}]}
INNER = {"through_inner": True}
CAPS = {"limits": [{"usd": 1}]}


def chain(*kinds: str | tuple[str, dict[str, Any]]) -> Sequence[ChainEntry]:
    pairs: list[tuple[str, dict[str, Any]]] = [
        (each, {}) if isinstance(each, str) else each for each in kinds
    ]
    return [
        ChainEntry(kind=kind, id=f"{kind}{at}", options=options, place=Place("f", at))
        for at, (kind, options) in enumerate(pairs)
    ]


def found(*kinds: str | tuple[str, dict[str, Any]]) -> list[tuple[str, str]]:
    return [(each.rule.id, each.rule.result) for each in check_order(chain(*kinds))]


BUDGET, GUARD = ("budget", CAPS), ("guardrail", OUT)


@pytest.mark.contract("R-1", "R-2", "R-3", "R-4", "R-13", "R-14", "R-16", "R-21", "T-195")
@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ([GUARD, "semantic_cache"], ("R-1", "reject")),
        (["retry", BUDGET], ("R-2", "reject")),
        (["retry", ("limits", {"concurrent": 1})], ("R-2", "reject")),
        (["retry", "semantic_cache"], ("R-3", "warn")),
        (["semantic_cache"], ("R-21", "warn")),
        (["fallback", BUDGET], ("R-4", "reject")),
        (["fallback", GUARD], ("R-4", "reject")),
        (["fallback", "semantic_cache"], ("R-4", "reject")),
        (["retry", "fallback"], ("R-13", "info")),
        (["fallback", "retry"], ("R-13", "info")),
        ([GUARD, BUDGET], ("R-14", "warn")),
        (["budget"], ("R-16", "warn")),
        (["guardrail"], ("R-16", "warn")),
    ],
)
def test_an_order_is_judged(kinds: list[Any], expected: tuple[str, str]) -> None:
    assert expected in found(*kinds)


@pytest.mark.contract("R-1", "R-4")
@pytest.mark.parametrize(
    "kinds",
    [
        ["semantic_cache", GUARD],
        [("guardrail", {"input": [{"kind": "regex"}]}), "semantic_cache"],
        [("fallback", INNER), BUDGET],
        ["semantic_cache", BUDGET, GUARD, "retry", "fallback"],
    ],
)
def test_a_sound_order_is_not_refused(kinds: list[Any]) -> None:
    assert "reject" not in {result for _, result in found(*kinds)}


@pytest.mark.parametrize("rule", RULES, ids=[rule.id for rule in RULES])
def test_every_rule_finds_something_and_says_a_cure(rule: Any) -> None:
    worst = chain("retry", GUARD, "fallback", "semantic_cache", "budget", "guardrail")

    messages = [str(each) for each in check_order(worst) if each.rule is rule]

    assert messages
    assert all(rule.code in message for message in messages)


def test_an_entry_that_is_off_is_not_judged() -> None:
    entries = [
        each.model_copy(update={"mode": "off"}) if each.kind == "budget" else each
        for each in chain("retry", BUDGET)
    ]

    assert check_order(entries) == []
