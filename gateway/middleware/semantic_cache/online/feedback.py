"""What was served lately: a word on it becomes a label of its pool. Numbers alone are remembered."""

from collections import OrderedDict
from typing import Final, NamedTuple

from gateway.core.scope import digest
from gateway.middleware.semantic_cache.online.features import Features, Seen
from gateway.middleware.semantic_cache.online.pools import PoolName, Pools

MOST: Final = 4096
"""Hits of one tenant that are remembered; the oldest goes first."""
_TENANTS: Final = 1000


class _Hit(NamedTuple):
    name: PoolName
    seen: Seen


class Recent:
    """The near hits that a process served last, by the entry and the key of the question."""

    def __init__(self, pools: Pools) -> None:
        self._pools = pools
        self._tenants: OrderedDict[str, OrderedDict[str, _Hit]] = OrderedDict()

    def served(self, name: PoolName, exact: str, features: Features) -> None:
        """Remember a hit."""
        self._pools.of(name).served()
        hits = self._tenants.setdefault(name.tenant, OrderedDict())
        self._tenants.move_to_end(name.tenant)
        hits[digest(features.answer, exact)] = _Hit(name, features.seen)
        if len(hits) > MOST:
            hits.popitem(last=False)
        if len(self._tenants) > _TENANTS:
            self._tenants.popitem(last=False)

    def wrong(self, tenant: str, entry_id: str, exact: str) -> bool:
        """Take in, once, that an entry was no answer to a question; False for a hit that is not known."""
        hits = self._tenants.get(tenant)
        hit = hits.pop(digest(entry_id, exact), None) if hits is not None else None
        if hit is None:
            return False
        self._pools.report(hit.name, hit.seen)
        return True
