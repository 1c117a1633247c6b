"""Admin routes of the cache: what is kept, why a question is answered or not, and how to forget (O-4)."""

from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from typing import Annotated, Any, Final

from fastapi import APIRouter, HTTPException, Query
from pydantic import BaseModel, ConfigDict, Field

from gateway.config.errors import did_you_mean
from gateway.core import clock, codec
from gateway.core.caching import CacheStore, Entry, Selector
from gateway.core.errors import GatewayError, StoreError
from gateway.core.scope import digest
from gateway.middleware.semantic_cache.fingerprint import exact_of
from gateway.server.cache_explainer import CacheExplainer, Unanswered

_APART: Final = (
    "With stores.state memory and several workers each keeps answers of its own, out of reach of this address. Set "
    "stores.cache or stores.state to a Redis address."
)
_ALONE: Final = (
    "Lookups are explained where one worker serves: with several, ask a gateway of one worker."
)
Tenants = Callable[[], Collection[str]]
"""Names those of the configuration in force."""
_Tenant = Annotated[str, Query(min_length=1, description="Whose answers")]


class Wrong(BaseModel):
    """A kept answer that should not have been given. `question`: what was asked; without it the answer goes."""

    model_config = ConfigDict(extra="forbid")

    tenant: str = Field(min_length=1)
    id: str = Field(min_length=1)
    question: str | None = None


class Explain(BaseModel):
    """A request to look up. `path` is its address (`/v1/chat/completions`), `body` what would be sent."""

    model_config = ConfigDict(extra="forbid")

    tenant: str = Field(min_length=1)
    path: str = "/v1/chat/completions"
    body: dict[str, Any]
    session: str = ""
    headers: dict[str, str] = Field(default_factory=dict[str, str])


class Which(BaseModel):
    """What to forget: of one tenant, all that fits. `everything` must be said where nothing else is."""

    model_config = ConfigDict(extra="forbid")

    tenant: str = Field(min_length=1)
    id: str = ""
    session: str = ""
    namespace: str = ""
    tag: str = ""
    model: str = ""
    agent: str = ""
    everything: bool = False

    def selector(self) -> Selector:
        """Return what stores know it by; raises HTTPException where nothing is said."""
        selector = Selector(
            self.tenant,
            id=self.id,
            namespace=self.namespace,
            scope="session" if self.session else "",
            value=digest(self.session) if self.session else "",
            tag=self.tag,
            model=self.model,
            agent=self.agent,
        )
        if selector == Selector(self.tenant) and not self.everything:
            words = "Say what to forget: id, session, namespace, tag, model, agent, or everything."
            raise HTTPException(400, words)
        return selector


def kept_answers(
    cache: CacheStore | None, explainer: CacheExplainer | None, tenants: Tenants
) -> APIRouter:
    """Return the routes.

    `cache` None: each worker has its own in memory; `explainer` None: the workers are other processes.
    """
    desk = _Desk(cache, explainer, tenants)
    router = APIRouter(prefix="/cache")
    rows: tuple[tuple[str, str, Any, str], ...] = (
        ("GET", "/stats", desk.stats, "How much is kept for a tenant"),
        ("GET", "/entries/{entry_id}", desk.get, "One kept answer"),
        ("DELETE", "/entries", desk.delete, "Forget what is selected, at once and for good"),
        ("POST", "/wrong", desk.wrong, "Never give a kept answer to this question again"),
        (
            "POST",
            "/explain",
            desk.explain,
            "What each tier says to a question; no model answers it",
        ),
    )
    for method, path, work, summary in rows:
        router.add_api_route(path, work, methods=[method], summary=summary, description="")
    return router


class _Desk:
    """What operators do with kept answers."""

    def __init__(
        self, cache: CacheStore | None, explainer: CacheExplainer | None, tenants: Tenants
    ) -> None:
        self._cache = cache
        self._explainer = explainer
        self._tenants = tenants

    @property
    def _store(self) -> CacheStore:
        if self._cache is None:
            raise HTTPException(404, _APART)
        return self._cache

    async def stats(self, tenant: _Tenant) -> dict[str, Any]:
        with _in_words():
            return {"tenant": tenant, **await self._kept(tenant)}

    async def get(self, entry_id: str, tenant: _Tenant) -> dict[str, Any]:
        with _in_words():
            return _shown(await self._entry(tenant, entry_id))

    async def delete(self, which: Annotated[Which, Query()]) -> dict[str, Any]:
        selector = which.selector()
        with _in_words():
            await self._kept(which.tenant)
            count = await self._store.delete(selector)
        return {"deleted": count if count >= 0 else None}

    async def wrong(self, report: Wrong) -> dict[str, Any]:
        with _in_words():
            entry = await self._entry(report.tenant, report.id)
            if report.question is None or report.question == entry.asked:
                await self._store.delete(Selector(report.tenant, id=report.id))
                return {"forgotten": True, "blocked": False}
            await self._store.block(entry.pool, entry.id, exact_of(report.question))
            if self._explainer is not None:
                self._explainer.wrong(report.tenant, report.id, report.question)
            return {"forgotten": False, "blocked": True}

    async def explain(self, asked: Explain) -> dict[str, Any]:
        if self._explainer is None:
            raise HTTPException(404, _ALONE)
        self._known(asked.tenant)
        with _in_words():
            found = await self._explainer.explain(
                asked.tenant, asked.path, asked.body, asked.session, asked.headers
            )
        return {"caches": found}

    async def _kept(self, tenant: str) -> dict[str, int]:
        """Return what is kept for a tenant; one that was taken out of the configuration may still have answers."""
        stats = await self._store.stats(tenant)
        if not any(stats.values()):
            self._known(tenant)
        return stats

    def _known(self, tenant: str) -> None:
        """Raise HTTPException for a name that nobody wrote down."""
        known = self._tenants()
        if tenant not in known:
            words = f'There is no tenant "{tenant}"{did_you_mean(tenant, known)}, and nothing is kept for one.'
            raise HTTPException(404, words)

    async def _entry(self, tenant: str, entry_id: str) -> Entry:
        entry = await self._store.get(tenant, entry_id)
        if entry is None:
            self._known(tenant)
            raise HTTPException(404, "There is no such answer; it may be over, or deleted.")
        return entry


@contextmanager
def _in_words() -> Generator[None]:
    """Tell operators what failed."""
    try:
        yield
    except Unanswered as error:
        raise HTTPException(400, str(error)) from None
    except StoreError as error:
        raise HTTPException(503, f"{error.message} {error.detail}".strip()) from None
    except GatewayError as error:
        raise HTTPException(error.http, error.message) from None


def _shown(entry: Entry) -> dict[str, Any]:
    """Return an entry for people; the vector is left out."""
    pool = entry.pool
    return {
        "id": entry.id,
        "tenant": pool.tenant,
        "namespace": pool.namespace,
        "scope": pool.scope,
        "value": pool.value,
        "fingerprint": pool.fingerprint,
        "asked": entry.asked,
        "answer": codec.decode(entry.answer),
        "created": entry.created,
        "expires": entry.expires,
        "age_s": round(clock.wall() - entry.created, 3),
        "embedder": entry.embedder,
        "model": entry.model,
        "agent": entry.agent,
        "author": entry.author,
        "tags": list(entry.tags),
    }
