"""Which models a cap of dollars cannot hold, because nobody knows their price (R-10)."""

from collections.abc import Iterator
from typing import Any, cast

from gateway.chain.order import WARN, Finding, Rule
from gateway.chain.prices import tariffs_of
from gateway.config.chain import ChainEntry
from gateway.config.patterns import covers
from gateway.config.schema import Tree


def unpriced(tree: Tree, tenant: str) -> list[Finding]:
    """Return a finding for each budget of a tenant in dollars and each target of its models without a price.

    What a star stands for is not known before it is asked for.
    """
    held = [entry for entry in tree.chain_of(tenant) if entry.mode != "off" and _in_dollars(entry)]
    if not held:
        return []
    tariffs = tariffs_of(tree)
    found: list[Finding] = []
    for name, model in sorted(tree.models.items()):
        if not any(
            covers(each, name) or covers(name, each) for each in tree.tenants[tenant].models
        ):
            continue
        for target in model.targets:
            if "*" in target.model or tariffs[target.provider].price(target.model) is not None:
                continue
            where = f"{target.provider}/{target.model}"
            for entry in held:
                loose = entry.options.get("unpriced") == "tokens_only"
                result = "is held by tokens alone" if loose else "is refused"
                words = f"{name} {result} under {entry.id}: write prices.{where}"
                found.append(Finding(_RULE, entry, words))
    return found


def _in_dollars(entry: ChainEntry) -> bool:
    options = entry.options
    if entry.kind != "budget":
        return False
    limits = options.get("limits")
    listed = cast("list[Any]", limits) if isinstance(limits, list | tuple) else []
    in_limits = any(isinstance(each, dict) and "usd" in each for each in listed)
    return in_limits or options.get("max_cost_usd") is not None


def _nothing(chain: object) -> Iterator[tuple[ChainEntry, str]]:
    """Find nothing: this rule needs more than a chain."""
    del chain
    return iter(())


_RULE = Rule("R-10", "budget_unpriced", WARN, _nothing)
