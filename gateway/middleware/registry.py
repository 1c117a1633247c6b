"""Which file stands behind each kind; one line per kind. A kind is imported when a chain uses it."""

from importlib import import_module
from typing import NamedTuple

from gateway.middleware.base import Middleware


class Row(NamedTuple):
    """Where a kind is; `guards`: somebody is protected by it, so that it is never left out in silence."""

    module: str
    name: str
    guards: bool = False


KINDS: dict[str, Row] = {
    "budget": Row("gateway.middleware.budget", "Budget", guards=True),
    "fallback": Row("gateway.middleware.fallback.layer", "Fallback"),
    "guardrail": Row("gateway.middleware.guardrail.layer", "Guardrail", guards=True),
    "hedge": Row("gateway.middleware.hedge", "Hedge"),
    "limits": Row("gateway.middleware.limits", "Limits", guards=True),
    "semantic_cache": Row("gateway.middleware.semantic_cache.layer", "SemanticCache"),
    "retry": Row("gateway.middleware.retry", "Retry"),
}


def load_kind(kind: str) -> type[Middleware]:
    """Return the class of a kind; raises KeyError for an unknown one."""
    row = KINDS[kind]
    found: type[Middleware] = getattr(import_module(row.module), row.name)
    return found
