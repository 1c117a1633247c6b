"""The ledger in SQLite: reports and writers do not wait for each other, and neither holds up the loop."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.core.errors import StoreError
from gateway.core.ledger import EXACT, LedgerRow, Owner, UsageQuery
from gateway.stores.keys import SqliteKeys
from gateway.stores.ledger import SqliteLedger

ROW = LedgerRow(
    run_id="run_1", attempt=1, at_ms=1_790_000_000_000, tenant="acme", key_id="web", user="",
    session="", agent="", model="fast", endpoint="chat", provider="openai", served="gpt-9",
    kind=EXACT, input=1, output=1, cached=0, cache_write=0, reasoning=0, cost_micro=5, priced=True,
    request_id="req_1",
)  # fmt: skip
ALL = UsageQuery(0, 4_000_000_000_000, ("tenant",))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "gateway.db"


@pytest.fixture
async def ledger(path: Path) -> AsyncIterator[SqliteLedger]:
    made = SqliteLedger(path)
    yield made
    await made.aclose()


async def test_keys_and_ledger_share_a_file(path: Path, ledger: SqliteLedger) -> None:
    keys = SqliteKeys(path)
    await ledger.append([ROW])
    keys.close()

    assert (await ledger.total(Owner("acme"), 0, 0)).calls == 1


async def test_a_report_does_not_wait_for_a_writer(path: Path, ledger: SqliteLedger) -> None:
    await ledger.append([ROW])
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    writing = asyncio.ensure_future(ledger.append([ROW._replace(attempt=2)]))
    await asyncio.sleep(0.05)

    async with asyncio.timeout(1):
        found = await ledger.usage(ALL)

    assert found[0].calls == 1
    assert not writing.done()
    other.close()
    await writing
    assert (await ledger.usage(ALL))[0].calls == 2


async def test_the_loop_goes_on_while_the_file_is_locked(path: Path, ledger: SqliteLedger) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    writing = asyncio.gather(*(ledger.append([ROW._replace(attempt=n)]) for n in range(40)))
    start = time.monotonic()
    for _ in range(20):
        await asyncio.sleep(0.005)
    elsewhere = await asyncio.to_thread(lambda: "a thread is free")

    assert time.monotonic() - start < 1
    assert elsewhere
    other.close()
    await writing


@pytest.mark.bug("K42")
async def test_a_ledger_of_a_newer_version_is_refused(path: Path, ledger: SqliteLedger) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("UPDATE schema_version SET version = version + 1")
    other.close()

    with pytest.raises(StoreError) as caught:
        SqliteLedger(path)

    assert "newer version" in caught.value.detail


async def test_totals_are_read_from_indices_alone(path: Path, ledger: SqliteLedger) -> None:
    plain = "SELECT sum(cost_micro), sum(input + output), count(*) FROM gateway_ledger WHERE tenant = 'a'"
    connection = sqlite3.connect(path)
    for more, index in (
        ("", "gateway_ledger_tenant"),
        (" AND model = 'm'", "gateway_ledger_tenant"),
        (" AND key_id = 'k'", "gateway_ledger_tenant"),
    ):
        (step,) = connection.execute(f"EXPLAIN QUERY PLAN {plain}{more} AND at_ms >= 5").fetchall()
        assert f"USING COVERING INDEX {index}" in step[3]
    for column, index in (("user_id", "user"), ("session_id", "session")):
        more = f" AND {column} = ? AND {column} <> '' AND at_ms >= 5"
        (step,) = connection.execute(f"EXPLAIN QUERY PLAN {plain}{more}", ("x",)).fetchall()
        assert f"USING INDEX gateway_ledger_{index}" in step[3]
    connection.close()
