"""Cached answers in Redis: equal prompts in one round trip, similar ones by whatever search its server offers."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

from gateway.core import codec
from gateway.core.caching import Entry, Found, Looked, Pool, Selector
from gateway.core.errors import StoreError
from gateway.core.scope import digest
from gateway.stores.entries import FLOAT, LONGEST_S, lifetime, read, searchable, written
from gateway.stores.marks import MOST, Marks, selects
from gateway.stores.redis.cache_keys import CacheKeys, cache_keys, set_of
from gateway.stores.redis.cache_search import WORDS, Indexes, Way, lacks, offered
from gateway.stores.redis.client import Client
from gateway.stores.redis.failure import Refused
from gateway.stores.redis.limits import Limits
from gateway.stores.redis.node import Spawn
from gateway.stores.redis.wire import Part, Reply

LIMITS: Final = Limits(command_s=0.05, may_drop=True)
_MS: Final = 1000
_GONE_MS: Final = 2 * 86_400_000
_ALL: Final = 1.5  # more than one, so that a silent server is noticed by its own clock
_SPARE: Final = 8
_ROUNDS: Final = 3
_WIDER: Final = 8
_TRIES: Final = 4
_PAGE: Final = 500
_PAGES: Final = 400
_WHOLE: Final = b"*"
_selector = codec.Decoder(Selector).decode
_alias = codec.Decoder(tuple[str, str, str]).decode


class _Near(NamedTuple):
    """A prompt that was found by its vector: the score that a set gave, what an alias asked, where it leads.

    `kept` is empty where an earlier prompt leads to the same entry.
    """

    prompt: str
    score: bytes
    alias: bytes
    entry: bytes
    kept: Sequence[Any]


class RedisCache:
    """Cached answers that all processes share. Time is the server's own.

    Every delete but that of one id is a mark that each process reads with its next call; what it means is gone from
    that moment on, and taken out of memory thereafter. A mark without its memory means everything.
    """

    def __init__(self, url: str, spawn: Spawn, limits: Limits = LIMITS) -> None:
        self._client = Client(url, spawn, limits)
        self._indexes = Indexes(self._client)
        self._ways: list[Way] | None = None
        self._marks: dict[str, Marks] = {}

    @property
    def answers_at_once(self) -> bool:
        """It does not: a server answers."""
        return False

    @property
    def has_vectors(self) -> bool:
        """Whether the server can search by similarity, as far as it was asked."""
        return bool(self._ways)

    async def begin(self) -> str:
        """Ask what the server offers."""
        try:
            self._ways = await offered(self._client)
        except StoreError as error:
            return f"the cache in Redis does not answer now and is asked again when it is needed: {error.detail}"
        return f"the cache keeps answers in Redis and {WORDS[self._way]}"

    async def look(self, pool: Pool, exact: str, canonical: str) -> Looked:
        """Look both keys up in one round trip."""
        keys = cache_keys(pool.tenant)
        first = keys.exact(pool, exact)
        second = keys.alike(pool, canonical) if canonical else first
        names = (keys.marks, first, second, keys.blocked(pool, exact))
        reply = await self._client.script("cache_look", names, (self._known(pool), keys.entry))
        marks = self._learn(pool.tenant, reply)
        if self._ways is None:
            await self._ask_again()
        found = _alive(reply[2], marks, pool)
        other = _alive(reply[3], marks, pool) if canonical else None
        return Looked(found, other, marks.version)

    async def nearest(
        self, pool: Pool, embedder: str, vector: bytes, count: int
    ) -> Sequence[Found]:
        """Return the nearest prompts, the best first, each with the entry that it leads to."""
        if not vector or len(vector) % FLOAT or count < 1:
            return []
        async with self._in_time():
            if not await self._chosen():
                return []
            try:
                return await self._nearest(pool, embedder, vector, count)
            except Refused as error:
                if not lacks(error):
                    raise
                # Another server took the place of the one that was asked, or its rights were changed.
                self._ways = None
                return []

    async def put(self, entry: Entry) -> bool:
        """Keep an entry; False when it was deleted while it was made, or is over already."""
        pool, ms = entry.pool, int(lifetime(entry) * _MS)
        if ms <= 0:
            return False
        keys, name = cache_keys(pool.tenant), digest(entry.id)
        way = await self._placed(entry, entry.vector)
        exact = keys.exact(pool, entry.exact)
        names = [keys.marks, keys.entry + name, keys.gone + name, keys.entries, keys.pools, exact]
        names.append(keys.alike(pool, entry.canonical) if entry.canonical else exact)

        def call(marks: Marks) -> Awaitable[Reply]:
            set_name = set_of(pool, marks.generation(pool))
            args = (
                marks.version, entry.epoch, ms, name, pool.partition, set_name, way,
                written(entry), entry.answer, entry.vector,
            )  # fmt: skip
            place = _place(keys, entry, way, entry.vector, set_name, exact)
            return self._client.script("cache_put", (*names, place), args)

        return await self._checked(entry, call)

    async def alias(
        self, entry: Entry, exact: str, canonical: str, vector: bytes, asked: str
    ) -> bool:
        """Have another prompt lead to a kept entry; False when it is gone."""
        pool = entry.pool
        keys, name = cache_keys(pool.tenant), digest(entry.id)
        way = await self._placed(entry, vector)
        prompt = keys.exact(pool, exact)
        names = [keys.marks, keys.entry + name, prompt]
        names.append(keys.alike(pool, canonical) if canonical else prompt)
        words = codec.encode((asked.encode("utf-8", "replace").decode(), exact, canonical))

        def call(marks: Marks) -> Awaitable[Reply]:
            set_name = set_of(pool, marks.generation(pool))
            place = _place(keys, entry, way, vector, set_name, prompt)
            args = (marks.version, name, set_name, way, words, vector)
            return self._client.script("cache_alias", (*names, place), args)

        return await self._checked(entry, call)

    async def block(self, pool: Pool, entry_id: str, exact: str) -> None:
        """Never let this prompt lead to this entry again."""
        keys = cache_keys(pool.tenant)
        names = (keys.blocked(pool, exact), keys.exact(pool, exact))
        args = (digest(entry_id), entry_id, LONGEST_S * _MS)
        await self._client.script("cache_block", names, args)

    async def blocked(self, pool: Pool, exact: str) -> frozenset[str]:
        """Return the ids that a prompt must not lead to."""
        key = cache_keys(pool.tenant).blocked(pool, exact)
        found: dict[bytes, bytes] = _pairs(await self._client.command(key, "HGETALL", key))
        return frozenset(each.decode() for each in found.values())

    async def get(self, tenant: str, entry_id: str) -> Entry | None:
        """Return one entry of a tenant."""
        keys = cache_keys(tenant)
        names = (keys.marks, keys.entry + digest(entry_id))
        known = self._marks.get(tenant, Marks()).version
        reply = await self._client.script("cache_get", names, (known,))
        return _alive(reply[2], self._learn(tenant, reply), None)

    async def delete(self, selector: Selector) -> int:
        """Forget what is selected at once; return how many, or -1 when they were too many to count."""
        tenant = selector.tenant
        keys = cache_keys(tenant)
        if selector.id:
            kept = await self.get(tenant, selector.id)
            if kept is None and selector != Selector(tenant, selector.id):
                return 0
            if kept is not None and not selects(selector, kept):
                return 0
            name = digest(selector.id)
            return await self._dropped(keys, [name], keys.gone)
        field = _WHOLE if selector == Selector(tenant) else codec.encode(selector)
        args = (field, MOST, (LONGEST_S + 86_400) * _MS)
        reply = await self._client.script("cache_mark", (keys.marks,), args)
        marks = self._marks[tenant] = _read_marks(tenant, reply)
        try:
            return await self._sweep(keys, selector, marks)
        except StoreError:
            return -1

    async def stats(self, tenant: str) -> dict[str, int]:
        """Return counts."""
        keys = cache_keys(tenant)
        reply = await self._client.script("cache_stats", (keys.entries, keys.pools), ())
        return dict(zip(("entries", "partitions"), map(int, reply), strict=True))

    async def aclose(self) -> None:
        """Close the client."""
        await self._client.aclose()

    @property
    def _way(self) -> Way:
        return self._ways[0] if self._ways else ""

    async def _chosen(self) -> Way:
        if self._ways is None:
            self._ways = await offered(self._client)
        return self._way

    async def _ask_again(self) -> None:
        try:
            await self._chosen()
        except StoreError:
            return

    @asynccontextmanager
    async def _in_time(self) -> AsyncGenerator[None]:
        """Bound a call of several round trips as if it were one."""
        try:
            async with asyncio.timeout(_ALL * self._client.command_s):
                yield
        except TimeoutError:
            raise Refused("late", "the cache in redis did not answer in time") from None

    async def _placed(self, entry: Entry, vector: bytes) -> Way:
        """Return where a vector is to be kept; "" for nowhere."""
        if not searchable(entry.embedder, vector):
            return ""
        way = await self._chosen()
        if way == "search":
            space = cache_keys(entry.pool.tenant).space(entry.embedder, vector)
            if not await self._indexes.make(space, len(vector) // FLOAT):
                self._ways = [each for each in self._ways or () if each != "search"]
                return self._way
        return way

    async def _checked(self, entry: Entry, call: Callable[[Marks], Awaitable[Reply]]) -> bool:
        """Write what no delete forbids, by the deletes that are known when it is written."""
        tenant = entry.pool.tenant
        marks = self._marks.get(tenant, Marks())
        for _ in range(_TRIES):
            if marks.forbid(entry):
                return False
            reply = await call(marks)
            marks = self._learn(tenant, reply[1:])
            if reply[0]:
                return bool(reply[0] > 0)
        return False

    async def _nearest(
        self, pool: Pool, embedder: str, vector: bytes, count: int
    ) -> Sequence[Found]:
        marks = self._marks.get(pool.tenant) or await self._news(pool.tenant)
        space = cache_keys(pool.tenant).space(embedder, vector)
        found: list[Found] = []
        most, wide = count, count + _SPARE
        for _ in range(_ROUNDS):
            set_name = set_of(pool, marks.generation(pool))
            scores: dict[str, float] = {}
            if self._way == "search":
                scores.update(await self._indexes.nearest(space, set_name, vector, wide))
                if not scores:
                    return []
            rows, seen = await self._rows(pool, space, set_name, vector, scores, (most, wide))
            marks = self._marks[pool.tenant]
            found = _found(rows, marks, pool, scores)
            if len(found) >= count or (len(rows) < most and seen < wide):
                break
            await self._drop_dead(pool.tenant, rows, marks)
            most, wide = wide, wide * _WIDER
        return found[:count]

    async def _rows(
        self,
        pool: Pool,
        space: str,
        set_name: str,
        vector: bytes,
        scores: dict[str, float],
        sizes: tuple[int, int],
    ) -> tuple[list[_Near], int]:
        """Return what names of prompts lead to, and how many names there were; `sizes`: most of both."""
        keys = cache_keys(pool.tenant)
        common: tuple[Part, ...] = (self._known(pool), keys.entry, keys.prompt, *sizes)
        if scores:
            names, args = (keys.marks, space), (*common, "", *scores)
        else:
            names, args = (keys.marks, space + set_name), (*common, vector)
        reply = await self._client.script("cache_nearest", names, args)
        self._learn(pool.tenant, reply)
        rows = [
            _Near(bytes(prompt).decode(), score, alias, entry, kept)
            for prompt, score, alias, entry, *kept in reply[2]
        ]
        return rows, int(reply[3])

    async def _drop_dead(self, tenant: str, rows: Sequence[_Near], marks: Marks) -> None:
        """Make room for the living: what a delete meant leaves for good."""
        entries = [_entry(row.kept) for row in rows]
        dead = [digest(entry.id) for entry in entries if entry is not None and marks.forbid(entry)]
        if dead:
            await self._dropped(cache_keys(tenant), dead)

    async def _sweep(self, keys: CacheKeys, selector: Selector, marks: Marks) -> int:
        """Take what was deleted out of memory; return how much of it this selector meant."""
        count = first = 0
        for _ in range(_PAGES):
            args = (keys.entry, first, first + _PAGE - 1)
            page = await self._client.script("cache_list", (keys.entries,), args)
            dead: list[str] = []
            for name, kept in page:
                entry = read(kept, b"", b"", 0, 0) if kept else None
                if entry is None or marks.forbid(entry):
                    dead.append(bytes(name).decode())
                    count += entry is not None and selects(selector, entry)
            if dead:
                await self._dropped(keys, dead)
            if len(page) < _PAGE:
                return count
            first += len(page) - len(dead)
        return -1

    async def _dropped(self, keys: CacheKeys, names: Sequence[str], gone: str = "") -> int:
        full = (keys.entries, keys.pools, *(keys.entry + name for name in names))
        return int(await self._client.script("cache_drop", full, (gone, _GONE_MS)))

    async def _news(self, tenant: str) -> Marks:
        keys = cache_keys(tenant)
        reply = await self._client.script("cache_get", (keys.marks, keys.entry), ("",))
        return self._learn(tenant, reply)

    def _known(self, pool: Pool) -> int:
        marks = self._marks.get(pool.tenant)
        return 0 if marks is None else marks.version

    def _learn(self, tenant: str, reply: Reply) -> Marks:
        """Return the marks in force; a reply holds them where others were known."""
        if reply[1]:
            self._marks[tenant] = _read_marks(tenant, reply[1])
        return self._marks[tenant]


def _place(
    keys: CacheKeys, entry: Entry, way: Way, vector: bytes, set_name: str, prompt: str
) -> str:
    """Return the key of a vector: the set of its pool, or a document of its own."""
    space = keys.space(entry.embedder, vector)
    return space + (set_name if way == "sets" else prompt[-32:])


def _read_marks(tenant: str, fields: Sequence[bytes]) -> Marks:
    deletes = {bytes(name): int(at) for name, at in _pairs(fields).items()}
    version = deletes.pop(b"")
    return Marks(
        version,
        {Selector(tenant) if name == _WHOLE else _selector(name): at for name, at in deletes.items()},
    )  # fmt: skip


def _pairs(flat: Sequence[Any]) -> dict[Any, Any]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _entry(kept: Sequence[Any] | None) -> Entry | None:
    if not kept:
        return None
    plain, answer, vector, created, expires = kept
    return read(plain, answer or b"", vector or b"", int(created) / _MS, int(expires) / _MS)


def _alive(kept: Sequence[Any] | None, marks: Marks, pool: Pool | None) -> Entry | None:
    entry = _entry(kept)
    if entry is None or marks.forbid(entry) or (pool is not None and entry.pool != pool):
        return None
    return entry


def _found(
    rows: Sequence[_Near], marks: Marks, pool: Pool, scores: dict[str, float]
) -> list[Found]:
    found: list[Found] = []
    alive: dict[bytes, Entry | None] = {}
    for row in rows:
        if row.kept:
            alive[row.entry] = _alive(row.kept, marks, pool)
        entry = alive.get(row.entry)
        if entry is None:
            continue
        if row.alias:
            asked, exact, canonical = _alias(row.alias)
            entry = codec.replace(entry, asked=asked, exact=exact, canonical=canonical)
        # A set gives half of one more than the cosine.
        similarity = scores[row.prompt] if scores else 2 * float(row.score) - 1
        found.append(Found(entry, min(similarity, 1.0)))
    return found
