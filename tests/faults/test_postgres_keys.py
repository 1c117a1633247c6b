"""Keys in a Postgres in trouble: callers in threads are answered in time, and no answer is a guess."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager, closing
from typing import TypeVar
from urllib.parse import urlsplit

import pytest

from gateway.config.keys import hash_key, last_four, new_key
from gateway.core.errors import StoreError
from gateway.core.ports import StoredKey
from gateway.stores.postgres.keys import PostgresKeys
from gateway.stores.registry import open_keys
from tests.support.postgres_server import PostgresServer, fresh_schema, running_postgres, sql
from tests.support.tcp_link import Link, linked

BOUNDED_S = 4.0
BACK_S = 5.0
T = TypeVar("T")


def row(key_id: str = "web") -> StoredKey:
    key = new_key()
    return StoredKey("acme", key_id, hash_key(key), last_four(key), None, None, 1.5)


@pytest.fixture(scope="module")
def server() -> Generator[PostgresServer]:
    with running_postgres() as made:
        yield made


@pytest.fixture
def url(server: PostgresServer) -> Generator[str]:
    with fresh_schema(server.url) as made:
        yield made


@asynccontextmanager
async def kept(url: str) -> AsyncGenerator[PostgresKeys]:
    store = await asyncio.to_thread(PostgresKeys, url)
    try:
        yield store
    finally:
        await asyncio.to_thread(store.close)


@pytest.fixture
async def link(url: str) -> AsyncIterator[tuple[Link, PostgresKeys]]:
    """Keys that reach their server over a wire."""
    port = str(urlsplit(url).port)
    async with linked(int(port)) as wire, kept(url.replace(port, str(wire.port))) as store:
        await asyncio.to_thread(store.load)
        yield wire, store


async def refused(call: Callable[[], object], within_s: float = BOUNDED_S) -> None:
    start = time.monotonic()
    with pytest.raises(StoreError) as caught:
        await asyncio.to_thread(call)
    assert time.monotonic() - start < within_s
    assert caught.value.code == "state_unavailable"


async def comes_back(call: Callable[[], T]) -> T:
    async with asyncio.timeout(BACK_S):
        while True:
            try:
                return await asyncio.to_thread(call)
            except StoreError:
                await asyncio.sleep(0.05)


@pytest.mark.fault("P-1")
def test_a_store_opens_while_its_server_is_down() -> None:
    with closing(open_keys("postgres://postgres@127.0.0.1:9/d")) as store:
        for call in (store.load, store.version, lambda: store.create(row())):
            with pytest.raises(StoreError):
                call()


@pytest.mark.fault("P-2")
@pytest.mark.bug("K31")
async def test_a_silent_server_is_given_up_and_heard_when_it_speaks(
    url: str, link: tuple[Link, PostgresKeys]
) -> None:
    wire, store = link
    key = row()
    await asyncio.to_thread(store.create, key)
    wire.freeze()

    await refused(store.version)
    await refused(store.load)
    sql(url, "UPDATE gateway_keys SET revoked = true")
    wire.thaw()

    assert (await comes_back(store.load))[0].revoked


@pytest.mark.fault("P-7")
async def test_nobody_notices_a_connection_that_was_closed_while_idle(
    url: str, link: tuple[Link, PostgresKeys]
) -> None:
    wire, store = link
    for number in range(5):
        wire.cut()
        assert await asyncio.to_thread(store.create, row(str(number)))
        sql(url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'llm-gateway'")  # fmt: skip
        assert len(await asyncio.to_thread(store.load)) == number + 1
    sql(url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'llm-gateway'")  # fmt: skip
    assert await asyncio.to_thread(store.revoke, "acme", "1")


@pytest.mark.fault("P-11")
async def test_a_change_whose_reply_is_lost_is_no_refusal(link: tuple[Link, PostgresKeys]) -> None:
    wire, store = link
    key = row()
    wire.cut_reply_to(b"COMMIT")

    await refused(lambda: store.create(key))

    assert wire.cuts == 1
    assert await comes_back(store.load) == (key,)


@pytest.mark.bug("K31")
async def test_a_change_made_by_hand_counts_as_a_change(url: str) -> None:
    async with kept(url) as store:
        await asyncio.to_thread(store.create, row("a"))
        await asyncio.to_thread(store.create, row("b"))
        versions = [await asyncio.to_thread(store.version)]
        for statement in (
            "UPDATE gateway_keys SET revoked = true WHERE id = 'a'",
            "DELETE FROM gateway_keys WHERE id = 'a'",
            "TRUNCATE gateway_keys",
        ):
            sql(url, statement)
            versions.append(await asyncio.to_thread(store.version))

        assert len(set(versions)) == 4


@pytest.mark.bug("K42")
async def test_a_store_of_a_newer_version_is_refused(url: str) -> None:
    async with kept(url):
        sql(url, "UPDATE gateway_schema SET version = version + 2")

    with pytest.raises(StoreError) as caught:
        await asyncio.to_thread(open_keys, url)

    assert "newer version" in caught.value.detail
