"""The admin application: metrics, the configuration in force, its documentation. On a listener of its own.

Without an admin key only loopback may call /admin, and only by a loopback name: a web page that an operator
happens to have open cannot (T-35, T-37).
"""

import hmac
import ipaddress
from collections.abc import Callable, Sequence
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request, Response

from gateway.core.ids import new_request_id
from gateway.version import VERSION

_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
Describe = Callable[[], dict[str, Any]]
Expose = Callable[[str], tuple[bytes, str]]
"""Takes an Accept header, returns the exposition and its content type."""


def admin_app(
    *,
    key: Callable[[], str | None],
    expose: Expose,
    describe: Describe,
    routers: Sequence[APIRouter] = (),
) -> FastAPI:
    """Build the admin application; `describe` returns the configuration in force without secrets.

    `key` returns the admin key, which may change, or None. `routers` add routes below /admin, behind the same
    guard.
    """
    guard = Depends(_Guard(key))
    app = FastAPI(
        title="llm-gateway admin",
        version=VERSION,
        redoc_url=None,
        docs_url="/docs",
        openapi_url="/openapi.json",
    )

    @app.get("/metrics", summary="Prometheus metrics of all workers", response_class=Response)
    def metrics(request: Request) -> Response:
        body, content_type = expose(request.headers.get("accept", ""))
        return Response(body, media_type=content_type)

    @app.get("/livez", summary="Whether this process answers", response_class=Response)
    def livez() -> Response:
        return Response(b'{"status":"ok"}', media_type="application/json")

    @app.get(
        "/admin/config", summary="The configuration in force, without secrets", dependencies=[guard]
    )
    def config() -> dict[str, Any]:
        return describe()

    for router in routers:
        app.include_router(router, prefix="/admin", dependencies=[guard])
    for route in (metrics, livez, config):
        route.__doc__ = None
    return app


class _Guard:
    """Lets a request through that carries the admin key, or without one comes from this machine."""

    def __init__(self, key: Callable[[], str | None]) -> None:
        self._key = key

    def __call__(self, request: Request) -> None:
        key = self._key()
        if not (_is_local(request) if key is None else _has_key(request, key)):
            raise HTTPException(
                status_code=403 if key is None else 401,
                detail="Only loopback may call this." if key is None else "An admin key is needed.",
                headers={"x-request-id": new_request_id()},
            )


def _has_key(request: Request, key: str) -> bool:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), key.encode())


def _is_local(request: Request) -> bool:
    if request.client is None or "origin" in request.headers:
        return False
    name = request.headers.get("host", "").rsplit(":", 1)[0].strip("[]").lower()
    try:
        return name in _LOOPBACK_NAMES and ipaddress.ip_address(request.client.host).is_loopback
    except ValueError:
        return False
