"""Which store stands behind which address; one line per back end."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol

from gateway.core.caching import CacheStore
from gateway.core.counting import Counters
from gateway.core.errors import StoreError
from gateway.core.ledger import Ledger
from gateway.core.ports import KeyStore, OpaqueStore
from gateway.core.probing import LocalPermits, ProbePermits
from gateway.core.receipts import Receipts
from gateway.stores.cache_memory import MemoryCache
from gateway.stores.keys import MemoryKeys, SqliteKeys
from gateway.stores.ledger import MemoryLedger, SqliteLedger
from gateway.stores.memory import MemoryCounters
from gateway.stores.opaque import MemoryOpaque
from gateway.stores.receipts import MemoryReceipts

Spawn = Callable[[Coroutine[Any, Any, None], str], object]
"""Starts background work under a name."""


def _postgres_keys(url: str) -> KeyStore:
    from gateway.stores.postgres.keys import PostgresKeys

    return PostgresKeys(url)


def _postgres_ledger(url: str) -> Ledger:
    from gateway.stores.postgres.ledger import PostgresLedger

    return PostgresLedger(url)


def _redis_counters(url: str, spawn: Spawn) -> Counters:
    from gateway.stores.redis.client import Client
    from gateway.stores.redis.counters import RedisCounters

    return RedisCounters(Client(url, spawn))


def _redis_receipts(url: str, spawn: Spawn) -> Receipts:
    from gateway.stores.redis.client import Client
    from gateway.stores.redis.receipts import RedisReceipts

    return RedisReceipts(Client(url, spawn))


def _redis_opaque(url: str, spawn: Spawn) -> OpaqueStore:
    from gateway.stores.redis.client import Client
    from gateway.stores.redis.opaque import RedisOpaque

    return RedisOpaque(Client(url, spawn))


def _redis_permits(url: str, spawn: Spawn) -> ProbePermits:
    from gateway.stores.redis.client import Client
    from gateway.stores.redis.permits import RedisPermits

    return RedisPermits(Client(url, spawn), spawn)


def _redis_cache(url: str, spawn: Spawn) -> CacheStore:
    from gateway.stores.redis.cache import RedisCache

    return RedisCache(url, spawn)


def _postgres_cache(url: str, spawn: Spawn) -> CacheStore:
    from gateway.stores.postgres.cache import PostgresCache

    return PostgresCache(url, spawn)


KEYS: dict[str, Callable[[str], KeyStore]] = {
    "memory": lambda _: MemoryKeys(),
    "sqlite": lambda url: SqliteKeys(Path(url.removeprefix("sqlite:"))),
    "postgres": _postgres_keys,
    "postgresql": _postgres_keys,
}
LEDGERS: dict[str, Callable[[str], Ledger]] = {
    "memory": lambda _: MemoryLedger(),
    "sqlite": lambda url: SqliteLedger(Path(url.removeprefix("sqlite:"))),
    "postgres": _postgres_ledger,
    "postgresql": _postgres_ledger,
}
COUNTERS: dict[str, Callable[[str, Spawn], Counters]] = {
    "memory": lambda _, __: MemoryCounters(),
    **dict.fromkeys(
        (
            "redis",
            "rediss",
            "unix",
            "redis+cluster",
            "rediss+cluster",
            "redis+sentinel",
            "rediss+sentinel",
        ),
        _redis_counters,
    ),
}
RECEIPTS: dict[str, Callable[[str, Spawn], Receipts]] = {
    "memory": lambda _, __: MemoryReceipts(),
    **dict.fromkeys((scheme for scheme in COUNTERS if scheme != "memory"), _redis_receipts),
}
OPAQUE: dict[str, Callable[[str, Spawn], OpaqueStore]] = {
    "memory": lambda _, __: MemoryOpaque(),
    **dict.fromkeys((scheme for scheme in COUNTERS if scheme != "memory"), _redis_opaque),
}
PERMITS: dict[str, Callable[[str, Spawn], ProbePermits]] = {
    "memory": lambda _, __: LocalPermits(),
    **dict.fromkeys((scheme for scheme in COUNTERS if scheme != "memory"), _redis_permits),
}

CACHES: dict[str, Callable[[str, Spawn], CacheStore]] = {
    "memory": lambda _, __: MemoryCache(),
    **dict.fromkeys((scheme for scheme in COUNTERS if scheme != "memory"), _redis_cache),
    **dict.fromkeys(("postgres", "postgresql"), _postgres_cache),
}


def open_counters(url: str, spawn: Spawn) -> Counters:
    """Open the counters at a state address; raises StoreError for an unknown kind.

    Nothing is asked of the store yet: a store that is down refuses the calls, not the start (RS-1).
    """
    scheme = url.partition(":")[0]
    if scheme not in COUNTERS:
        raise StoreError("state_unavailable", detail=f"counters are not kept in {scheme}")
    return COUNTERS[scheme](url, spawn)


class Watcher(Protocol):
    """Who is told how a shared state fares."""

    def down(self, *, is_down: bool) -> None:
        """Note whether calls fail at once because a server does not answer."""
        ...

    def failed(self, reason: str) -> None:
        """Note a call that failed: `down`, `late`, `lost`, `full` or `refused`."""
        ...


def watch_state(url: str, spawn: Spawn, watcher: Watcher) -> None:
    """Tell a watcher how what was opened at a state address with this `spawn` fares; of memory nothing is told."""
    if url.partition(":")[0] != "memory":
        from gateway.stores.redis.client import watch

        watch(url, spawn, watcher)


def log_in_as(url: str, spawn: Spawn, new: str) -> None:
    """Let what was opened at a state address with this `spawn` use the login of `new` when it connects anew."""
    if url.partition(":")[0] in COUNTERS.keys() - {"memory"}:
        from gateway.stores.redis import client

        client.log_in_as(url, spawn, new)


def open_receipts(url: str, spawn: Spawn) -> Receipts:
    """Open the receipts at a state address; as `open_counters`."""
    scheme = url.partition(":")[0]
    if scheme not in RECEIPTS:
        raise StoreError("state_unavailable", detail=f"receipts are not kept in {scheme}")
    return RECEIPTS[scheme](url, spawn)


def open_opaque(url: str, spawn: Spawn) -> OpaqueStore:
    """Open the sealed state of providers at a state address; as `open_counters`."""
    scheme = url.partition(":")[0]
    if scheme not in OPAQUE:
        raise StoreError("state_unavailable", detail=f"sealed state is not kept in {scheme}")
    return OPAQUE[scheme](url, spawn)


def open_permits(url: str, spawn: Spawn) -> ProbePermits:
    """Open the leases of probes at a state address; as `open_counters`."""
    scheme = url.partition(":")[0]
    if scheme not in PERMITS:
        raise StoreError("state_unavailable", detail=f"leases are not kept in {scheme}")
    return PERMITS[scheme](url, spawn)


def open_cache(url: str, spawn: Spawn) -> CacheStore:
    """Open the cache of answers at an address; as `open_counters`."""
    scheme = url.partition(":")[0]
    if scheme not in CACHES:
        raise StoreError("state_unavailable", detail=f"answers are not kept in {scheme}")
    return CACHES[scheme](url, spawn)


def open_keys(url: str) -> KeyStore:
    """Open the key store at a database address; raises StoreError, also for an unknown kind."""
    scheme = url.partition(":")[0]
    if scheme not in KEYS:
        raise StoreError("state_unavailable", detail=f"keys are not kept in {scheme}")
    return KEYS[scheme](url)


def open_ledger(url: str) -> Ledger:
    """Open the ledger at a database address; raises StoreError, also for an unknown kind."""
    scheme = url.partition(":")[0]
    if scheme not in LEDGERS:
        raise StoreError("state_unavailable", detail=f"no ledger is kept in {scheme}")
    return LEDGERS[scheme](url)
