"""Admin routes to look at chains: which middleware there is, and what one request's layers did."""

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import APIRouter, HTTPException

Find = Callable[[str], Mapping[str, Any] | None]


def inspection(middleware: Callable[[], list[dict[str, Any]]], find: Find | None) -> APIRouter:
    """Return the routes; `find` None: this process answers no clients, so that it has no traces."""
    router = APIRouter()

    @router.get("/middleware", summary="The kinds of middleware and their options")
    def list_middleware() -> list[dict[str, Any]]:
        return middleware()

    @router.get("/traces/{request_id}", summary="What the layers did in one of the last requests")
    def get_trace(request_id: str) -> Mapping[str, Any]:
        trace = find(request_id) if find is not None else None
        if trace is None:
            words = (
                "Traces are kept by the process that answers clients; with several workers there are none here."
                if find is None
                else "There is no trace of this request: it is older than `telemetry.traces` keeps, or unknown."
            )
            raise HTTPException(status_code=404, detail=words)
        return trace

    for route in (list_middleware, get_trace):
        route.__doc__ = None
    return router
