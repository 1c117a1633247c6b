"""What operators of a cache have: the admin routes of a gateway that runs in this process."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx2

from gateway.server.admin import admin_app
from gateway.server.cache_explainer import CacheExplainer
from gateway.server.kept_answers import kept_answers
from tests.support.serving import Serving


@asynccontextmanager
async def admin(gateway: Serving | None) -> AsyncGenerator[httpx2.AsyncClient]:
    """Serve the admin routes of a gateway's worker."""
    router = (
        kept_answers(None, None, dict)
        if gateway is None
        else kept_answers(
            gateway.worker.cache,
            CacheExplainer(gateway.worker.current),
            lambda: gateway.worker.tree.tenants,
        )
    )
    app = admin_app(
        key=lambda: "admin-key-0123456789",
        expose=lambda _: (b"", ""),
        describe=dict,
        routers=[router],
    )
    transport = httpx2.ASGITransport(app=app)
    headers = {"authorization": "Bearer admin-key-0123456789"}
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://admin/admin/cache", headers=headers
    ) as client:
        yield client
