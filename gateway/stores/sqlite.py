"""One SQLite file: opened for this user alone, migrated forward, safe to call from any thread."""

import os
import sqlite3
import stat
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gateway.core.errors import StoreError

BUSY_S = 5.0
_PRIVATE = 0o600
_OTHERS = 0o077


class Database:
    """A connection that threads take in turn; a call waits up to `BUSY_S` for other processes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        try:
            _make_private(path)
            self._connection = sqlite3.connect(
                path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
            )
        except (OSError, sqlite3.Error) as error:
            raise _down(path, error) from error
        try:
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=FULL")
        except sqlite3.Error as error:
            self._connection.close()
            raise _down(path, error) from error

    @contextmanager
    def read(self) -> Generator[sqlite3.Connection]:
        """Lend the connection for single statements; raises StoreError `state_unavailable`."""
        with self._lock:
            try:
                yield self._connection
            except sqlite3.Error as error:
                raise _down(self._path, error) from error

    @contextmanager
    def write(self) -> Generator[sqlite3.Connection]:
        """Lend the connection inside one transaction; an exception undoes all of it."""
        with self.read() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def migrate(self, component: str, migrations: Sequence[Sequence[str]]) -> None:
        """Bring the tables of a component to the newest form; never back.

        A form newer than these migrations raises StoreError: this program would misread it.
        """
        with self.write() as connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS schema_version "
                "(component TEXT PRIMARY KEY, version INTEGER NOT NULL)"
            )
            row = connection.execute(
                "SELECT version FROM schema_version WHERE component = ?", (component,)
            ).fetchone()
            version = int(row[0]) if row else 0
            if version > len(migrations):
                detail = f"{self._path}: {component} was written by a newer version of the gateway"
                raise StoreError("state_unavailable", detail=detail)
            for migration in migrations[version:]:
                for statement in migration:
                    connection.execute(statement)
            connection.execute(
                "INSERT INTO schema_version VALUES (?, ?) "
                "ON CONFLICT (component) DO UPDATE SET version = excluded.version",
                (component, len(migrations)),
            )

    def close(self) -> None:
        """Close the file; further calls raise StoreError."""
        with self._lock:
            self._connection.close()


def _make_private(path: Path) -> None:
    """Make the file readable for this user alone, before its first byte is written.

    One that is there already is not opened: with a descriptor of it would go the locks of this process, those of
    another connection included, and the next program that leaves would take the journal with it.
    """
    path = path.resolve()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE))
    except FileExistsError:
        status = path.stat()
        # A file of somebody else cannot be closed to them: it is used as its owner left it.
        is_own = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
        if is_own and status.st_mode & _OTHERS:
            path.chmod(_PRIVATE)


def _down(path: Path, error: Exception) -> StoreError:
    return StoreError("state_unavailable", detail=f"{path}: {error}")
