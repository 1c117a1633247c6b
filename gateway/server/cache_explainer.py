"""Explains lookups of the cache with the chains in force, and tells them what was wrong: the layers of callers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gateway.chain.plan import Principal
from gateway.chain.snapshot import Current, resolve
from gateway.core import clock, codec
from gateway.core.call import Call, Run
from gateway.core.ids import new_request_id
from gateway.dialects.registry import DIALECTS
from gateway.engine.outgoing import JsonOriginal
from gateway.server import routes

if TYPE_CHECKING:
    from gateway.middleware.semantic_cache.layer import SemanticCache

_WAIT_S = 10.0


class Unanswered(Exception):
    """There is nothing to explain; the message says why."""


class CacheExplainer:
    """Looks questions up as a tenant's caller would."""

    def __init__(self, current: Current) -> None:
        self._current = current

    async def explain(
        self,
        tenant: str,
        path: str,
        body: Mapping[str, Any],
        session: str,
        headers: Mapping[str, str],
    ) -> list[dict[str, Any]]:
        """Return for each cache of the tenant's chain what its tiers say; raises Unanswered or GatewayError."""
        principals = self._current.snapshot.principals.values()
        principal = next((each for each in principals if each.tenant == tenant), None)
        if principal is None:
            raise Unanswered(f"no key of a tenant {tenant!r} is in force")
        match = routes.find(path.encode())
        if match is None or match.route.kind != "generate":
            raise Unanswered(f"{path} is no address of questions")
        fields = codec.split(codec.encode(body))
        fields.pop("gateway", None)
        model = resolve(principal, str(body.get("model", "")))
        now = clock.monotonic()
        run = Run(new_request_id(), match.route.endpoint, now, now + _WAIT_S)
        run.tenant, run.session = tenant, session
        run.asked, run.model, run.path = str(body.get("model", "")), model.name, match.shown
        run.dialect = DIALECTS[routes.dialect_of(path.encode(), match)]
        named = {
            name.lower().encode(): value.encode("latin-1", "replace")
            for name, value in headers.items()
        }
        run.header = named.get
        found: list[dict[str, Any]] = []
        for name, cache in _caches(principal):
            call = Call(run, model, JsonOriginal(match.path, dict(fields), watched=True))
            steps = await cache.explain(call)
            found.append({"id": name, "steps": [{"tier": a, "said": b} for a, b in steps]})
        if not found:
            raise Unanswered(f"the chain of {tenant!r} has no semantic_cache")
        return found

    def wrong(self, tenant: str, entry_id: str, question: str) -> None:
        """Have the caches of a tenant count an answer as wrong for a question."""
        callers = self._current.snapshot.principals.values()
        caches = {
            id(cache): cache
            for each in callers
            if each.tenant == tenant
            for _, cache in _caches(each)
        }
        for cache in caches.values():
            cache.wrong(tenant, entry_id, question)


def _caches(principal: Principal) -> "list[tuple[str, SemanticCache]]":
    """Return the caches of a caller's chain by their names."""
    # Loaded with the first question: a gateway without the cache starts without it and its numbers.
    from gateway.middleware.semantic_cache.layer import SemanticCache

    return [
        (layer.id, layer.middleware)
        for layer in principal.chain.layers
        if isinstance(layer.middleware, SemanticCache)
    ]
