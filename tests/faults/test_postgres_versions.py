"""Tables of other versions: brought forward, worked with, or refused in words (P-10)."""

from collections.abc import AsyncIterator

import pytest

from gateway.stores.postgres.ledger import PostgresLedger
from gateway.stores.postgres.schema import MIGRATIONS
from tests.support.ledger_rows import ROW
from tests.support.postgres_calls import calls, comes_back, refused
from tests.support.postgres_server import sql

pytestmark = [pytest.mark.fault("P-10"), pytest.mark.bug("K42")]


@pytest.fixture
async def ledger(postgres_url: str) -> AsyncIterator[PostgresLedger]:
    made = PostgresLedger(postgres_url)
    await calls(made)
    yield made
    await made.aclose()


async def test_tables_of_an_older_version_are_brought_forward(postgres_url: str) -> None:
    old = PostgresLedger(postgres_url)
    await old.append([ROW])
    await old.aclose()
    later = "gateway_ledger, gateway_cache_prompts, gateway_cache, gateway_cache_deletes, gateway_cache_blocked"
    sql(postgres_url, f"DROP TABLE {later}", "UPDATE gateway_schema SET version = 1")

    ledger = PostgresLedger(postgres_url)
    await ledger.append([ROW])

    assert await calls(ledger) == 1
    assert sql(postgres_url, "SELECT version FROM gateway_schema") == f"{len(MIGRATIONS)}\n"
    await ledger.aclose()


async def test_one_step_ahead_is_worked_with_and_left_as_it_is(
    postgres_url: str, ledger: PostgresLedger
) -> None:
    sql(postgres_url, "UPDATE gateway_schema SET version = version + 1")
    sql(postgres_url, "ALTER TABLE gateway_ledger ADD COLUMN of_the_future text")

    other = PostgresLedger(postgres_url)
    await other.append([ROW])

    assert await calls(other) == await calls(ledger) == 1
    assert sql(postgres_url, "SELECT version FROM gateway_schema") == f"{len(MIGRATIONS) + 1}\n"
    await other.aclose()


async def test_two_steps_ahead_are_refused_with_words(
    postgres_url: str, ledger: PostgresLedger
) -> None:
    sql(postgres_url, "UPDATE gateway_schema SET version = version + 2")

    other = PostgresLedger(postgres_url)

    assert "written by a newer version" in await refused(other.append([ROW]))
    await other.aclose()


async def test_a_step_that_fails_leaves_nothing(postgres_url: str) -> None:
    sql(postgres_url, "CREATE TABLE gateway_ledger (x int)")
    ledger = PostgresLedger(postgres_url)

    await refused(ledger.append([ROW]))

    assert sql(postgres_url, "SELECT to_regclass('gateway_keys') IS NULL") == "t\n"
    sql(postgres_url, "DROP TABLE gateway_ledger")
    await comes_back(lambda: ledger.append([ROW]))
    await ledger.aclose()
