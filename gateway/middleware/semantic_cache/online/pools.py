"""The models of all pools of a process: found by name, fitted off the loop, shared between replicas by numbers."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from secrets import token_hex
from typing import Any, Final, NamedTuple

from gateway.core.ports import OpaqueStore
from gateway.core.scope import digest
from gateway.middleware.semantic_cache.online.certify import learn
from gateway.middleware.semantic_cache.online.features import Features, Seen
from gateway.middleware.semantic_cache.online.pool import Change, PoolModel

MOST: Final = 256
"""Pools that a process keeps in memory; the longest unused goes first, and comes back from the store."""
TTL_S: Final = 30 * 86_400.0
SHARE_EVERY: Final = 50
"""Labels of one process after which it exchanges with the others, though no fit is due."""


class PoolName(NamedTuple):
    """Whose labels are counted together: sessions of one agent share what was learned, never texts or answers."""

    tenant: str
    namespace: str
    agent: str


Spawn = Callable[[Coroutine[Any, Any, None], str], object]
Told = Callable[[PoolName, PoolModel, Change | None], None]
"""Hears of every fit, and of what it changed: for the event and the metric."""


class Pools:
    """Keeps the models. Without `spawn` fits run at once, without `store` nothing outlives the process."""

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        store: OpaqueStore | None = None,
        spawn: Spawn | None = None,
        told: Told | None = None,
        seed: str = "",
        most: int = MOST,
    ) -> None:
        self._alpha = alpha
        self._store = store
        self._spawn = spawn
        self._told = told or _nobody
        self._seed = seed or token_hex(16)
        self._most = most
        self._models: OrderedDict[PoolName, PoolModel] = OrderedDict()
        self._busy: set[PoolName] = set()
        self._unshared: dict[PoolName, int] = {}

    def of(self, name: PoolName) -> PoolModel:
        """Return the model of a pool; what the store knows of a new one comes in behind."""
        model = self._models.get(name)
        if model is not None:
            self._models.move_to_end(name)
            return model
        # Every process audits others of its requests, and gives its labels marks of their own.
        model = PoolModel(self._alpha, seed=f"{self._seed}:{digest(*name)}")
        self._models[name] = model
        if len(self._models) > self._most:
            self._unshared.pop(self._models.popitem(last=False)[0], None)
        if self._store is not None and self._spawn is not None:
            self._busy.add(name)
            self._spawn(self._refit(name, model, self._store), "learn of a cache's pool")
        return model

    def label(
        self, name: PoolName, features: Features | Seen, *, right: bool, weight: float = 1.0
    ) -> None:
        """Take in a label; begins a fit when one is due."""
        model = self.of(name)
        self._labelled(name, model, model.label(features, right=right, weight=weight))

    def report(self, name: PoolName, features: Features | Seen) -> None:
        """Take in that a near hit which was served was wrong."""
        model = self.of(name)
        self._labelled(name, model, model.report(features))

    def _labelled(self, name: PoolName, model: PoolModel, change: Change | None) -> None:
        """Tell of what a label changed; begin a fit when one is due."""
        if change is not None:
            self._told(name, model, change)
        unshared = self._unshared[name] = self._unshared.get(name, 0) + 1
        is_to_share = self._store is not None and unshared >= SHARE_EVERY
        if not (model.due or is_to_share) or name in self._busy:
            return
        if self._spawn is None:
            self._told(name, model, model.refit())
            return
        self._busy.add(name)
        self._spawn(self._refit(name, model, self._store), "learn of a cache's pool")

    async def _refit(self, name: PoolName, model: PoolModel, store: OpaqueStore | None) -> None:
        """Exchange labels with the other replicas, then fit on a thread of its own."""
        try:
            if store is not None:
                self._unshared.pop(name, None)
                await _exchange(name, model, store)
            if model.due:
                rows, fresh = model.rows(), model.fresh
                learned = await asyncio.to_thread(learn, rows, model.alpha, fresh)
                self._told(name, model, model.adopt(learned, fresh))
        finally:
            self._busy.discard(name)


async def _exchange(name: PoolName, model: PoolModel, store: OpaqueStore) -> None:
    """Take in what the others wrote, and write all that is known; of two at once the later wins until the next."""
    key = digest("cache-labels", name.namespace, name.agent)
    found = await store.get_many(name.tenant, [key])
    if found is None:
        return
    if key in found:
        model.merge(found[key])
    if model.labels:
        await store.put_many(name.tenant, {key: model.save()}, TTL_S)


def _nobody(name: PoolName, model: PoolModel, change: Change | None) -> None:
    del name, model, change
