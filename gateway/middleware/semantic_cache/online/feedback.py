"""What was served lately, by request: a caller's word on it becomes a label. Numbers alone are remembered."""

from collections import OrderedDict
from typing import Final, NamedTuple

from gateway.middleware.semantic_cache.online.features import Features, Seen
from gateway.middleware.semantic_cache.online.pools import PoolName, Pools

MOST: Final = 4096
"""Hits of one tenant that are remembered; the oldest goes first."""
_TENANTS: Final = 1000


class _Hit(NamedTuple):
    name: PoolName
    seen: Seen


class Recent:
    """The near hits that a process served last."""

    def __init__(self, pools: Pools) -> None:
        self._pools = pools
        self._tenants: OrderedDict[str, OrderedDict[str, _Hit]] = OrderedDict()

    def served(self, name: PoolName, request_id: str, features: Features) -> None:
        """Remember a hit."""
        hits = self._tenants.setdefault(name.tenant, OrderedDict())
        self._tenants.move_to_end(name.tenant)
        hits[request_id] = _Hit(name, features.seen)
        if len(hits) > MOST:
            hits.popitem(last=False)
        if len(self._tenants) > _TENANTS:
            self._tenants.popitem(last=False)

    def feedback(self, tenant: str, request_id: str, *, right: bool) -> str:
        """Take a word on a hit, once; return the id of the entry that was served, "" for one that is not known.

        Whoever has nothing to complain of seldom says so: such labels count once, and make the estimate no better
        than it is.
        """
        hit = self._tenants.get(tenant, OrderedDict[str, _Hit]()).pop(request_id, None)
        if hit is None:
            return ""
        self._pools.label(hit.name, hit.seen, right=right)
        return hit.seen.answer
