"""The caps of a run: over all its calls, side calls included, before and after each (W-BUD)."""

from typing import Any

import pytest

from gateway.core.call import Call, Charge
from gateway.core.errors import GatewayError
from gateway.core.ledger import EXACT
from gateway.core.reply import Reply
from gateway.core.usage import Usage
from tests.support.layer import ANSWER
from tests.support.spending import Purse, Spender, call_of


def charge(tokens: int, micro: int = 0) -> Charge:
    return Charge(EXACT, Usage(tokens, 0), micro, priced=True)


async def unused(call: Call) -> Reply:
    raise AssertionError("a call was made")


@pytest.mark.contract("W-BUD-10")
@pytest.mark.parametrize(("spent", "refused"), [(99, False), (100, True), (101, True)])
async def test_a_run_that_has_reached_its_cap_makes_no_further_call(
    spent: int, refused: bool
) -> None:
    layer = Purse().layer("budget", max_tokens=100)
    call = call_of()
    call.run.charges.append(charge(spent))

    if not refused:
        assert await Spender(call, [(1, 0)]).go(layer) == ""
        return
    with pytest.raises(GatewayError) as caught:
        await layer.wrap_model(call, unused)
    assert caught.value.code == "budget_exceeded"
    assert caught.value.details is not None
    assert caught.value.details["actual"] == spent


@pytest.mark.contract("W-BUD-11", "T-231")
async def test_side_calls_count_for_the_cap() -> None:
    layer = Purse().layer("budget", max_tokens=100)
    call = call_of()
    call.run.charges.append(charge(10))  # the embedding of a cache around this layer
    spender = Spender(call, [(95, 0)])

    assert await spender.go(layer) == "budget_exceeded"
    assert spender.error.details is not None
    assert spender.error.details["actual"] == 105


@pytest.mark.contract("W-BUD-11")
@pytest.mark.bug("K15")
async def test_side_calls_are_settled_even_where_the_call_itself_was_not_made() -> None:
    purse = Purse()
    layer = purse.layer("budget", limits=[{"tokens": 100, "per": "day"}])
    call = call_of()
    call.run.charges.append(charge(10, 20))

    layer.finish(call.run)
    await purse.settle()

    assert list(purse.held.values()) == [(10, 0)]


@pytest.mark.contract("W-BUD-7")
async def test_what_is_served_without_a_provider_costs_nothing() -> None:
    purse = Purse()
    layer = purse.layer("budget", max_tokens=1, limits=[{"tokens": 50, "per": "day"}])
    call = call_of(max_tokens=20)

    async def cached(_: Any) -> Reply:
        return ANSWER

    assert await layer.wrap_model(call, cached) is ANSWER
    layer.finish(call.run)
    await purse.settle()
    assert list(purse.held.values()) == [(0, 0)]


@pytest.mark.contract("W-BUD-2")
async def test_a_run_is_counted_over_all_its_calls() -> None:
    layer = Purse().layer("budget", max_tokens=100)
    call = call_of()

    assert await Spender(call, [(60, 0)], ends=False).go(layer) == ""
    second = Spender(call, [(60, 0)])
    assert await second.go(layer) == "budget_exceeded"
    assert second.entered


@pytest.mark.contract("W-BUD-8")
@pytest.mark.parametrize(
    ("contract", "dimension", "unit"),
    [
        ({"max_tokens": 10}, "tokens", "tokens"),
        ({"max_cost_usd": 0.00001}, "usd", "usd"),
        ({"max_latency_ms": 1}, "latency", "ms"),
    ],
)
async def test_a_contract_names_what_was_broken(
    contract: dict[str, Any], dimension: str, unit: str
) -> None:
    layer = Purse().layer("budget", contract=contract)
    spender = Spender(call_of(), [(60, 60)], wait_s=0.01)

    assert await spender.go(layer) == "budget_exceeded"
    assert spender.error.details is not None
    assert (spender.error.details["dimension"], spender.error.details["unit"]) == (dimension, unit)


@pytest.mark.contract("W-BUD-8")
async def test_plain_caps_are_looked_at_first() -> None:
    layer = Purse().layer("budget", max_tokens=50, contract={"max_tokens": 10})
    spender = Spender(call_of(), [(60, 0)])

    await spender.go(layer)
    assert spender.error.details is not None
    assert spender.error.details["limit"] == 50
