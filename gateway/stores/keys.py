"""Keys made at run time, in memory or in SQLite. Holds hashes and last fours, never a key."""

import sqlite3
import threading
from dataclasses import replace
from pathlib import Path
from typing import Final

from gateway.core.errors import StoreError
from gateway.core.ports import StoredKey
from gateway.stores.sqlite import Database

_CHANGES = "UPDATE key_changes SET version = version + 1;"
_MIGRATIONS: Final = (
    (
        """CREATE TABLE keys (
            tenant TEXT NOT NULL,
            id TEXT NOT NULL,
            hash TEXT NOT NULL UNIQUE,
            last_four TEXT NOT NULL,
            models TEXT,
            expires REAL,
            created REAL NOT NULL,
            revoked INTEGER NOT NULL DEFAULT 0,
            PRIMARY KEY (tenant, id)
        )""",
        "CREATE TABLE key_changes (version INTEGER NOT NULL)",
        "INSERT INTO key_changes VALUES (1)",
        # Triggers, so that a change by any program counts, also one made by hand.
        f"CREATE TRIGGER keys_added AFTER INSERT ON keys BEGIN {_CHANGES} END",
        f"CREATE TRIGGER keys_changed AFTER UPDATE ON keys BEGIN {_CHANGES} END",
        f"CREATE TRIGGER keys_removed AFTER DELETE ON keys BEGIN {_CHANGES} END",
    ),
)
"""Forward only: a step is never changed once it was released, only followed."""

_SEPARATOR = "\n"
_Row = tuple[str, str, str, str, str | None, float | None, float, int]


class MemoryKeys:
    """Keys of this process; they are gone when it ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: dict[tuple[str, str], StoredKey] = {}
        self._version = 1
        self._open = True

    def create(self, key: StoredKey) -> bool:
        """Add a key; False when the tenant has one of this id, or the hash is known."""
        with self._lock:
            self._check_open()
            known = any(row.hash == key.hash for row in self._rows.values())
            if known or (key.tenant, key.id) in self._rows:
                return False
            self._rows[key.tenant, key.id] = key
            self._version += 1
            return True

    def load(self) -> tuple[StoredKey, ...]:
        """Return all keys in the order of their tenants and ids, revoked ones included."""
        with self._lock:
            self._check_open()
            return tuple(row for _, row in sorted(self._rows.items()))

    def revoke(self, tenant: str, key_id: str) -> bool:
        """Make a key worthless; False when there is no such key in force."""
        with self._lock:
            self._check_open()
            row = self._rows.get((tenant, key_id))
            if row is None or row.revoked:
                return False
            self._rows[tenant, key_id] = replace(row, revoked=True)
            self._version += 1
            return True

    def version(self) -> int:
        """Return a number that differs after every change."""
        with self._lock:
            self._check_open()
            return self._version

    def close(self) -> None:
        """Refuse further calls."""
        self._open = False

    def _check_open(self) -> None:
        if not self._open:
            raise StoreError("state_unavailable", detail="the key store is closed")


class SqliteKeys:
    """Keys in a SQLite file, shared by every process that opens it."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path)
        try:
            self._database.migrate("keys", _MIGRATIONS)
        except StoreError:
            self._database.close()
            raise

    def create(self, key: StoredKey) -> bool:
        """Add a key; False when the tenant has one of this id, or the hash is known."""
        models = None if key.models is None else _SEPARATOR.join(key.models)
        row = (key.tenant, key.id, key.hash, key.last_four, models, key.expires, key.created)
        with self._database.write() as connection:
            try:
                connection.execute(
                    "INSERT INTO keys (tenant, id, hash, last_four, models, expires, created, "
                    "revoked) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (*row, int(key.revoked)),
                )
            except sqlite3.IntegrityError:
                return False
            return True

    def load(self) -> tuple[StoredKey, ...]:
        """Return all keys in the order of their tenants and ids, revoked ones included."""
        with self._database.read() as connection:
            rows: list[_Row] = connection.execute(
                "SELECT tenant, id, hash, last_four, models, expires, created, revoked "
                "FROM keys ORDER BY tenant, id"
            ).fetchall()
        return tuple(_key(row) for row in rows)

    def revoke(self, tenant: str, key_id: str) -> bool:
        """Make a key worthless; False when there is no such key in force."""
        with self._database.write() as connection:
            done = connection.execute(
                "UPDATE keys SET revoked = 1 WHERE tenant = ? AND id = ? AND revoked = 0",
                (tenant, key_id),
            )
            return done.rowcount == 1

    def version(self) -> int:
        """Return a number that differs after every change, by whichever process."""
        with self._database.read() as connection:
            row: tuple[int] | None = connection.execute(
                "SELECT version FROM key_changes"
            ).fetchone()
        return row[0] if row else 0

    def close(self) -> None:
        """Close the file; further calls raise StoreError."""
        self._database.close()


def _key(row: _Row) -> StoredKey:
    tenant, key_id, digest, last_four, models, expires, created, revoked = row
    return StoredKey(
        tenant=tenant,
        id=key_id,
        hash=digest,
        last_four=last_four,
        models=None if models is None else tuple(filter(None, models.split(_SEPARATOR))),
        expires=expires,
        created=created,
        revoked=bool(revoked),
    )
