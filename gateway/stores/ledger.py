"""Ledgers of one machine: in memory for what need not last, in SQLite for what must."""

import asyncio
import sqlite3
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

from gateway.core import codec
from gateway.core.errors import StoreError
from gateway.core.ledger import (
    EXACT,
    LEASE_EXPIRED,
    LedgerRow,
    Owner,
    Total,
    UsageQuery,
    UsageRow,
)
from gateway.stores.sqlite import Database
from gateway.stores.storable import run, storable
from gateway.stores.sums import COLUMNS, DAY, GROUPS, Grammar, Statement, total_of, usage_of

MEMORY_RUNS = 10_000
_BATCH = 2_048
_PAUSE_S = 0.001
_NO_TAGS = "[]"
_MS = 1000
_MIGRATIONS: Final = (
    (
        """CREATE TABLE gateway_ledger (
            run_id TEXT NOT NULL,
            attempt INTEGER NOT NULL,
            at_ms INTEGER NOT NULL,
            tenant TEXT NOT NULL,
            key_id TEXT NOT NULL,
            user_id TEXT NOT NULL,
            session_id TEXT NOT NULL,
            agent TEXT NOT NULL,
            model TEXT NOT NULL,
            endpoint TEXT NOT NULL,
            provider TEXT NOT NULL,
            served TEXT NOT NULL,
            kind TEXT NOT NULL,
            input INTEGER NOT NULL,
            output INTEGER NOT NULL,
            cached INTEGER NOT NULL,
            cache_write INTEGER NOT NULL,
            reasoning INTEGER NOT NULL,
            cost_micro INTEGER NOT NULL,
            priced INTEGER NOT NULL,
            request_id TEXT NOT NULL,
            tags TEXT NOT NULL,
            PRIMARY KEY (tenant, run_id, attempt)
        ) WITHOUT ROWID""",
        # What totals add up stands in the index: a month of a tenant or of its keys is summed without reading rows.
        # It is the only one of its kind, since every index costs each row as much as half the row itself.
        """CREATE INDEX gateway_ledger_tenant
            ON gateway_ledger (tenant, at_ms, key_id, model, cost_micro, input, output)""",
        """CREATE INDEX gateway_ledger_user ON gateway_ledger (tenant, user_id, at_ms)
            WHERE user_id <> ''""",
        """CREATE INDEX gateway_ledger_session ON gateway_ledger (tenant, session_id, at_ms)
            WHERE session_id <> ''""",
        # Nearly always empty: a look into it spares every other row a search for what it might replace.
        """CREATE INDEX gateway_ledger_expired ON gateway_ledger (tenant, run_id)
            WHERE kind = 'lease_expired'""",
    ),
)
"""Forward only: a step is never changed once it was released, only followed."""
_GRAMMAR = Grammar("?{}".format, "date(at_ms / 1000, 'unixepoch')")
_NAMES = ", ".join(COLUMNS)
_MARKS = ", ".join("?" * len(COLUMNS))
# Only names and marks of this file are part of these texts.
_REAL = {
    size: f"INSERT INTO gateway_ledger ({_NAMES}) VALUES "  # noqa: S608
    + ", ".join([f"({_MARKS})"] * size)
    + " ON CONFLICT DO NOTHING"
    for size in (256, 64, 16, 4, 1)
}
"""By the number of rows: each statement lets go of the interpreter once, not for every row."""
_EXPIRED = (
    f"INSERT INTO gateway_ledger ({_NAMES}) SELECT {_MARKS} WHERE NOT EXISTS "  # noqa: S608
    "(SELECT 1 FROM gateway_ledger WHERE tenant = ? AND run_id = ?) ON CONFLICT DO NOTHING"
)
_ANY_EXPIRED = f"SELECT 1 FROM gateway_ledger WHERE kind = '{LEASE_EXPIRED}' LIMIT 1"  # noqa: S608
_REPLACED = (
    f"DELETE FROM gateway_ledger WHERE tenant = ? AND run_id = ? AND kind = '{LEASE_EXPIRED}'"  # noqa: S608
)
_OF_RUN = f"SELECT {_NAMES} FROM gateway_ledger WHERE tenant = ? AND run_id = ? ORDER BY attempt"  # noqa: S608


class MemoryLedger:
    """Rows of this process: those of the last `runs` runs."""

    def __init__(self, runs: int = MEMORY_RUNS) -> None:
        self._most = runs
        self._runs: OrderedDict[tuple[str, str], dict[int, LedgerRow]] = OrderedDict()
        self._open = True

    async def append(self, rows: Sequence[LedgerRow]) -> None:
        """Write rows; real ones take the place of `lease_expired`."""
        self._check_open()
        for row in storable(rows):
            kept = self._runs.setdefault(run(row), {})
            if row.kind != LEASE_EXPIRED:
                for attempt in [n for n, old in kept.items() if old.kind == LEASE_EXPIRED]:
                    del kept[attempt]
                kept.setdefault(row.attempt, row)
            elif not kept:
                kept[row.attempt] = row
        for oldest in list(islice(self._runs, max(0, len(self._runs) - self._most))):
            del self._runs[oldest]

    async def total(self, owner: Owner, start_ms: int, end_ms: int) -> Total:
        """Add up the rows of an owner."""
        self._check_open()
        within = self._within(start_ms, end_ms or None)
        rows = [row for row in within if row.tenant == owner.tenant and _owns(owner, row)]
        cost = sum(row.cost_micro for row in rows)
        return Total(cost, sum(row.input + row.output for row in rows), len(rows))

    async def of_run(self, tenant: str, run_id: str) -> Sequence[LedgerRow]:
        """Return the rows of one run in the order of their attempts."""
        self._check_open()
        return tuple(row for _, row in sorted(self._runs.get((tenant, run_id), {}).items()))

    async def usage(self, query: UsageQuery) -> Sequence[UsageRow]:
        """Return sums by group, in the order of the groups."""
        self._check_open()
        wanted = Owner(query.tenant, query.key_id, model=query.model)
        groups: dict[tuple[str, ...], list[LedgerRow]] = {}
        for row in self._within(query.start_ms, query.end_ms):
            if _owns(wanted, row):
                groups.setdefault(tuple(_value(row, name) for name in query.by), []).append(row)
        found = [_summed(group, rows) for group, rows in sorted(groups.items())]
        return found[: query.limit or None]

    async def aclose(self) -> None:
        """Refuse further calls."""
        self._open = False
        self._runs.clear()

    def _within(self, start_ms: int, end_ms: int | None) -> Iterable[LedgerRow]:
        for rows in self._runs.values():
            for row in rows.values():
                if start_ms <= row.at_ms and (end_ms is None or row.at_ms < end_ms):
                    yield row

    def _check_open(self) -> None:
        if not self._open:
            raise StoreError("state_unavailable", detail="the ledger is closed")


class SqliteLedger:
    """Rows in a SQLite file, shared by every process that opens it. Calls wait in a thread, never on the loop."""

    def __init__(self, path: Path) -> None:
        self._desk = _Desk(path)
        try:
            self._desk.database.migrate("ledger", _MIGRATIONS)
            # Reports read much: on a connection of their own they keep no writer waiting.
            self._reports = _Desk(path)
        except StoreError:
            self._desk.database.close()
            raise

    async def append(self, rows: Sequence[LedgerRow]) -> None:
        """Write rows in short transactions; real ones take the place of `lease_expired`."""
        for start in range(0, len(rows), _BATCH):
            await self._desk.append(rows[start : start + _BATCH])

    async def total(self, owner: Owner, start_ms: int, end_ms: int) -> Total:
        """Add up the rows of an owner."""
        ((cost, tokens, calls),) = await self._desk.select(
            total_of(owner, start_ms, end_ms, _GRAMMAR)
        )
        return Total(cost or 0, tokens or 0, calls)

    async def of_run(self, tenant: str, run_id: str) -> Sequence[LedgerRow]:
        """Return the rows of one run in the order of their attempts."""
        rows = await self._desk.select(Statement(_OF_RUN, (tenant, run_id)))
        return [_row(values) for values in rows]

    async def usage(self, query: UsageQuery) -> Sequence[UsageRow]:
        """Return sums by group, in the order of the groups."""
        size = len(query.by)
        rows = await self._reports.select(usage_of(query, _GRAMMAR))
        return sorted(UsageRow(tuple(row[:size]), *row[size:]) for row in rows)

    async def aclose(self) -> None:
        """Close the file; further calls raise StoreError."""
        for desk in (self._desk, self._reports):
            await asyncio.to_thread(desk.database.close)


class _Desk:
    """A connection that is used off the loop, by one thread at a time: the others of the process stay free."""

    def __init__(self, path: Path) -> None:
        self.database = Database(path)
        self._turn = asyncio.Lock()

    async def select(self, statement: Statement) -> list[Any]:
        """Return the rows of one statement."""
        async with self._turn:
            return await asyncio.to_thread(self._select, statement)

    async def append(self, rows: Sequence[LedgerRow]) -> None:
        """Write rows in one transaction."""
        async with self._turn:
            await asyncio.to_thread(self._append, rows)

    def _select(self, statement: Statement) -> list[Any]:
        with self.database.read() as connection:
            return connection.execute(statement.text, statement.values).fetchall()

    def _append(self, rows: Sequence[LedgerRow]) -> None:
        real = [row for row in rows if row.kind != LEASE_EXPIRED]
        expired = storable(row for row in rows if row.kind == LEASE_EXPIRED)
        with self.database.write() as connection:
            if connection.execute(_ANY_EXPIRED).fetchone() is not None:
                replaced = dict.fromkeys(map(run, storable(real)))
                connection.executemany(_REPLACED, replaced)
            for text, part in _statements(real):
                connection.execute(text, _values(part))
            connection.executemany(_EXPIRED, [(*_values([row]), *run(row)) for row in expired])


def _statements(rows: Sequence[LedgerRow]) -> Iterable[tuple[str, Sequence[LedgerRow]]]:
    """Yield the statements that write rows, and the rows of each; between two of them others have the processor.

    A thousand rows in one go would keep the requests of a busy core waiting for as long as they take.
    """
    at = 0
    for size, text in _REAL.items():
        while len(rows) - at >= size:
            if at:
                time.sleep(_PAUSE_S)
            yield text, storable(rows[at : at + size])
            at += size


def _values(rows: Sequence[LedgerRow]) -> list[Any]:
    """Return the values of rows one after another."""
    values: list[Any] = list(chain.from_iterable(rows))
    values[len(COLUMNS) - 1 :: len(COLUMNS)] = [
        codec.encode(row.tags).decode() if row.tags else _NO_TAGS for row in rows
    ]
    return values


def _row(values: sqlite3.Row) -> LedgerRow:
    row = LedgerRow(*values)
    return row._replace(priced=bool(row.priced), tags=tuple(codec.decode(values[-1])))


def _owns(owner: Owner, row: LedgerRow) -> bool:
    names = Owner._fields
    return all(
        not want or want == getattr(row, name) for name, want in zip(names, owner, strict=True)
    )


def _value(row: LedgerRow, group: str) -> str:
    if group == DAY:
        return datetime.fromtimestamp(row.at_ms / _MS, tz=UTC).date().isoformat()
    if group not in GROUPS:
        message = f"usage has no group {group}"
        raise ValueError(message)
    return str(getattr(row, "key_id" if group == "key" else group))


def _summed(group: tuple[str, ...], rows: Sequence[LedgerRow]) -> UsageRow:
    return UsageRow(
        group,
        len(rows),
        sum(row.input for row in rows),
        sum(row.output for row in rows),
        sum(row.cached for row in rows),
        sum(row.cache_write for row in rows),
        sum(row.reasoning for row in rows),
        sum(row.cost_micro for row in rows),
        sum(row.kind != EXACT for row in rows),
        sum(not row.priced for row in rows),
    )
