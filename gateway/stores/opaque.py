"""Sealed state of providers in the memory of one process: bounded for each tenant, the oldest goes first."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gateway.core import clock
from gateway.core.scope import digest

MAX_ITEMS = 50_000
"""Items of one tenant."""
MAX_BYTES = 64 << 20
"""Bytes of one tenant's items."""


class _Item(NamedTuple):
    value: bytes
    until: float


@dataclass(slots=True)
class _Shelf:
    """One tenant's items, the longest neither changed nor renewed first."""

    items: OrderedDict[str, _Item] = field(default_factory=OrderedDict[str, _Item])
    total: int = 0

    def drop(self, name: str) -> None:
        item = self.items.pop(name, None)
        self.total -= 0 if item is None else len(item.value)


class MemoryOpaque:
    """Sealed state of this process. `now` returns seconds that never go back."""

    def __init__(
        self,
        *,
        max_items: int = MAX_ITEMS,
        max_bytes: int = MAX_BYTES,
        now: Callable[[], float] = clock.monotonic,
    ) -> None:
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._now = now
        self._shelves: dict[str, _Shelf] = {}

    async def get_many(
        self, tenant: str, ids: Sequence[str], renew_s: float = 0.0
    ) -> Mapping[str, bytes]:
        """Return what is kept under these ids."""
        found: dict[str, bytes] = {}
        shelf = self._shelves.get(tenant)
        if shelf is None:
            return found
        now = self._now()
        for each in ids:
            name = digest(each)
            item = shelf.items.get(name)
            if item is not None and now < item.until:
                found[each] = item.value
                if now + renew_s > item.until:
                    shelf.items[name] = _Item(item.value, now + renew_s)
                    shelf.items.move_to_end(name)
        return found

    async def put_many(self, tenant: str, items: Mapping[str, bytes], ttl_s: float) -> bool:
        """Keep items for `ttl_s` seconds; one that is larger than all room is not kept."""
        shelf = self._shelves.get(tenant)
        if shelf is None:
            shelf = self._shelves[tenant] = _Shelf()
        until = self._now() + ttl_s
        for each, value in items.items():
            name = digest(each)
            shelf.drop(name)
            if len(value) <= self._max_bytes:
                shelf.items[name] = _Item(value, until)
                shelf.total += len(value)
        self._bound(shelf)
        if not shelf.items:
            del self._shelves[tenant]
        return True

    async def aclose(self) -> None:
        """Forget everything."""
        self._shelves.clear()

    def _bound(self, shelf: _Shelf) -> None:
        now = self._now()
        while shelf.items:
            name, oldest = next(iter(shelf.items.items()))
            is_over = len(shelf.items) > self._max_items or shelf.total > self._max_bytes
            if not is_over and now < oldest.until:
                return
            shelf.drop(name)
