"""Chains with a budget in front of scripted models, and what came of the money."""

import asyncio
from collections.abc import Callable
from typing import Any

from gateway.core.ledger import Owner, Total
from gateway.stores.memory import MemoryCounters
from tests.support.serving import Serving

Config = Callable[[dict[str, Any]], None]
PRICES = {"up/m1": {"input": 10, "output": 20}, "up/m2": {"input": 100, "output": 200}}
USED = "gateway_budget_rejections_total"


def priced(**prices: object) -> Config:
    """Return a change of a configuration: prices in dollars per million tokens."""

    def change(config: dict[str, Any]) -> None:
        config["prices"] = prices or PRICES

    return change


def budget(**options: object) -> list[dict[str, Any]]:
    """Return a chain of one budget."""
    return [{"budget": options}]


async def total(gateway: Serving, calls: int) -> Total:
    """Return what the ledger adds up to, once it has so many calls."""
    ledger = gateway.worker._state.ledger
    found = Total(0, 0, -1)
    while found.calls < calls:
        found = await ledger.total(Owner("acme"), 0, 0)
        await asyncio.sleep(0.01)
    return found


def counters_of(gateway: Serving) -> MemoryCounters:
    """Return the counters of a gateway whose state is in memory."""
    counters = gateway.worker._state._counters
    assert isinstance(counters, MemoryCounters)
    return counters


def details(answer: Any) -> dict[str, Any]:
    """Return what a refusal says for programs."""
    found: dict[str, Any] = answer.json()["error"]["gateway"]["details"]
    return found
