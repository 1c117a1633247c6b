"""Brings the tables to the form that this version knows: forward only, one process at a time (P-10)."""

from pathlib import Path
from typing import Final

from gateway.core.errors import StoreError
from gateway.stores.postgres.driver import Connection

MIGRATIONS: Final = tuple(
    path.read_text(encoding="utf-8")
    for path in sorted((Path(__file__).parent / "migrations").glob("*.sql"))
)
_AHEAD = 1
"""How many steps of a newer version this one can work with: both run side by side during an upgrade."""
_LOCK = 7_236_418_001  # any number that is nobody else's
_VERSION = "SELECT version FROM gateway_schema"
_TABLE = """CREATE TABLE IF NOT EXISTS gateway_schema (
    only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one), version integer NOT NULL)"""
_DONE = """INSERT INTO gateway_schema (version) VALUES ($1)
    ON CONFLICT (only_one) DO UPDATE SET version = greatest(gateway_schema.version, $1)"""
_LIMIT_MS = 60_000


class SchemaError(StoreError):
    """The tables are of a version that this one would misread."""


async def migrate(connection: Connection) -> None:
    """Run the steps that are missing; raises SchemaError when the tables are too new."""
    rows = await connection.fetch("SELECT to_regclass('gateway_schema') IS NOT NULL AS known")
    if rows[0]["known"] and await _version(connection) >= len(MIGRATIONS):
        return
    await connection.execute(f"BEGIN; SET LOCAL statement_timeout = {_LIMIT_MS}")
    # Held until the end of the transaction: whoever waited finds the work done.
    await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK, timeout=_LIMIT_MS / 1000)
    # Not asked by name again: within a transaction such an answer may be remembered from before the lock.
    await connection.execute(_TABLE)
    for step in MIGRATIONS[await _version(connection) :]:
        await connection.execute(step, timeout=_LIMIT_MS / 1000)
    await connection.execute(_DONE, len(MIGRATIONS))
    await connection.execute("COMMIT")


async def _version(connection: Connection) -> int:
    """Return how many steps were run."""
    version = max((int(row["version"]) for row in await connection.fetch(_VERSION)), default=0)
    if version > len(MIGRATIONS) + _AHEAD:
        detail = (
            f"the tables in Postgres are of step {version}, this version of the gateway knows "
            f"{len(MIGRATIONS)}: they were written by a newer version"
        )
        raise SchemaError("state_unavailable", detail=detail)
    return version
