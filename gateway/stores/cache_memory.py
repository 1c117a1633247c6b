"""Cached answers in the memory of one process: gone when it ends, bounded for each tenant."""

import heapq
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gateway.core import clock, codec
from gateway.core.caching import Entry, Found, Looked, Pool, Selector
from gateway.core.errors import StoreError
from gateway.stores.entries import FLOAT, lifetime, searchable
from gateway.stores.marks import Marks, selects

if TYPE_CHECKING:
    from gateway.stores.vectors import Vectors

MAX_ENTRIES: Final = 50_000
"""Entries of one tenant; the longest unused are forgotten first."""
MAX_BYTES: Final = 128 << 20
"""Bytes of one tenant's entries and vectors."""
MAX_REMEMBERED: Final = 10_000
"""Negative entries, and ids that were deleted, of one tenant."""
_OVERHEAD: Final = 1_000
_SLACK: Final = 16
_Key = tuple[str, str]
"""A partition, and the key of a prompt within it."""
_Room = tuple[str, str, int]
"""A partition, an embedder and the length of its vectors."""


@dataclass(slots=True)
class _Kept:
    entry: Entry
    size: int = 0
    prompts: set[_Key] = field(default_factory=set[_Key])


@dataclass(slots=True)
class _Prompt:
    """A prompt that leads to an entry, its own or an alias."""

    id: str
    asked: str
    canonical: str
    vector: bytes
    size: int
    room: _Room | None = None


@dataclass(slots=True)
class _Shelf:
    """What is kept for one tenant; `entries` in the order of their last use."""

    entries: OrderedDict[str, _Kept] = field(default_factory=OrderedDict[str, _Kept])
    prompts: dict[_Key, _Prompt] = field(default_factory=dict[_Key, _Prompt])
    canonical: dict[_Key, _Key] = field(default_factory=dict[_Key, _Key])
    vectors: "dict[_Room, Vectors]" = field(default_factory=lambda: {})  # noqa: PIE807 - typed by its name
    blocked: OrderedDict[_Key, set[str]] = field(default_factory=OrderedDict[_Key, set[str]])
    gone: OrderedDict[str, None] = field(default_factory=OrderedDict[str, None])
    due: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    marks: Marks = field(default_factory=lambda: Marks(1))
    size: int = 0


class MemoryCache:
    """Cached answers of this process. `now` returns seconds since the epoch; `large`: see `vectors.LARGE`."""

    has_vectors = True
    answers_at_once = True

    def __init__(
        self,
        *,
        max_entries: int = MAX_ENTRIES,
        max_bytes: int = MAX_BYTES,
        large: int | None = None,
        now: Callable[[], float] = clock.wall,
    ) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._large = large
        self._now = now
        self._shelves: dict[str, _Shelf] = {}
        self._open = True

    async def begin(self) -> str:
        """Say what it can do."""
        return "the cache keeps answers in memory, for this process alone, and searches them by similarity"

    async def look(self, pool: Pool, exact: str, canonical: str) -> Looked:
        """Look both keys up."""
        shelf, partition = self._shelf(pool.tenant), pool.partition
        key = (partition, exact)
        blocked = shelf.blocked.get(key, ())
        found = self._led(shelf, key, blocked)
        near = shelf.canonical.get((partition, canonical)) if canonical else None
        other = self._led(shelf, near, blocked) if near is not None else None
        return Looked(found, other, shelf.marks.version)

    async def nearest(
        self, pool: Pool, embedder: str, vector: bytes, count: int
    ) -> Sequence[Found]:
        """Return the nearest prompts, the best first, each with the entry that it leads to."""
        shelf, partition = self._shelf(pool.tenant), pool.partition
        vectors = shelf.vectors.get((partition, embedder, len(vector)))
        found: list[Found] = []
        for name, similarity in vectors.nearest(vector, count) if vectors is not None else ():
            prompt = shelf.prompts[partition, name]
            entry = _under(shelf.entries[prompt.id].entry, name, prompt)
            found.append(Found(entry, similarity))
        return found

    async def put(self, entry: Entry) -> bool:
        """Keep an entry; False when it was deleted while it was made, or is over already."""
        shelf, seconds = self._shelf(entry.pool.tenant), lifetime(entry)
        if seconds <= 0 or entry.id in shelf.gone or shelf.marks.forbid(entry):
            return False
        size = _OVERHEAD + len(entry.answer) + len(entry.asked)
        if size + len(entry.vector) > self._max_bytes:
            return False
        kept = shelf.entries.get(entry.id)
        if kept is None:
            now = self._now()
            entry = codec.replace(entry, created=now, expires=now + seconds)
            kept = shelf.entries[entry.id] = _Kept(entry)
            heapq.heappush(shelf.due, (entry.expires, entry.id))
        elif kept.entry.pool != entry.pool:
            return False
        else:
            times = kept.entry
            kept.entry = codec.replace(entry, created=times.created, expires=times.expires)
            shelf.entries.move_to_end(entry.id)
        shelf.size += size - kept.size
        kept.size = size
        prompt = _Prompt(entry.id, entry.asked, entry.canonical, entry.vector, len(entry.vector))
        self._lead(shelf, entry, entry.exact, prompt)
        return self._fits(shelf, entry.id)

    async def alias(
        self, entry: Entry, exact: str, canonical: str, vector: bytes, asked: str
    ) -> bool:
        """Have another prompt lead to a kept entry; False when it is gone."""
        shelf = self._shelf(entry.pool.tenant)
        kept = shelf.entries.get(entry.id)
        if kept is None or kept.entry.pool != entry.pool:
            return False
        size = _OVERHEAD + len(vector) + len(asked)
        self._lead(shelf, kept.entry, exact, _Prompt(entry.id, asked, canonical, vector, size))
        return self._fits(shelf, entry.id)

    async def block(self, pool: Pool, entry_id: str, exact: str) -> None:
        """Never let this prompt lead to this entry again."""
        shelf, key = self._shelf(pool.tenant), (pool.partition, exact)
        shelf.blocked.setdefault(key, set()).add(entry_id)
        shelf.blocked.move_to_end(key)
        if len(shelf.blocked) > MAX_REMEMBERED:
            shelf.blocked.popitem(last=False)
        prompt = shelf.prompts.get(key)
        if prompt is not None and prompt.id == entry_id:
            self._unlead(shelf, key)

    async def blocked(self, pool: Pool, exact: str) -> frozenset[str]:
        """Return the ids that a prompt must not lead to."""
        return frozenset(self._shelf(pool.tenant).blocked.get((pool.partition, exact), ()))

    async def get(self, tenant: str, entry_id: str) -> Entry | None:
        """Return one entry of a tenant."""
        kept = self._shelf(tenant).entries.get(entry_id)
        return None if kept is None else kept.entry

    async def delete(self, selector: Selector) -> int:
        """Forget what is selected; return how many."""
        shelf = self._shelf(selector.tenant)
        chosen = [
            name for name, kept in shelf.entries.items() if selects(selector, kept.entry)
        ]  # fmt: skip
        for name in chosen:
            self._forget(shelf, name)
        if selector.id:
            shelf.gone[selector.id] = None
            if len(shelf.gone) > MAX_REMEMBERED:
                shelf.gone.popitem(last=False)
        else:
            shelf.marks.add(selector)
        return len(chosen)

    async def stats(self, tenant: str) -> dict[str, int]:
        """Return counts."""
        shelf = self._shelf(tenant)
        return {
            "entries": len(shelf.entries),
            "vectors": sum(map(len, shelf.vectors.values())),
            "partitions": len({kept.entry.pool.partition for kept in shelf.entries.values()}),
            "bytes": shelf.size,
        }

    async def aclose(self) -> None:
        """Forget everything and refuse further calls."""
        self._open = False
        self._shelves.clear()

    def _shelf(self, tenant: str) -> _Shelf:
        """Return what is in force of a tenant."""
        if not self._open:
            raise StoreError("state_unavailable", detail="the cache is closed")
        shelf = self._shelves.get(tenant)
        if shelf is None:
            shelf = self._shelves[tenant] = _Shelf()
        now = self._now()
        while shelf.due and shelf.due[0][0] <= now:
            expires, name = heapq.heappop(shelf.due)
            kept = shelf.entries.get(name)
            if kept is not None and kept.entry.expires == expires:
                self._forget(shelf, name)
        if len(shelf.due) > _SLACK * (len(shelf.entries) + _SLACK):
            shelf.due = [(kept.entry.expires, name) for name, kept in shelf.entries.items()]
            heapq.heapify(shelf.due)
        return shelf

    def _fits(self, shelf: _Shelf, name: str) -> bool:
        """Forget what is too much, the longest unused first; tell whether an entry is still there."""
        while len(shelf.entries) > self._max_entries or shelf.size > self._max_bytes:
            self._forget(shelf, next(iter(shelf.entries)))
        return name in shelf.entries

    @staticmethod
    def _led(shelf: _Shelf, key: _Key, blocked: "set[str] | tuple[()]") -> Entry | None:
        """Return the entry that a prompt leads to; it counts as used."""
        prompt = shelf.prompts.get(key)
        if prompt is None or prompt.id in blocked:
            return None
        shelf.entries.move_to_end(prompt.id)
        return shelf.entries[prompt.id].entry

    def _lead(self, shelf: _Shelf, entry: Entry, exact: str, prompt: _Prompt) -> None:
        """Have a prompt lead to a kept entry and to no other."""
        key = (entry.pool.partition, exact)
        self._unlead(shelf, key, keep=entry.id)
        shelf.prompts[key] = prompt
        shelf.entries[entry.id].prompts.add(key)
        shelf.size += prompt.size
        if prompt.canonical:
            shelf.canonical[key[0], prompt.canonical] = key
        if searchable(entry.embedder, prompt.vector):
            room = prompt.room = (key[0], entry.embedder, len(prompt.vector))
            vectors = shelf.vectors.get(room)
            if vectors is None:
                vectors = shelf.vectors[room] = self._vectors(len(prompt.vector) // FLOAT)
            vectors.put(exact, prompt.vector)

    def _vectors(self, dimension: int) -> "Vectors":
        from gateway.stores.vectors import LARGE, Vectors

        return Vectors(dimension, LARGE if self._large is None else self._large)

    def _unlead(self, shelf: _Shelf, key: _Key, keep: str = "") -> None:
        """Have a prompt lead nowhere; an entry that no prompt leads to is forgotten, but for `keep`."""
        prompt = shelf.prompts.pop(key, None)
        if prompt is None:
            return
        shelf.size -= prompt.size
        if shelf.canonical.get((key[0], prompt.canonical)) == key:
            del shelf.canonical[key[0], prompt.canonical]
        if prompt.room is not None:
            vectors = shelf.vectors[prompt.room]
            vectors.drop(key[1])
            if not len(vectors):
                del shelf.vectors[prompt.room]
        kept = shelf.entries[prompt.id]
        kept.prompts.discard(key)
        if not kept.prompts and prompt.id != keep:
            self._forget(shelf, prompt.id)

    def _forget(self, shelf: _Shelf, name: str) -> None:
        kept = shelf.entries.get(name)
        if kept is None:
            return
        for key in tuple(kept.prompts):
            self._unlead(shelf, key)
        if shelf.entries.pop(name, None) is not None:
            shelf.size -= kept.size


def _under(entry: Entry, exact: str, prompt: _Prompt) -> Entry:
    """Return an entry as the prompt that led to it asked for it."""
    if entry.exact == exact:
        return entry
    return codec.replace(
        entry, asked=prompt.asked, exact=exact, canonical=prompt.canonical, vector=prompt.vector
    )
