"""A chain of any middleware is checked before anything that it will need is there."""

from pathlib import Path
from typing import Any

import pytest

from gateway.chain.layers import check_chains, known_middleware
from gateway.config.loader import load
from gateway.core import codec
from gateway.middleware.registry import KINDS

LEAST: dict[str, dict[str, Any]] = {
    "budget": {"limits": [{"usd": 1, "per": "day"}]},
    "fallback": {"models": ["echo"]},
    "guardrail": {"input": [{"kind": "pii"}]},
    "limits": {"requests": {"per_minute": 10}},
    "semantic_cache": {"embedder": "echo", "max_wrong_hit_rate": 0.02, "verify": "learned"},
}
"""Options of the kinds that need some, or that look at more with them."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_chain_is_checked_without_stores_and_servers(tmp_path: Path, kind: str) -> None:
    config = {
        "providers": {"echo": {"kind": "echo"}},
        "models": {"echo": {"targets": [{"provider": "echo", "model": "echo"}]}},
        "tenants": {"acme": {"models": ["echo"], "chain": [{kind: LEAST.get(kind, {})}]}},
    }
    path = tmp_path / "gateway.yaml"
    path.write_bytes(codec.encode(config))
    tree = load(path, environ={}, known_kinds={"echo": ()}, known_middleware=known_middleware())

    check_chains(tree)
