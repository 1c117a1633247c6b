"""The admin route that shows how targets and credentials are: which are left alone, and until when."""

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter

from gateway.telemetry.cells import Families

_STATES = ("closed", "half_open", "open")
Describe = Callable[[], dict[str, Any]]


def target_health(describe: Describe) -> APIRouter:
    """Return the route; `describe` returns plain data and may be called in any thread."""
    router = APIRouter()

    @router.get("/health", summary="Targets and credentials: which are left alone, and until when")
    def health() -> dict[str, Any]:
        return describe()

    health.__doc__ = None
    return router


def health_of_workers(read: Callable[[], Families]) -> Describe:
    """Describe the targets of several processes by their metrics: the worst state, the sum of the limits.

    Credentials are not in metrics.
    """

    def describe() -> dict[str, Any]:
        families = read()
        limits = families.get("gateway_target_concurrency_limit", {})
        return {
            "targets": [
                {
                    "provider": provider,
                    "model": model,
                    "state": _STATES[int(value[0])],
                    "limit": _number(limits.get((provider, model), [float("inf")])[0]),
                }
                for (provider, model), value in families.get("gateway_breaker_state", {}).items()
            ],
            "keys": None,
        }

    return describe


def _number(limit: float) -> int | None:
    return None if limit == float("inf") else int(limit)
