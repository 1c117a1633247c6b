"""What is wrong with an option is told at its plain path, in one sentence, whatever forms it may have."""

from pathlib import Path
from typing import Any

import pytest

from gateway.chain.layers import check_chains, known_middleware
from gateway.config.errors import ConfigError
from gateway.config.loader import load
from gateway.core import codec


def mistakes(folder: Path, entry: dict[str, Any]) -> list[str]:
    config = {
        "providers": {"echo": {"kind": "echo"}},
        "models": {"echo": {"targets": [{"provider": "echo", "model": "echo"}]}},
        "tenants": {"acme": {"models": ["echo"], "chain": [entry]}},
    }
    path = folder / "gateway.yaml"
    path.write_bytes(codec.encode(config))
    tree = load(path, environ={}, known_kinds={"echo": ()}, known_middleware=known_middleware())
    with pytest.raises(ConfigError) as raised:
        check_chains(tree)
    return [
        f"{each.path}: {each.message}".removeprefix("tenants.acme.chain[0].")
        for each in raised.value.mistakes
    ]


CASES: list[tuple[dict[str, Any], str]] = [
    ({"hedge": {"after_ms": -5}}, "hedge.after_ms: must be 'p95', or greater than 0.0"),
    (
        {"hedge": {"after_ms": "p9"}},
        "hedge.after_ms: must be 'p95', or a number (did you mean \"p95\"?)",
    ),
    (
        {"budget": {"on_exceeded": "warm"}},
        """budget.on_exceeded: must be 'abort' or 'warn', or a block of keys (did you mean "warn"?)""",
    ),
    (
        {"budget": {"on_exceeded": {"fallback": 3}}},
        "budget.on_exceeded.fallback: must be text",
    ),
    (
        {"budget": {"on_exceeded": {"fallback": "echo", "falback": "echo"}}},
        'budget.on_exceeded: unknown key "falback" (did you mean "fallback"?)',
    ),
    ({"fallback": {"models": [3]}}, "fallback.models[0]: must be text or a block of keys"),
    ({"fallback": {"models": [""]}}, "fallback.models[0]: is empty"),
    (
        {"fallback": {"models": [{"model": "echo", "parms": 1}]}},
        'fallback.models[0]: unknown key "parms" (did you mean "params"?)',
    ),
    (
        {"budget": {"limits": [{"usd": 1, "per": "day", "scop": "key"}]}},
        'budget.limits[0]: unknown key "scop" (did you mean "scope"?)',
    ),
]


@pytest.mark.parametrize(("entry", "expected"), CASES)
def test_an_option_is_complained_of_once(
    entry: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    assert mistakes(tmp_path, entry) == [expected]


def test_a_block_that_is_one_of_the_forms_is_complained_of_inside(tmp_path: Path) -> None:
    assert mistakes(tmp_path, {"budget": {"on_exceeded": {"fall": "echo"}}}) == [
        'budget.on_exceeded: unknown key "fall" (did you mean "fallback"?)',
        'budget.on_exceeded: the key "fallback" is missing',
    ]
