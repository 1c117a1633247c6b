"""A budget in dollars over a model whose price nobody knows is told before it is used."""

from pathlib import Path
from typing import Any

import pytest

from gateway.chain.explain import describe, render
from gateway.chain.layers import known_middleware
from gateway.config.loader import load
from gateway.config.schema import Tree
from gateway.core import codec

DOLLARS = {"budget": {"limits": [{"usd": 5, "per": "day"}]}}


def tree_of(folder: Path, *chain: Any, **more: Any) -> Tree:
    config: dict[str, Any] = {
        "providers": {
            "local": {"kind": "vllm"},
            "openai": {"kind": "openai", "api_key": "sk-upstream-0123456789abcdef"},
        },
        "models": {
            "own": {"targets": [{"provider": "local", "model": "llama"}]},
            "known": {"targets": [{"provider": "openai", "model": "gpt-4o-mini"}]},
            "openai/*": {"targets": [{"provider": "openai", "model": "*"}]},
        },
        "tenants": {"acme": {"models": ["own", "known", "openai/*"], "chain": list(chain)}},
        **more,
    }
    path = folder / "gateway.yaml"
    path.write_bytes(codec.encode(config))
    return load(
        path,
        environ={},
        known_kinds={"vllm": (), "openai": ()},
        known_middleware=known_middleware(),
    )


def told(tree: Tree) -> list[str]:
    found: list[str] = describe(tree)["tenants"]["acme"]["findings"]
    assert all(line in render(describe(tree)) for line in found)
    return found


@pytest.mark.contract("R-10")
@pytest.mark.parametrize(
    ("entry", "word"),
    [
        (DOLLARS, "is refused"),
        ({"budget": {"max_cost_usd": 1}}, "is refused"),
        ({"budget": {"max_cost_usd": 1, "unpriced": "tokens_only"}}, "tokens alone"),
    ],
)
def test_each_model_without_a_price_is_named_with_the_cure(
    entry: Any, word: str, tmp_path: Path
) -> None:
    (line,) = told(tree_of(tmp_path, entry))

    assert line.startswith("warn: own ")
    assert word in line
    assert "write prices.local/llama" in line
    assert "R-10 budget_unpriced" in line


@pytest.mark.parametrize(
    ("chain", "more"),
    [
        ([], {}),
        ([{"budget": {"limits": [{"tokens": 5, "per": "day"}]}}], {}),
        ([{"budget": {**DOLLARS["budget"], "mode": "off"}}], {}),
        ([DOLLARS], {"prices": {"local/*": {"input": 0, "output": 0}}}),
    ],
)
def test_where_no_price_is_missed_nothing_is_told(
    chain: list[Any], more: dict[str, Any], tmp_path: Path
) -> None:
    assert told(tree_of(tmp_path, *chain, **more)) == []


def test_the_plan_tells_prices_and_the_most_that_a_call_can_cost(tmp_path: Path) -> None:
    prices = {"local/llama": {"input": 1, "output": 2.5}}
    tree = tree_of(tmp_path, prices=prices)
    models = describe(tree)["models"]

    assert models["own"]["targets"][0]["usd_per_million"] == {"input": "1", "output": "2.5"}
    assert models["own"]["worst_case_usd"] is None
    assert models["openai/*"]["targets"][0]["usd_per_million"] is None
    limits = {"context_tokens": 100_000, "max_output_tokens": 4000}
    target = {"provider": "local", "model": "llama"}
    tree = tree_of(
        tmp_path, prices=prices, models={"own": {"targets": [target], "limits": limits}},
        tenants={"acme": {"models": ["own"]}},
    )  # fmt: skip
    assert describe(tree)["models"]["own"]["worst_case_usd"] == "0.11"
    assert "model own (weighted), at most $0.11 a call\n" in render(describe(tree))
    assert "key(s), $1 and $2.5 a million tokens\n" in render(describe(tree))
