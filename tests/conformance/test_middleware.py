"""Every kind of middleware against what all of them promise; the registry is the list."""

from typing import Any

import pytest

from gateway.middleware.registry import KINDS, load_kind
from gateway.testing import Conformance

OPTIONS: dict[str, dict[str, Any]] = {
    "fallback": {"models": ["m2"]},
    "hedge": {"after_ms": 50},
    "retry": {"initial_delay_ms": 1},
    "budget": {"max_tokens": 1000, "unpriced": "tokens_only"},
    "limits": {"requests": {"per_minute": 1000}},
    "semantic_cache": {"semantic": False},
}


def suite(kind: str) -> type[Conformance]:
    found = type(
        "Suite", (Conformance,), {"middleware": load_kind(kind), "options": OPTIONS.get(kind, {})}
    )
    assert issubclass(found, Conformance)
    return found


CASES = [(kind, name) for kind in KINDS for name in vars(Conformance) if name.startswith("test_")]


@pytest.mark.parametrize(("kind", "promise"), CASES, ids=[f"{kind}-{name}" for kind, name in CASES])
def test_a_kind_keeps_every_promise(kind: str, promise: str) -> None:
    getattr(suite(kind)(), promise)()
