"""Whose answers a request may share: made from what the server knows, within the tenant always (K19)."""

from gateway.core.caching import Pool
from gateway.core.call import Run
from gateway.core.scope import digest
from gateway.middleware.semantic_cache.options import SemanticCacheOptions


class Scoping:
    """The scope of one cache of a chain."""

    def __init__(self, options: SemanticCacheOptions) -> None:
        kind, _, name = options.scope.partition(":")
        self._namespace = options.namespace
        self._kind = "custom" if kind == "header" else kind
        self._name = name
        self._header = name.lower().encode() if kind == "header" else b""
        self._bypasses = options.unscoped == "bypass"

    def pool(self, run: Run, fingerprint: str) -> Pool | None:
        """Return the pool of a run; None where a run without a session is to leave the cache alone."""
        value = self._value(run)
        if not value and self._bypasses and self._kind in {"session", "custom"}:
            return None
        return Pool(run.tenant, self._namespace, self._kind, value, fingerprint)

    def _value(self, run: Run) -> str:
        if self._kind == "session":
            return digest(run.session) if run.session else ""
        if self._header:
            given = run.header(self._header)
            return digest(self._name.lower(), given.decode("latin-1")) if given else ""
        return self._name
