"""The stores of one process, what is settled and written behind the answers, and their end."""

import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Any

from gateway.config.server import Stores
from gateway.core.caching import CacheStore
from gateway.core.counting import Counters
from gateway.core.ledger import Ledger
from gateway.lifecycle.settle import LedgerWriter, Settler
from gateway.middleware.ports import Offline, Ports, Spawn
from gateway.stores.registry import (
    log_in_as,
    open_cache,
    open_counters,
    open_ledger,
    open_opaque,
    open_permits,
    open_receipts,
    watch_state,
)
from gateway.telemetry.metrics import Metrics
from gateway.upstream.client import Client
from gateway.upstream.service import Service

_log = logging.getLogger("gateway")
_DRAIN_S = 2.0
_IN_MEMORY = "memory"
_Loop = Callable[[], Coroutine[Any, Any, None]]


class State:
    """Counters, ledger, receipts, sealed state, leases of probes and cached answers, opened once.

    Nothing is asked before the first request.
    """

    def __init__(self, stores: Stores, spawn: Spawn) -> None:
        state = stores.state.reveal()
        self._watched = (state, spawn)
        self._on_state_down = stores.on_state_down
        self._counters = open_counters(state, spawn)
        self.ledger = open_ledger(stores.database.reveal())
        self.receipts = open_receipts(state, spawn)
        self.opaque = open_opaque(state, spawn)
        self.permits = open_permits(state, spawn)
        self._cached = (_cache_url(stores), _apart(spawn))
        self.cache = open_cache(*self._cached)
        self.book = LedgerWriter(self.ledger)
        self._client = Client()
        self._settler = Settler(self._counters, self.ledger, stores.lease_s)
        alone = open_counters(_IN_MEMORY, spawn)
        self._offline = Offline(alone, Settler(alone, self.ledger))

    @property
    def counters(self) -> Counters:
        """What limits and budgets are decided on."""
        return self._counters

    def ports(self, metrics: Metrics) -> Ports:
        """Return what middleware is given; from now on these metrics show how the shared state fares."""
        watch_state(*self._watched, metrics.state())
        return Ports(
            metrics,
            self._counters,
            self.ledger,
            self._settler,
            self._on_state_down,
            offline=self._offline,
            open_service=partial(Service, self._client),
            cache=self.cache,
            opaque=self.opaque,
            spawn=self._watched[1],
        )

    def adopt(self, stores: Stores) -> None:
        """Log in to the shared state as a new configuration says; all else stays as it was at the start."""
        log_in_as(*self._watched, stores.state.reveal())
        log_in_as(*self._cached, _cache_url(stores))

    def loops(self) -> Iterable[tuple[_Loop, str]]:
        """Return the work that must not end before the process does, with names."""
        offline = (self._offline.settler.run, "settlement without the store")
        return ((self.book.run, "ledger"), *self._settler.loops(), offline)

    async def drain(self) -> None:
        """Write and settle what is left, within a bound: the ledger first, it is the truth."""
        written = await self.book.drain(_DRAIN_S)
        if not (await self._settler.drain(_DRAIN_S) and written):
            _log.error("left before everything was settled and written: a store does not answer")

    async def aclose(self) -> None:
        """Let go of connections and files; the work behind has ended by then."""
        await self._client.aclose()
        await self.cache.aclose()
        await self.receipts.aclose()
        await self.opaque.aclose()
        await self.permits.aclose()
        await self._counters.aclose()
        await self.ledger.aclose()


def _cache_url(stores: Stores) -> str:
    return (stores.cache or stores.state).reveal()


def _apart(spawn: Spawn) -> Spawn:
    """Return an owner of connections of its own: how the cache fares says nothing of the shared state."""
    return partial(spawn)


@asynccontextmanager
async def ledger_of_workers(stores: Stores) -> AsyncGenerator[Ledger | None]:
    """Open the ledger that the workers of a supervisor write to; None where each has its own in memory."""
    url = stores.database.reveal()
    if url == _IN_MEMORY:
        yield None
        return
    async with aclosing(open_ledger(url)) as ledger:
        yield ledger


@asynccontextmanager
async def counters_of_workers(stores: Stores, spawn: Spawn) -> AsyncGenerator[Counters | None]:
    """Open the counters that the workers of a supervisor share; None where each has its own in memory."""
    url = stores.state.reveal()
    if url == _IN_MEMORY:
        yield None
        return
    async with aclosing(open_counters(url, spawn)) as counters:
        yield counters


@asynccontextmanager
async def cache_of_workers(stores: Stores, spawn: Spawn) -> AsyncGenerator[CacheStore | None]:
    """Open the cache that the workers of a supervisor share; None where each has its own in memory."""
    url = _cache_url(stores)
    if url == _IN_MEMORY:
        yield None
        return
    async with aclosing(open_cache(url, spawn)) as cache:
        yield cache
