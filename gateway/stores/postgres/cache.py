"""Cached answers in Postgres: equal prompts, and similar ones where the server has the extension for vectors."""

from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from gateway.core import codec
from gateway.core.caching import Entry, Found, Looked, Pool, Selector
from gateway.core.errors import StoreError
from gateway.core.scope import digest
from gateway.stores.entries import FLOAT, lifetime, read, searchable, written
from gateway.stores.postgres import cache_sql as sql
from gateway.stores.postgres.bounded import Bounded, Spawn
from gateway.stores.postgres.cache_sql import VectorSql, vector_sql
from gateway.stores.postgres.database import Postgres, Work
from gateway.stores.postgres.driver import Connection

Result = TypeVar("Result")
READ_S: Final = 0.05
ADMIN_S: Final = 30.0
_SPARE: Final = 8
_SWEEP_EVERY: Final = 32
_alias = codec.Decoder(tuple[str, str, str]).decode


class PostgresCache:
    """Cached answers that all processes share. Time is the server's own.

    Nothing is opened before the first call; belongs to the event loop of that call. A request waits `read_s` for
    what is kept, and ten times as long to have something kept.
    """

    def __init__(self, url: str, spawn: Spawn, read_s: float = READ_S) -> None:
        self._database = Postgres(url)
        self._read_s = read_s
        self._write_s = 10 * read_s
        self._bounded = Bounded(spawn)
        self._vectors: VectorSql | None = None
        self._puts = 0

    @property
    def answers_at_once(self) -> bool:
        """It does not: a server answers."""
        return False

    @property
    def has_vectors(self) -> bool:
        """Whether the server can search by similarity, as far as it was asked."""
        return self._vectors is not None and bool(self._vectors.nearest)

    async def begin(self) -> str:
        """Make the tables and ask for the extension."""
        try:
            await self._bounded.run(self._prepared, ADMIN_S, at_once=False)
        except StoreError as error:
            return f"the cache in Postgres does not answer now and is asked again when it is needed: {error.detail}"
        able = (
            "searches them by similarity with pgvector"
            if self.has_vectors
            else "finds equal prompts alone: its server has no extension `vector`"
        )
        return f"the cache keeps answers in Postgres and {able}"

    async def look(self, pool: Pool, exact: str, canonical: str) -> Looked:
        """Look both keys up."""
        alike = digest(pool.partition, canonical) if canonical else ""
        values = (pool.tenant, digest(pool.partition, exact), alike)
        rows = {row["found"]: row for row in await self._select(sql.LOOK, values, self._read_s)}
        epoch = int(rows["epoch"]["expires"])
        return Looked(_of(rows.get("exact"), pool), _of(rows.get("canonical"), pool), epoch)

    async def nearest(
        self, pool: Pool, embedder: str, vector: bytes, count: int
    ) -> Sequence[Found]:
        """Return the nearest prompts, the best first, each with the entry that it leads to."""
        if not searchable(embedder, vector) or count < 1 or not self.has_vectors:
            return []
        wide = count + _SPARE
        while True:
            values = (pool.tenant, _space(pool, embedder, vector), _numbers(vector), wide)
            rows = await self._select(_of_vectors(self._vectors).nearest, values, self._read_s)
            found: list[Found] = []
            for row in rows:
                entry = _of(row, pool)
                if entry is not None and len(found) < count:
                    found.append(Found(_under(entry, row["alias"]), min(row["similarity"], 1.0)))
            if len(found) == count or len(rows) < wide:
                return found
            wide *= 4

    async def put(self, entry: Entry) -> bool:
        """Keep an entry; False when it was deleted while it was made, or is over already."""
        seconds, pool = lifetime(entry), entry.pool
        row = (
            pool.tenant, digest(entry.id), pool.partition, digest(pool.namespace), digest(pool.scope),
            digest(pool.value), digest(entry.model), digest(entry.agent), list(map(digest, entry.tags)),
            written(entry), entry.answer, entry.vector, seconds, seconds > 0, entry.epoch,
        )  # fmt: skip
        lead = _lead(entry, entry.exact, entry.canonical, b"", entry.vector)
        self._puts += 1
        sweeps = sql.SWEEPS if self._puts % _SWEEP_EVERY == 0 else ()

        async def work(connection: Connection) -> bool:
            await connection.execute(sql.SHARED, pool.tenant)
            if await connection.execute(sql.PUT, *row) != "INSERT 0 1":
                return False
            await connection.execute(_of_vectors(self._vectors).lead, *lead)
            for sweep in sweeps:
                await connection.execute(sweep)
            return True

        return await self._run(work, self._write_s)

    async def alias(
        self, entry: Entry, exact: str, canonical: str, vector: bytes, asked: str
    ) -> bool:
        """Have another prompt lead to a kept entry; False when it is gone."""
        words = codec.encode((asked.encode("utf-8", "replace").decode(), exact, canonical))
        lead = _lead(entry, exact, canonical, words, vector)

        async def work(connection: Connection) -> bool:
            await connection.execute(sql.SHARED, entry.pool.tenant)
            done = await connection.execute(_of_vectors(self._vectors).lead, *lead)
            return done == "INSERT 0 1"

        return await self._run(work, self._write_s)

    async def block(self, pool: Pool, entry_id: str, exact: str) -> None:
        """Never let this prompt lead to this entry again."""
        names = (pool.tenant, digest(pool.partition, exact), digest(entry_id))
        told = entry_id.encode("utf-8", "surrogatepass")

        async def work(connection: Connection) -> None:
            await connection.execute(sql.BLOCK, *names, told)
            await connection.execute(sql.UNLEAD, *names)

        await self._run(work, self._write_s)

    async def blocked(self, pool: Pool, exact: str) -> frozenset[str]:
        """Return the ids that a prompt must not lead to."""
        names = (pool.tenant, digest(pool.partition, exact))
        rows = await self._select(sql.BLOCKED, names, self._read_s)
        return frozenset(bytes(row["id"]).decode("utf-8", "surrogatepass") for row in rows)

    async def get(self, tenant: str, entry_id: str) -> Entry | None:
        """Return one entry of a tenant."""
        rows = await self._select(sql.GET, (tenant, digest(entry_id)), self._write_s)
        return _of(rows[0], None) if rows else None

    async def delete(self, selector: Selector) -> int:
        """Forget what is selected; return how many."""
        fields = (
            selector.id, selector.namespace, selector.scope, selector.value, selector.model,
            selector.agent, selector.tag,
        )  # fmt: skip
        meant = (selector.tenant, *(digest(field) if field else "" for field in fields))

        async def work(connection: Connection) -> int:
            await connection.execute(sql.ALONE, selector.tenant)
            await connection.execute(sql.MARK, *meant)
            done = await connection.execute(sql.DELETE, *meant)
            return int(done.rpartition(" ")[2])

        return await self._run(work, ADMIN_S)

    async def stats(self, tenant: str) -> dict[str, int]:
        """Return counts."""
        [row] = await self._select(sql.STATS, (tenant,), ADMIN_S)
        return {name: int(number) for name, number in row.items()}

    async def aclose(self) -> None:
        """Close every connection; further calls raise StoreError."""
        await self._database.close()

    async def _select(
        self, text: str, values: Sequence[object], seconds: float
    ) -> Sequence[Mapping[str, Any]]:
        async def call() -> Sequence[Mapping[str, Any]]:
            if self._vectors is None:
                await self._prepared()
            return await self._database.fetch(text, values)

        return await self._bounded.run(call, seconds, at_once=seconds < ADMIN_S)

    async def _run(self, work: Work[Result], seconds: float) -> Result:
        async def call() -> Result:
            if self._vectors is None:
                await self._prepared()
            return await self._database.run(work, repeatable=True, statement_s=max(seconds, 1.0))

        return await self._bounded.run(call, seconds, at_once=seconds < ADMIN_S)

    async def _prepared(self) -> None:
        """Learn whether the server knows vectors, and have a column for them where it does."""
        place = await self._place()
        made = vector_sql(place)

        async def work(connection: Connection) -> None:
            if not await connection.fetch(sql.HAS_COLUMN):
                await connection.execute(made.column)

        if place:
            await self._database.run(work, repeatable=True)
        self._vectors = made

    async def _place(self) -> str:
        """Return the schema of the extension for vectors, made where this user may; "" for none."""
        rows = await self._database.run(_extension, repeatable=True)
        if not rows:
            try:
                await self._database.run(_extend, repeatable=True)
            except StoreError:
                return ""
            rows = await self._database.run(_extension, repeatable=True)
        return str(rows[0]["place"]) if rows else ""


async def _extension(connection: Connection) -> Sequence[Mapping[str, Any]]:
    return await connection.fetch(sql.EXTENSION)


async def _extend(connection: Connection) -> None:
    await connection.execute(sql.EXTEND)


def _of_vectors(known: VectorSql | None) -> VectorSql:
    return vector_sql("") if known is None else known


def _lead(
    entry: Entry, exact: str, canonical: str, words: bytes, vector: bytes
) -> tuple[object, ...]:
    pool = entry.pool
    numbers = _numbers(vector) if searchable(entry.embedder, vector) else []
    return (
        pool.tenant, digest(pool.partition, exact),
        digest(pool.partition, canonical) if canonical else "",
        _space(pool, entry.embedder, vector), digest(entry.id), words, pool.partition, numbers,
    )  # fmt: skip


def _space(pool: Pool, embedder: str, vector: bytes) -> str:
    """Name the vectors of one pool, embedder and length: another one is another space."""
    return digest(pool.partition, embedder, str(len(vector) // FLOAT))


def _numbers(vector: bytes) -> list[float]:
    return array("f", vector).tolist()


def _of(row: Mapping[str, Any] | None, pool: Pool | None) -> Entry | None:
    if row is None:
        return None
    entry = read(row["written"], row["answer"], row["vector"], row["created"], row["expires"])
    return None if entry is None or (pool is not None and entry.pool != pool) else entry


def _under(entry: Entry, words: bytes) -> Entry:
    """Return an entry as the prompt that led to it asked for it."""
    if not words:
        return entry
    asked, exact, canonical = _alias(words)
    return codec.replace(entry, asked=asked, exact=exact, canonical=canonical)
