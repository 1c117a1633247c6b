"""Costs are whole micro-dollars, rounded once, and no call within a bound costs more than its worst case."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.money import FREE, Price, cost, dollars, micro, worst
from gateway.core.usage import Usage

FLAT = Price(2_500_000, 10_000_000, cache_read=1_250_000, cache_write=3_125_000)
TIERED = Price(
    1_250_000,
    10_000_000,
    cache_read=125_000,
    tiers=(Price(2_500_000, 15_000_000, cache_read=250_000, above=200_000),),
)
GOLDEN: list[tuple[Price, Usage, int]] = [
    (FLAT, Usage(1000, 500), 7500),
    (FLAT, Usage(1000, 500, cached=0), 7500),
    (FLAT, Usage(1000, 0, cached=400), 600 * 5 // 2 + 400 * 5 // 4),
    (FLAT, Usage(1000, 0, cached=400, cache_write=200), 1000 + 500 + 625),
    (FLAT, Usage(1000, 500, reasoning=400), 7500),
    (FLAT._replace(reasoning=20_000_000), Usage(0, 500, reasoning=400), 1000 + 8000),
    (FLAT._replace(audio_input=40_000_000), Usage(59, 0, audio_input=43), 40 + 43 * 40),
    (FLAT._replace(audio_output=80_000_000), Usage(0, 10, audio_output=4), 60 + 320),
    (FLAT._replace(call=5000), Usage(1000, 500), 12_500),
    (FLAT, Usage(1, 0), 3),
    (FLAT, Usage(None, 1), 10),
    (FLAT, Usage(), 0),
    (FLAT, Usage(10, 0, cached=20), 13),
    (TIERED, Usage(200_000, 1), 250_010),
    (TIERED, Usage(200_001, 1), 500_003 + 15),
    (TIERED, Usage(200_001, 0, cached=200_001), 50_001),
    (Price(1, 1), Usage(1, 1), 1),
    (FREE, Usage(10**6, 10**6), 0),
]
RATE = st.integers(0, 10**9)
PART = st.none() | RATE
COUNT = st.integers(0, 1 << 28)


@st.composite
def prices(draw: st.DrawFn, *, tiers: bool = True) -> Price:
    parts = [draw(PART) for _ in range(5)]
    flat = Price(draw(RATE), draw(RATE), *parts, call=draw(RATE))
    if not tiers:
        return flat
    starts = sorted(draw(st.sets(st.integers(1, 1 << 28), max_size=3)))
    return flat._replace(
        tiers=tuple(draw(prices(tiers=False))._replace(above=start) for start in starts)
    )


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    return Usage(*(draw(st.none() | COUNT) for _ in range(7)))


@pytest.mark.bug("K16")
@pytest.mark.parametrize(("price", "usage", "micros"), GOLDEN)
def test_a_call_costs_what_its_parts_cost(price: Price, usage: Usage, micros: int) -> None:
    assert cost(price, usage) == micros


@pytest.mark.bug("K16")
@given(prices(), usages())
def test_a_cost_is_never_negative(price: Price, usage: Usage) -> None:
    assert cost(price, usage) >= 0


@pytest.mark.bug("K14", "K16")
@given(prices(), usages(), COUNT, COUNT)
def test_nothing_within_a_bound_costs_more_than_its_worst_case(
    price: Price, usage: Usage, more_in: int, more_out: int
) -> None:
    bound = worst(price, (usage.input or 0) + more_in, (usage.output or 0) + more_out)

    assert cost(price, usage) <= bound


@pytest.mark.bug("K16")
@given(RATE, usages(), usages())
def test_with_one_rate_for_all_parts_only_the_totals_count(
    rate: int, one: Usage, two: Usage
) -> None:
    price = Price(rate, rate, rate, rate, rate, rate, rate)
    tokens = (one.input or 0) + (one.output or 0)

    assert cost(price, one) == -(-tokens * rate // 10**6)
    more = one._replace(input=(one.input or 0) + (two.input or 0))
    assert cost(price, more) >= cost(price, one)


@pytest.mark.bug("K16")
@given(prices(tiers=False), usages(), COUNT, COUNT)
def test_more_tokens_never_cost_less(
    price: Price, usage: Usage, more_in: int, more_out: int
) -> None:
    more = usage._replace(input=(usage.input or 0) + more_in, output=(usage.output or 0) + more_out)
    named = Usage(more.input, more.output)

    assert cost(price, named) >= cost(price, Usage(usage.input, usage.output))
    assert worst(price, more.input or 0, more.output or 0) >= worst(
        price, usage.input or 0, usage.output or 0
    )


@given(st.integers(0, 10**15))
def test_dollars_are_written_exactly(micros: int) -> None:
    assert micro(Decimal(dollars(micros))) == micros


@pytest.mark.parametrize(
    ("micros", "text"),
    [(0, "0"), (1, "0.000001"), (1_000_000, "1"), (1_230_000, "1.23"), (-500_000, "-0.5")],
)
def test_dollars_have_no_idle_digits(micros: int, text: str) -> None:
    assert dollars(micros) == text


@pytest.mark.parametrize("written", ["NaN", "Infinity", "-0.01"])
def test_what_is_no_sum_of_money_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="no sum of money"):
        micro(Decimal(written))


def test_less_than_a_micro_dollar_is_rounded_up() -> None:
    assert micro(Decimal("0.0000001")) == 1
