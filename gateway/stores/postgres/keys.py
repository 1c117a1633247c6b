"""Keys in Postgres, for callers in any thread: the connection lives on a loop in a thread of its own."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from gateway.core.errors import StoreError
from gateway.core.ports import StoredKey
from gateway.stores.postgres.database import Postgres
from gateway.stores.postgres.driver import Connection
from gateway.stores.postgres.schema import SchemaError

Result = TypeVar("Result")
_INSERT = """INSERT INTO gateway_keys (tenant, id, hash, last_four, models, expires, created, revoked)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING"""
_SELECT = (
    """SELECT tenant, id, hash, last_four, models, expires, created, revoked FROM gateway_keys"""
)
_REVOKE = "UPDATE gateway_keys SET revoked = true WHERE tenant = $1 AND id = $2 AND NOT revoked"
_VERSION = "SELECT version FROM gateway_key_changes"


class PostgresKeys:
    """Keys in Postgres, shared by every gateway. A server that is down is no reason not to start (P-1)."""

    def __init__(self, url: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="postgres-keys")
        self._lock = threading.Lock()
        self._open = True
        self._runner = asyncio.Runner()
        self._database = Postgres(url, connections=1)
        try:
            self.version()
        except SchemaError:
            self.close()
            raise
        except StoreError:
            # The next call says so again, to somebody who knows what that means.
            return

    def create(self, key: StoredKey) -> bool:
        """Add a key; False when the tenant has one of this id, or the hash is known."""
        models = None if key.models is None else [_kept(name) for name in key.models]
        names = (_kept(key.tenant), _kept(key.id), _kept(key.hash), _kept(key.last_four))
        done = self._execute(_INSERT, *names, models, key.expires, key.created, key.revoked)
        return done == "INSERT 0 1"

    def load(self) -> tuple[StoredKey, ...]:
        """Return all keys in the order of their tenants and ids, revoked ones included."""
        keys = [_key(row) for row in self._fetch(_SELECT)]
        return tuple(sorted(keys, key=lambda key: (key.tenant, key.id)))

    def revoke(self, tenant: str, key_id: str) -> bool:
        """Make a key worthless; False when there is no such key in force."""
        return self._execute(_REVOKE, _kept(tenant), _kept(key_id)) == "UPDATE 1"

    def version(self) -> int:
        """Return a number that differs after every change, by whichever process."""
        rows = self._fetch(_VERSION)
        return int(rows[0]["version"]) if rows else 0

    def close(self) -> None:
        """Close the connection and end the thread; further calls raise StoreError."""
        with self._lock:
            if not self._open:
                return
            self._open = False
        self._thread.submit(self._end).result()
        self._thread.shutdown()

    def _execute(self, text: str, *values: object) -> str:
        async def work(connection: Connection) -> str:
            return await connection.execute(text, *values)

        # Whether a change was heard decides the answer: it is not made twice.
        return self._wait(lambda: self._database.run(work, repeatable=False))

    def _fetch(self, text: str) -> Sequence[Mapping[str, Any]]:
        async def work(connection: Connection) -> Sequence[Mapping[str, Any]]:
            return await connection.fetch(text)

        return self._wait(lambda: self._database.run(work, repeatable=True))

    def _wait(self, start: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        with self._lock:
            if not self._open:
                raise StoreError("state_unavailable", detail="the key store is closed")
            waiting = self._thread.submit(lambda: self._runner.run(start()))
        return waiting.result()

    def _end(self) -> None:
        self._runner.run(self._database.close())
        self._runner.close()


def _kept(text: str) -> str:
    """Return a text as Postgres takes it, which knows no NUL."""
    return text.replace("\\", "\\\\").replace("\0", "\\0")


def _given(text: str) -> str:
    return "\\".join(part.replace("\\0", "\0") for part in text.split("\\\\"))


def _key(row: Mapping[str, Any]) -> StoredKey:
    models: Sequence[str] | None = row["models"]
    return StoredKey(
        tenant=_given(row["tenant"]),
        id=_given(row["id"]),
        hash=row["hash"],
        last_four=row["last_four"],
        models=None if models is None else tuple(_given(name) for name in models),
        expires=row["expires"],
        created=row["created"],
        revoked=row["revoked"],
    )
