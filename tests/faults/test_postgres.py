"""Postgres in trouble: every call ends in time, and what follows is right again (P-1 to P-11)."""

import asyncio
import signal
import time
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import asynccontextmanager
from typing import Any, cast
from urllib.parse import urlsplit

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pytest

from gateway.core.ledger import Ledger, Owner
from gateway.stores.postgres.driver import complete
from gateway.stores.postgres.ledger import PostgresLedger
from gateway.stores.registry import open_ledger
from tests.support.ledger_rows import ROW
from tests.support.postgres_calls import BOUNDED_S, calls, comes_back, refused
from tests.support.postgres_server import PostgresServer, fresh_schema, running_postgres, sql
from tests.support.tcp_link import Link, linked

NOBODY = "postgres://postgres@127.0.0.1:9/postgres"
AT_ONCE_S = 0.1
driver = cast("Any", asyncpg)


@pytest.fixture(scope="module")
def server() -> Generator[PostgresServer]:
    with running_postgres(max_connections="12", superuser_reserved_connections="2") as made:
        yield made


@pytest.fixture
def url(server: PostgresServer) -> Generator[str]:
    with fresh_schema(server.url) as made:
        yield made


@pytest.fixture
async def ledger(url: str) -> AsyncIterator[PostgresLedger]:
    made = PostgresLedger(url)
    await made.append([])
    await made.total(Owner("acme"), 0, 0)
    yield made
    await made.aclose()


@pytest.fixture
async def link(url: str) -> AsyncIterator[tuple[Link, PostgresLedger]]:
    """A ledger that reaches its server over a wire."""
    port = str(urlsplit(url).port)
    async with linked(int(port)) as wire:
        made = PostgresLedger(url.replace(port, str(wire.port)))
        await made.total(Owner("acme"), 0, 0)
        yield wire, made
        await made.aclose()


@asynccontextmanager
async def session(url: str, *statements: str) -> AsyncGenerator[Any]:
    """Another user of the database, in the middle of a transaction."""
    connection = await driver.connect(url)
    try:
        for statement in ("BEGIN", *statements):
            await connection.execute(statement)
        yield connection
    finally:
        connection.terminate()


async def refused_at_once(ledger: Ledger) -> None:
    """Be refused again and again; but for the one call per second that tries, nobody waits."""
    taken: list[float] = []
    for _ in range(15):
        start = time.monotonic()
        await refused(ledger.append([ROW]))
        taken.append(time.monotonic() - start)
    assert sorted(taken)[len(taken) // 2] < AT_ONCE_S


def kick(url: str) -> None:
    """Terminate every connection of the gateway, as a server or a proxy does with idle ones."""
    sql(url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'llm-gateway'")  # fmt: skip


@pytest.mark.fault("P-1")
class TestDownAtTheStart:
    async def test_a_ledger_opens_and_refuses_in_time(self) -> None:
        ledger = open_ledger(NOBODY)

        assert "refused" in (await refused(ledger.append([ROW]))).lower()
        await refused_at_once(ledger)
        await ledger.aclose()

    async def test_it_works_once_the_server_is_there(
        self, server: PostgresServer, url: str
    ) -> None:
        server.stop(signal.SIGQUIT)
        ledger = PostgresLedger(url)
        try:
            await refused(ledger.append([ROW]))
        finally:
            server.start()

        await comes_back(lambda: ledger.append([ROW]))
        assert await calls(ledger) == 1
        await ledger.aclose()

    async def test_a_server_that_never_says_a_word_holds_nobody_up_for_another(
        self, url: str
    ) -> None:
        port = str(urlsplit(url).port)
        async with linked(int(port)) as wire:
            ledger = PostgresLedger(url.replace(port, str(wire.port)))
            wire.freeze()
            await asyncio.gather(*(refused(ledger.append([ROW])) for _ in range(30)))
            wire.thaw()
            await comes_back(lambda: ledger.append([ROW]))
            await ledger.aclose()

    @pytest.mark.threat("T-12")
    async def test_no_word_of_the_password_is_said(self) -> None:
        for url in (
            "postgres://u:canary-J8sKq2Lw@127.0.0.1:9/d",
            "postgres://u:canary-J8sKq2Lw@no-such-host.invalid/d",
            "postgres://u:x@h:canary-J8sKq2Lw/d",
            "postgres://u:canary-J8sKq2Lw@h/d?sslmode=canary-J8sKq2Lw",
        ):
            ledger = PostgresLedger(url)
            assert "canary" not in await refused(ledger.append([ROW]))
            await ledger.aclose()


@pytest.mark.threat("T-39")
async def test_the_environment_says_nothing_about_the_server(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (
        ("PGHOST", "nowhere.invalid"), ("PGPORT", "1"), ("PGUSER", "nobody"), ("PGPASSWORD", "x"),
        ("PGDATABASE", "nothing"), ("PGSSLMODE", "verify-full"),
        ("PGTARGETSESSIONATTRS", "standby"), ("PGOPTIONS", "-c search_path=elsewhere"),
    ):  # fmt: skip
        monkeypatch.setenv(name, value)
    ledger = PostgresLedger(url)

    await ledger.append([ROW])

    assert await calls(ledger) == 1
    await ledger.aclose()


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("postgres://u:p%40@h/d", "postgres://u:p%40@h:5432/d?sslmode=prefer&target_session_attrs=any"),
        ("postgres://u@a,[::1]:6,[::2]/d?sslmode=require", "postgres://u@/d?sslmode=require&target_session_attrs=any&host=a%2C%5B%3A%3A1%5D%2C%5B%3A%3A2%5D&port=5432%2C6%2C5432"),
        ("postgres://u@/d?host=/run/x", "postgres://u@/d?sslmode=prefer&target_session_attrs=any&host=%2Frun%2Fx&port=5432"),
    ],
)  # fmt: skip
def test_an_address_leaves_nothing_open(given: str, meant: str) -> None:
    assert complete(given) == meant


@pytest.mark.parametrize("more", ["sslmode=require", "sslmode=verify-full&sslrootcert=/no/ca"])
async def test_a_server_without_tls_is_not_spoken_to_where_it_is_required(
    url: str, more: str
) -> None:
    ledger = PostgresLedger(f"{url}&{more}")

    assert await refused(ledger.append([ROW]))
    await ledger.aclose()


@pytest.mark.fault("P-2")
class TestDiesWhileServing:
    async def test_callers_are_refused_in_time_and_served_when_it_is_back(
        self, server: PostgresServer, ledger: PostgresLedger
    ) -> None:
        await ledger.append([ROW])
        server.stop(signal.SIGQUIT)
        try:
            await asyncio.gather(*(refused(ledger.append([ROW])) for _ in range(50)))
            await refused_at_once(ledger)
        finally:
            server.start()

        await comes_back(lambda: ledger.append([ROW._replace(attempt=2)]))
        assert await calls(ledger) == 2

    async def test_a_server_that_says_nothing_is_given_up(
        self, link: tuple[Link, PostgresLedger]
    ) -> None:
        wire, ledger = link
        wire.freeze()

        await asyncio.gather(*(refused(ledger.append([ROW]), 7.0) for _ in range(10)))
        await refused(ledger.append([ROW]), BOUNDED_S)
        wire.thaw()

        await comes_back(lambda: ledger.append([ROW]))
        assert await calls(ledger) == 1

    async def test_who_gives_up_waiting_leaves_nothing_behind(
        self, url: str, ledger: PostgresLedger
    ) -> None:
        async with session(url, "LOCK TABLE gateway_ledger IN ACCESS EXCLUSIVE MODE"):
            for _ in range(10):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await ledger.append([ROW])

        await comes_back(lambda: ledger.append([ROW]))
        assert await calls(ledger) == 1


@pytest.mark.fault("P-3")
async def test_a_lock_costs_its_caller_two_seconds_and_nobody_else(
    url: str, ledger: PostgresLedger
) -> None:
    sql(url, "CREATE TABLE other (x int)")
    async with session(url, "LOCK TABLE gateway_ledger IN ACCESS EXCLUSIVE MODE"):
        start = time.monotonic()
        detail = await refused(ledger.append([ROW]))
        assert 1.8 < time.monotonic() - start < 3
        assert "statement timeout" in detail

    assert await calls(ledger) == 0


@pytest.mark.fault("P-4")
class TestClashes:
    async def test_a_deadlock_is_tried_again(self, url: str, ledger: PostgresLedger) -> None:
        first, second = ROW._replace(run_id="a"), ROW._replace(run_id="b")
        insert = (
            "INSERT INTO gateway_ledger SELECT '{}', attempt, at_ms, tenant, key_id, user_id, session_id, "
            "agent, model, endpoint, provider, served, kind, input, output, cached, cache_write, reasoning, "
            "cost_micro, priced, request_id, tags FROM gateway_ledger WHERE run_id = 'run_1'"
        )
        await ledger.append([ROW])
        async with session(url, insert.format("b")) as other:
            writing = asyncio.ensure_future(ledger.append([first, second]))
            await self._waits(url)
            await other.execute(insert.format("a"))
            await other.execute("COMMIT")
            await writing

        assert await calls(ledger) == 3

    async def test_after_three_repeats_it_is_refused(
        self, url: str, ledger: PostgresLedger
    ) -> None:
        sql(
            url,
            "CREATE FUNCTION clash() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "PERFORM nextval('tries'); RAISE EXCEPTION 'x' USING ERRCODE = '40001'; END $$",
            "CREATE SEQUENCE tries",
            "CREATE TRIGGER clash BEFORE INSERT ON gateway_ledger FOR EACH ROW EXECUTE FUNCTION clash()",
        )

        await refused(ledger.append([ROW]))

        assert sql(url, "SELECT last_value FROM tries") == "4\n"
        assert await calls(ledger) == 0

    async def _waits(self, url: str) -> None:
        async with asyncio.timeout(2):
            while sql(url, "SELECT count(*) FROM pg_locks WHERE NOT granted") == "0\n":
                await asyncio.sleep(0.01)


@pytest.mark.fault("P-5")
class TestConnections:
    async def test_never_more_than_four_are_open(self, url: str, ledger: PostgresLedger) -> None:
        most = 0

        async def count() -> None:
            nonlocal most
            while True:
                found = await asyncio.to_thread(sql, url, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'llm-gateway'")  # fmt: skip
                most = max(most, int(found))

        counting = asyncio.ensure_future(count())
        await asyncio.gather(*(ledger.append([ROW._replace(run_id=f"r{n}")]) for n in range(60)))
        counting.cancel()
        await asyncio.gather(counting, return_exceptions=True)

        assert 1 <= most <= 4
        assert await calls(ledger) == 60

    async def test_a_full_server_refuses_in_time(self, url: str) -> None:
        ledger = PostgresLedger(url)
        held = [await driver.connect(url) for _ in range(12)]
        try:
            assert "TooManyConnections" in await refused(ledger.append([ROW]))
        finally:
            for connection in held:
                connection.terminate()

        await comes_back(lambda: ledger.append([ROW]))
        assert await calls(ledger) == 1
        await ledger.aclose()


@pytest.mark.fault("P-6")
async def test_a_server_that_takes_no_writes_is_read_and_written_to_afterwards(
    server: PostgresServer, ledger: PostgresLedger
) -> None:
    await ledger.append([ROW])
    server.restart(default_transaction_read_only="on")
    try:
        assert await comes_back(lambda: calls(ledger)) == 1
        assert "ReadOnly" in await refused(ledger.append([ROW._replace(attempt=2)]))
        assert await calls(ledger) == 1
    finally:
        server.restart(default_transaction_read_only="off")

    await comes_back(lambda: ledger.append([ROW._replace(attempt=2)]))
    assert await calls(ledger) == 2


@pytest.mark.fault("P-6")
async def test_a_full_disk_is_read_and_written_to_afterwards(
    url: str, ledger: PostgresLedger
) -> None:
    await ledger.append([ROW])
    sql(
        url,
        "CREATE FUNCTION full_up() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$",
        "CREATE TRIGGER full_up BEFORE INSERT ON gateway_ledger EXECUTE FUNCTION full_up()",
    )

    assert "DiskFull" in await refused(ledger.append([ROW._replace(attempt=2)]))
    assert await calls(ledger) == 1

    sql(url, "DROP TRIGGER full_up ON gateway_ledger")
    await ledger.append([ROW._replace(attempt=2)])
    assert await calls(ledger) == 2


@pytest.mark.fault("P-7")
class TestLostWhileIdle:
    async def test_nobody_notices(self, url: str, ledger: PostgresLedger) -> None:
        for number in range(5):
            await asyncio.gather(*(calls(ledger) for _ in range(4)))
            kick(url)
            await ledger.append([ROW._replace(attempt=number + 1)])
            kick(url)
            assert await calls(ledger) == number + 1

    async def test_nobody_notices_a_wire_that_is_cut(
        self, link: tuple[Link, PostgresLedger]
    ) -> None:
        wire, ledger = link
        for _ in range(5):
            wire.cut()
            assert await calls(ledger) == 0


@pytest.mark.fault("P-11")
@pytest.mark.bug("K15")
@pytest.mark.parametrize("word", [b"COMMIT", b"INSERT INTO gateway_ledger", b"BEGIN"])
async def test_a_lost_reply_leaves_one_row(link: tuple[Link, PostgresLedger], word: bytes) -> None:
    wire, ledger = link
    wire.cut_reply_to(word)

    await ledger.append([ROW, ROW._replace(attempt=2)])

    assert wire.cuts == 1
    assert await calls(ledger) == 2
