"""The tiers of a lookup, each cheaper than the next: same question, same canonical form, similar question (8.2)."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, TypeVar

from gateway.core import clock
from gateway.core.caching import SCHEMA, CacheStore, Entry, Found, Pool
from gateway.core.call import Call
from gateway.middleware.semantic_cache.embedding import Embedder, Unusable, Vector
from gateway.middleware.semantic_cache.fingerprint import Ask
from gateway.middleware.semantic_cache.keeper import Down, Keeper
from gateway.middleware.semantic_cache.learning import Audit, Decide
from gateway.middleware.semantic_cache.options import SemanticCacheOptions
from gateway.middleware.semantic_cache.verify import NO_WORD, Verifier
from gateway.middleware.semantic_cache.wish import Wish
from gateway.middleware.semantic_cache.words.tier import tier_key

_T = TypeVar("_T")
CANDIDATES = 8


class Hit(NamedTuple):
    """A kept answer that may be served. `tier` is exact, alias, canonical or semantic.

    `is_stale`: its time is over, and it is to be renewed. `audit`: what a word on it would tell.
    """

    entry: Entry
    tier: str
    similarity: float
    is_stale: bool = False
    audit: Audit | None = None


class Missed(NamedTuple):
    """Nothing may be served, and why; what is known already is kept with the answer that will come.

    `is_down`: the store, the embedder or the judge did not answer. `audit`: what its answer tells of a candidate.
    """

    reason: str
    epoch: int | None = None
    canonical: str = ""
    vector: Vector | None = None
    is_down: bool = False
    audit: Audit | None = None


Refused = Callable[[str, str, str], object]
"""Hears of a tenant, an entry and the key of a question that must never lead there again."""
Step = tuple[str, str]
"""A tier and what it said, for who wants a lookup explained."""


class Lookup:
    """Looks questions up for one cache of a chain."""

    def __init__(
        self,
        options: SemanticCacheOptions,
        store: CacheStore,
        embedder: Embedder | None,
        verifier: Verifier,
        mismatched: Callable[[], None],
    ) -> None:
        self.decide: Decide | None = None
        self.refused: Refused = _nobody
        self._options = options
        self._store = store
        self._keeper = Keeper(options.store_timeout_ms, at_once=store.answers_at_once)
        self._embedder = embedder
        self._verifier = verifier
        self._mismatched = mismatched
        self._has_canonical = options.semantic and options.canonical

    def ask_store(self, work: Awaitable[_T]) -> Awaitable[_T]:
        """Ask the store within its bounds; raises Down."""
        return self._keeper.ask(work)

    async def epoch(self, pool: Pool, ask: Ask) -> int | None:
        """Return the epoch of a pool now, None where the store does not answer."""
        try:
            return (await self._keeper.ask(self._store.look(pool, ask.exact, ""))).epoch
        except Down:
            return None

    async def look(
        self, call: Call, ask: Ask, pool: Pool, wish: Wish, steps: list[Step] | None = None
    ) -> Hit | Missed:
        """Return the first answer that a tier serves; never raises for what is down."""
        says = steps.append if steps is not None else _quiet
        form = tier_key(ask.asked) if self._has_canonical and ask.asked else ""
        if not wish.reads:
            return await self._unread(call, ask, pool, form)
        try:
            looked = await self._keeper.ask(self._store.look(pool, ask.exact, form))
        except Down:
            says(("store", "down"))
            return Missed("unavailable", canonical=form, is_down=True)
        epoch = looked.epoch
        if self._options.exact:
            found = self._by_key("exact", looked.exact, ask, pool, wish, says)
            if found is not None:
                return found
        if form:
            found = self._by_key("canonical", looked.canonical, ask, pool, wish, says)
            if found is not None:
                return found
        return await self._near(call, ask, pool, wish, Missed("cold", epoch, form), says)

    def _by_key(
        self,
        tier: str,
        entry: Entry | None,
        ask: Ask,
        pool: Pool,
        wish: Wish,
        says: Callable[[Step], None],
    ) -> Hit | None:
        """Return what a key led to, where it may be served."""
        if entry is None:
            says((tier, "cold"))
            return None
        if tier == "exact" and entry.exact != ask.exact:
            tier = "alias"
        verdict = self._verdict(entry, pool, wish)
        is_stale = verdict == "stale" and tier != "alias" and _takes_stale(wish, entry)
        says((tier, verdict or "served"))
        return Hit(entry, tier, 1.0, is_stale) if is_stale or not verdict else None

    async def _unread(self, call: Call, ask: Ask, pool: Pool, form: str) -> Missed:
        """Find out what is kept with an answer that is only to be written."""
        try:
            looked = await self._keeper.ask(self._store.look(pool, ask.exact, ""))
        except Down:
            return Missed("refresh", canonical=form, is_down=True)
        missed = Missed("refresh", looked.epoch, form)
        if self._embedder is None or not ask.asked or not self._store.has_vectors:
            return missed
        try:
            return missed._replace(vector=await self._embedder.vector(call, ask.asked))
        except Unusable:
            return missed._replace(is_down=True)

    async def _near(
        self,
        call: Call,
        ask: Ask,
        pool: Pool,
        wish: Wish,
        missed: Missed,
        says: Callable[[Step], None],
    ) -> Hit | Missed:
        if self._embedder is None or not ask.asked:
            return missed
        if not self._store.has_vectors:
            says(("semantic", "the store cannot search by similarity"))
            return missed
        try:
            vector = await self._embedder.vector(call, ask.asked)
        except Unusable as error:
            says(("semantic", f"no vector: {error}"))
            return missed._replace(reason="unavailable", is_down=True)
        if vector is None:
            return missed._replace(reason="too_long")
        missed = missed._replace(vector=vector)
        try:
            found = await self._keeper.ask(
                self._store.nearest(pool, vector.embedder, vector.data, CANDIDATES)
            )
            return await self._choose(call, ask, pool, wish, missed, found, says)
        except Down:
            says(("semantic", "down"))
            return missed._replace(reason="unavailable", is_down=True)

    async def _choose(
        self,
        call: Call,
        ask: Ask,
        pool: Pool,
        wish: Wish,
        missed: Missed,
        found: Sequence[Found],
        says: Callable[[Step], None],
    ) -> Hit | Missed:
        """Return the best candidate that clears the threshold and all that stands behind it."""
        threshold = max(self._options.threshold, wish.threshold)
        audit: Audit | None = None
        near = [each for each in found if each.similarity >= threshold]
        if self.decide is not None and found:
            decided = self.decide(pool, ask.asked or "", found)
            if decided.best is None:
                says(("certificate", decided.reason))
                return missed._replace(reason=decided.reason, audit=decided.audit)
            audit = decided.audit
            near = [decided.best] if decided.best.similarity >= threshold else []
        if not near:
            if found:
                says(("threshold", f"{found[0].similarity:.4f} is below {threshold:g}"))
            return missed._replace(reason="threshold" if found else missed.reason)
        blocked = await self._keeper.ask(self._store.blocked(pool, ask.exact))
        reason = ""
        for entry, similarity in near:
            embedder = missed.vector.embedder if missed.vector is not None else ""
            verdict = self._verdict(entry, pool, wish, embedder=embedder)
            if not verdict and entry.id in blocked:
                verdict = "negative"
                self.refused(pool.tenant, entry.id, ask.exact)
            if not verdict:
                pair = (ask.asked or "", entry.asked, similarity)
                is_proven = self.decide is not None
                verdict = await self._verifier.verdict(call, *pair, is_proven=is_proven)
            says(("semantic", f"{entry.id} at {similarity:.4f}: {verdict or 'served'}"))
            if not verdict:
                return Hit(entry, "semantic", similarity, audit=audit)
            if verdict == NO_WORD:
                missed = missed._replace(is_down=True)
            reason = reason or verdict
        return missed._replace(reason=reason)

    def _verdict(self, entry: Entry, pool: Pool, wish: Wish, *, embedder: str = "") -> str:
        """Compare what a record says of itself with what is asked: a key alone never authorises (W-CACHE-9)."""
        same = (
            entry.pool == pool
            and entry.schema == SCHEMA
            and (not embedder or entry.embedder == embedder)
        )
        if not same:
            self._mismatched()
            return "scope"
        now = clock.wall()
        if now > entry.expires:
            return "expired"
        is_fresh = now <= entry.expires - self._options.stale_ttl_s
        if is_fresh and now - entry.created <= wish.max_age_s:
            return ""
        return "stale" if self._options.stale_ttl_s else "expired"


def _takes_stale(wish: Wish, entry: Entry) -> bool:
    """Tell whether an answer may be older than its time: never older than what is asked of its age."""
    return not wish.only and clock.wall() - entry.created <= wish.oldest_s


def _quiet(step: Step) -> None:
    del step


def _nobody(tenant: str, entry_id: str, exact: str) -> None:
    del tenant, entry_id, exact
