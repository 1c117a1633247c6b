"""One Postgres database: a bounded pool, transactions with deadlines, and the repeats that are safe."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from gateway.core.errors import StoreError
from gateway.stores.postgres.breaker import Breaker
from gateway.stores.postgres.driver import (
    ANSWER_S,
    ANSWERED,
    CLASHES,
    CONNECT_S,
    FAILURES,
    READ_ONLY,
    Connection,
    Pool,
    connect,
    down,
    is_lost,
    make_pool,
)
from gateway.stores.postgres.schema import migrate

Result = TypeVar("Result")
Work = Callable[[Connection], Awaitable[Result]]

STATEMENT_S: Final = 2.0
_MAX_CONNECTIONS = 4
_CLASHES = 3
_BACK_OFF_S = 0.05


class Postgres:
    """Transactions on a pool of one event loop. Nothing is opened before the first; tables are made then."""

    def __init__(self, url: str, connections: int = _MAX_CONNECTIONS) -> None:
        self._url = url
        self._connections = connections
        self._slots = asyncio.Semaphore(connections)
        self._pool: Pool | None = None
        self._breaker = Breaker()
        self._turn = asyncio.Lock()
        self._closed = False

    async def run(
        self, work: Work[Result], *, repeatable: bool, statement_s: float = STATEMENT_S
    ) -> Result:
        """Run work in a transaction; raises StoreError `state_unavailable`.

        It is done once more on a fresh connection when the old one was lost before the commit, `repeatable` work
        also when nobody knows whether the commit was heard (P-7); and up to three times after a clash (P-4).
        """
        fresh = False
        clashes = 0
        while True:
            commit = _Commit()
            try:
                return await self._once(work, commit, statement_s)
            except CLASHES as error:
                clashes += 1
                if clashes > _CLASHES:
                    raise down(error) from error
                await asyncio.sleep(_BACK_OFF_S * clashes * (secrets.randbelow(100) + 1) / 100)
            except FAILURES as error:
                may_repeat = is_lost(error) and (repeatable or not commit.sent)
                if fresh or not may_repeat or isinstance(error, TimeoutError):
                    raise down(error) from error
                fresh = True

    async def fetch(self, text: str, values: Sequence[object]) -> list[Mapping[str, Any]]:
        """Select by one statement, in half the round trips; raises as `run`."""
        async with self._slot():
            pool, connection = await self._acquire()
            try:
                return await connection.fetch(text, *values)
            except ANSWERED as error:
                await self._learn(pool, error)
                raise down(error) from error
            except FAILURES as error:
                connection.terminate()
                await self._learn(pool, error)
                raise down(error) from error
            except BaseException:
                connection.terminate()
                raise
            finally:
                await pool.release(connection)

    async def close(self) -> None:
        """Close every connection; further calls raise StoreError."""
        self._closed = True
        if self._pool is not None:
            self._pool.terminate()

    async def _once(self, work: Work[Result], commit: "_Commit", statement_s: float) -> Result:
        async with self._slot():
            pool, connection = await self._acquire()
            try:
                return await _transact(connection, work, commit, statement_s)
            except FAILURES as error:
                await self._learn(pool, error)
                raise
            finally:
                await pool.release(connection)

    @contextlib.asynccontextmanager
    async def _slot(self) -> AsyncGenerator[None]:
        """Wait for one of the connections, which others may be using, for a bounded time (P-5)."""
        try:
            async with asyncio.timeout(STATEMENT_S + ANSWER_S):
                await self._slots.acquire()
        except TimeoutError as error:
            detail = "all connections to Postgres are in use"
            raise StoreError("state_unavailable", detail=detail) from error
        try:
            yield
        finally:
            self._slots.release()

    async def _acquire(self) -> tuple[Pool, Connection]:
        if self._closed:
            raise StoreError("state_unavailable", detail="the store is closed")
        self._breaker.check()
        try:
            pool = await self._opened()
            connection = await pool.acquire(timeout=CONNECT_S + ANSWER_S)
        except (ValueError, *FAILURES) as error:
            refusal = down(error)
            self._breaker.failed(refusal)
            raise refusal from error
        self._breaker.worked()
        return pool, connection

    async def _learn(self, pool: Pool, error: Exception) -> None:
        """Use no connection again that was opened to a server which left, or lost its role (P-6)."""
        if isinstance(error, TimeoutError):
            self._breaker.failed(down(error))
        if is_lost(error) or isinstance(error, READ_ONLY):
            await pool.expire_connections()

    async def _opened(self) -> Pool:
        """Return the pool; the first caller makes it, after the tables."""
        failures = self._breaker.failures
        async with self._turn:
            if self._pool is None:
                self._breaker.check_since(failures)
                await self._prepare()
                self._pool = await make_pool(self._url, self._connections, STATEMENT_S)
            return self._pool

    async def _prepare(self) -> None:
        connection = await connect(self._url, STATEMENT_S)
        try:
            await migrate(connection)
        finally:
            connection.terminate()


class _Commit:
    """Whether the end of a transaction was sent: from there on a lost reply says nothing."""

    sent = False


async def _transact(
    connection: Connection, work: Work[Result], commit: _Commit, statement_s: float
) -> Result:
    limit_ms = int(statement_s * 1000)
    try:
        await connection.execute(f"BEGIN; SET LOCAL statement_timeout = {limit_ms}")
        result = await work(connection)
        commit.sent = True
        await connection.execute("COMMIT")
    except ANSWERED:
        await _roll_back(connection)
        raise
    except BaseException:
        # Nobody knows what the server is doing with it; it rolls back what has no commit.
        connection.terminate()
        raise
    return result


async def _roll_back(connection: Connection) -> None:
    try:
        await connection.execute("ROLLBACK")
    except FAILURES:
        connection.terminate()
