"""The ledger in Postgres: shared by every gateway, written off the request path."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gateway.core import codec
from gateway.core.ledger import LEASE_EXPIRED, LedgerRow, Owner, Total, UsageQuery, UsageRow
from gateway.stores.postgres.database import STATEMENT_S, Postgres
from gateway.stores.postgres.driver import Connection
from gateway.stores.storable import run, storable
from gateway.stores.sums import COLUMNS, Grammar, Statement, total_of, usage_of

_BATCH = 500
_REPORT_S = 20.0
"""What a report for operators may take; it reads more than any other call."""
_GRAMMAR = Grammar(
    "${}".format,
    "to_char(to_timestamp(at_ms / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD')",
)
_TYPES: Final = {str: "text", int: "bigint", bool: "boolean"}
_NAMES = ", ".join(COLUMNS)
_ARRAYS = ", ".join(
    f"${number}::{_TYPES.get(kind, 'text')}[]"
    for number, kind in enumerate(LedgerRow.__annotations__.values(), 1)
)
_TAKEN = f"{', '.join(COLUMNS[:-1])}, tags::jsonb"
_LOCK = 7_236_418_002
# Ends of leases and real rows exclude each other, so that one always sees the other; real rows do not.
_SHARED = f"SELECT pg_advisory_xact_lock_shared({_LOCK})"
_ALONE = f"SELECT pg_advisory_xact_lock({_LOCK})"
_REPLACED = """DELETE FROM gateway_ledger WHERE kind = $3
    AND (tenant, run_id) IN (SELECT * FROM unnest($1::text[], $2::text[]))"""
# Only names and marks of this file are part of these texts.
_REAL = f"""INSERT INTO gateway_ledger ({_NAMES})
    SELECT {_TAKEN} FROM unnest({_ARRAYS}) AS given ({_NAMES}) ON CONFLICT DO NOTHING"""  # noqa: S608
_EXPIRED = f"""INSERT INTO gateway_ledger ({_NAMES})
    SELECT {_TAKEN} FROM unnest({_ARRAYS}) AS given ({_NAMES})
    WHERE NOT EXISTS (SELECT 1 FROM gateway_ledger AS kept
        WHERE kept.tenant = given.tenant AND kept.run_id = given.run_id)
    ON CONFLICT DO NOTHING"""  # noqa: S608
_OF_RUN = f"SELECT {_NAMES} FROM gateway_ledger WHERE tenant = $1 AND run_id = $2 ORDER BY attempt"  # noqa: S608


class PostgresLedger:
    """Rows in Postgres. Nothing is opened before the first call; belongs to the event loop of that call."""

    def __init__(self, url: str) -> None:
        self._database = Postgres(url)

    async def append(self, rows: Sequence[LedgerRow]) -> None:
        """Write rows in short transactions; real ones take the place of `lease_expired`."""
        kept = storable(rows)
        real = [row for row in kept if row.kind != LEASE_EXPIRED]
        expired = [row for row in kept if row.kind == LEASE_EXPIRED]
        for start in range(0, len(real), _BATCH):
            await self._database.run(_Real(real[start : start + _BATCH]), repeatable=True)
        for start in range(0, len(expired), _BATCH):
            await self._database.run(_Expired(expired[start : start + _BATCH]), repeatable=True)

    async def total(self, owner: Owner, start_ms: int, end_ms: int) -> Total:
        """Add up the rows of an owner."""
        (row,) = await self._select(total_of(owner, start_ms, end_ms, _GRAMMAR), STATEMENT_S)
        cost, tokens, calls = row.values()
        return Total(int(cost or 0), int(tokens or 0), calls)

    async def of_run(self, tenant: str, run_id: str) -> Sequence[LedgerRow]:
        """Return the rows of one run in the order of their attempts."""
        rows = await self._select(Statement(_OF_RUN, (tenant, run_id)), STATEMENT_S)
        return [_row(tuple(row.values())) for row in rows]

    async def usage(self, query: UsageQuery) -> Sequence[UsageRow]:
        """Return sums by group, in the order of the groups."""
        size = len(query.by)
        rows = [
            tuple(row.values()) for row in await self._select(usage_of(query, _GRAMMAR), _REPORT_S)
        ]
        return sorted(UsageRow(tuple(row[:size]), *map(int, row[size:])) for row in rows)

    async def aclose(self) -> None:
        """Close every connection; further calls raise StoreError."""
        await self._database.close()

    async def _select(
        self, statement: Statement, statement_s: float
    ) -> Sequence[Mapping[str, Any]]:
        async def work(connection: Connection) -> Sequence[Mapping[str, Any]]:
            return await connection.fetch(
                statement.text, *statement.values, timeout=statement_s + 1
            )

        return await self._database.run(work, repeatable=True, statement_s=statement_s)


class _Real:
    """Writes rows of calls."""

    def __init__(self, rows: Sequence[LedgerRow]) -> None:
        self._rows = rows

    async def __call__(self, connection: Connection) -> None:
        await connection.execute(_SHARED)
        tenants, names = zip(*dict.fromkeys(map(run, self._rows)), strict=True)
        await connection.execute(_REPLACED, tenants, names, LEASE_EXPIRED)
        await connection.execute(_REAL, *_columns(self._rows))


class _Expired:
    """Writes what is known of calls whose process died."""

    def __init__(self, rows: Sequence[LedgerRow]) -> None:
        self._rows = rows

    async def __call__(self, connection: Connection) -> None:
        await connection.execute(_ALONE)
        await connection.execute(_EXPIRED, *_columns(self._rows))


def _columns(rows: Sequence[LedgerRow]) -> list[list[Any]]:
    columns: list[list[Any]] = [list(values) for values in zip(*rows, strict=True)]
    columns[-1] = [codec.encode(tags).decode() for tags in columns[-1]]
    return columns


def _row(values: tuple[Any, ...]) -> LedgerRow:
    return LedgerRow(*values)._replace(tags=tuple(codec.decode(values[-1])))
