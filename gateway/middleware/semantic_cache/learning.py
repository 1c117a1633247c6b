"""Near hits with a proven bound: served where labels of the pool's own answers show that few are wrong (8.4).

A miss with a near candidate calls the model anyway; whether its answer says the same as the kept one is a label. It
is found out behind the answer, and asked questions of models then are no part of the caller's request.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from gateway.core import clock
from gateway.core.answer import Answer
from gateway.core.caching import CacheStore, Entry, Found, Pool
from gateway.core.call import Call, Run
from gateway.core.codec import JSONError
from gateway.core.message import Text
from gateway.middleware.aside import Aside
from gateway.middleware.base import Build
from gateway.middleware.semantic_cache import stored
from gateway.middleware.semantic_cache.embedding import Embedder, Unusable, Vector
from gateway.middleware.semantic_cache.keeper import Down
from gateway.middleware.semantic_cache.online.features import Features, features_of
from gateway.middleware.semantic_cache.online.feedback import Recent
from gateway.middleware.semantic_cache.online.judge import Judge
from gateway.middleware.semantic_cache.online.labels import Comparer
from gateway.middleware.semantic_cache.online.pool import CHANGES, Change, PoolModel
from gateway.middleware.semantic_cache.online.pools import PoolName, Pools
from gateway.middleware.semantic_cache.options import SemanticCacheOptions

_T = TypeVar("_T")
_log = logging.getLogger("gateway")
_WAIT_S = 10.0


class Audit(NamedTuple):
    """A candidate whose answer is to be compared with that of the model; a label of it counts `weight`."""

    name: PoolName
    features: Features
    weight: float


class Decided(NamedTuple):
    """Why nothing near is served, "" where `best` is; `audit` is what the model's answer will tell then.

    Where `best` is served, `audit` is what a word on it would tell.
    """

    reason: str
    best: Found | None = None
    audit: Audit | None = None


class Prompt(NamedTuple):
    """A question as it would lead to a kept answer."""

    exact: str
    canonical: str
    vector: Vector
    asked: str


class AskStore(Protocol):
    """Asks the store within its bounds."""

    def __call__(self, work: Awaitable[_T]) -> Awaitable[_T]: ...


Trusts = Callable[[str, str, float], bool]
"""Tells of a question, a kept one and their similarity whether a verifier of its own is sure."""


class Learning:
    """What one cache of a chain learns of its own answers."""

    def __init__(
        self,
        options: SemanticCacheOptions,
        build: Build,
        embedder: Embedder,
        store: CacheStore,
        ask_store: AskStore,
        trusts: Trusts,
    ) -> None:
        rate = options.max_wrong_hit_rate or 0.0
        judge: Judge | None = None
        if options.judge:
            aside = Aside(build, options.judge, "judge")
            judge = Judge(aside, options.judge_timeout_ms / 1000)
        ports = build.ports
        self._pools = Pools(rate, store=ports.opaque, spawn=ports.spawn, told=self._told)
        self._recent = Recent(self._pools)
        self._trusts = trusts
        # What an alarm watches is there before it first counts.
        self._changes = {
            change: ports.metrics.counter("gateway_cache_pool_changes_total", build.tenant, change)
            for change in CHANGES
        }
        self._embedder = embedder
        self._comparer = Comparer(self._vector, judge)
        self._spawn = build.ports.spawn
        self._store = store
        self._ask_store = ask_store
        self._agent = build.agent
        labels = (build.tenant, options.namespace, build.agent)
        self._estimate = ports.metrics.gauge("gateway_cache_wrong_hit_estimate", *labels)
        self._bound = ports.metrics.gauge("gateway_cache_wrong_hit_bound", *labels)
        self._bound.set(1.0)

    def decide(self, pool: Pool, asked: str, found: Sequence[Found]) -> Decided:
        """Decide on the best candidate of a question."""
        name = PoolName(pool.tenant, pool.namespace, self._agent)
        model = self._pools.of(name)
        features = features_of(found, asked, model.histories)
        if features is None:
            return Decided("threshold")
        if features.veto:
            return Decided(f"guard:{features.veto}")
        best = features.best
        is_trusted = self._trusts(asked, best.entry.asked, best.similarity)
        decision = model.decide(features, trusted=is_trusted)
        audit = Audit(name, features, decision.weight)
        if decision.action == "serve":
            return Decided("", best, audit)
        return Decided("explore" if decision.action == "explore" else "verifier", audit=audit)

    def served(self, audit: Audit, exact: str) -> None:
        """Remember a hit, for a word on it."""
        self._recent.served(audit.name, exact, audit.features)

    def wrong(self, tenant: str, entry_id: str, exact: str) -> bool:
        """Take in that an entry was no answer to a question; False where nobody here served it."""
        return self._recent.wrong(tenant, entry_id, exact)

    def observe(self, call: Call, audit: Audit, prompt: Prompt, answer: Answer) -> None:
        """Compare the model's answer with the kept one, behind the request."""
        if self._spawn is not None:
            work = self._compare(_apart(call), audit, prompt, answer)
            self._spawn(work, "compare an answer with a kept one")

    async def _compare(self, call: Call, audit: Audit, prompt: Prompt, answer: Answer) -> None:
        kept: Entry = audit.features.best.entry
        try:
            before = stored.decode(kept.answer, 0)
        except JSONError:
            return
        same = await self._comparer.same(call, _text(answer), _text(before))
        if same is None:
            return
        self._pools.label(audit.name, audit.features, right=same, weight=audit.weight)
        try:
            if same:
                alias = (prompt.exact, prompt.canonical, prompt.vector.data, prompt.asked)
                await self._ask_store(self._store.alias(kept, *alias))
            else:
                await self._ask_store(self._store.block(kept.pool, kept.id, prompt.exact))
        except Down:
            return

    async def _vector(self, call: Call, text: str) -> bytes | None:
        try:
            vector = await self._embedder.vector(call, text)
        except Unusable:
            return None
        return vector.data if vector is not None else None

    def _told(self, name: PoolName, model: PoolModel, change: Change | None) -> None:
        self._estimate.set(model.estimate())
        self._bound.set(model.bound() if model.certified else 1.0)
        if change is None:
            return
        self._changes[change].inc()
        now = "are served again" if change == "certified" else "are not served until it holds again"
        words = "cache pool %s of %s: the bound on wrong hits is %s, similar questions %s"
        _log.warning(words, name.namespace, name.tenant, change, now)


def _apart(call: Call) -> Call:
    """Return a call of its own for questions asked when the caller's request is over."""
    run, now = call.run, clock.monotonic()
    own = Run(run.request_id, run.endpoint, now, now + _WAIT_S)
    own.tenant, own.key_id, own.agent = run.tenant, run.key_id, run.agent
    own.model, own.asked, own.path, own.dialect = run.model, run.asked, run.path, run.dialect
    return Call(own, call.model, call.original)


def _text(answer: Answer) -> str:
    return "\n".join(
        part.text
        for choice in answer.choices[:1]
        for part in choice.parts
        if isinstance(part, Text)
    )


Decide = Callable[[Pool, str, Sequence[Found]], Decided]
