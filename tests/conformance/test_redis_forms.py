"""Every form of a state address reaches a real server: TCP, a Unix socket, TLS, a password, a database."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
import trustme

from gateway.core.counting import Hold
from gateway.core.errors import StoreError
from gateway.stores.redis.client import Client
from gateway.stores.redis.counters import RedisCounters
from tests.support.outgoing import Background
from tests.support.redis_calls import KEY, PATIENT, ping, using
from tests.support.redis_server import RedisServer, redis_server

PASSWORD = "canary/with:odd@signs"
WRITTEN = "canary%2Fwith%3Aodd%40signs"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with redis_server(tmp_path) as running:
        yield running


@asynccontextmanager
async def tls_before(server: RedisServer, authority: trustme.CA) -> AsyncGenerator[int]:
    """End TLS in front of a server that speaks none; yields the port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    cast("Any", authority.issue_cert("localhost")).configure_cert(context)

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", server.port)

        async def one_way(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            try:
                while data := await source.read(65_536):
                    sink.write(data)
            except OSError:
                pass
            sink.close()

        await asyncio.gather(one_way(reader, far_writer), one_way(far_reader, writer))

    listener = await asyncio.start_server(relay, "127.0.0.1", 0, ssl=context)
    try:
        yield int(listener.sockets[0].getsockname()[1])
    finally:
        listener.close()
        await asyncio.sleep(0.05)


async def test_a_unix_socket(server: RedisServer) -> None:
    async with using(f"unix://{server.folder}/s", PATIENT) as client:
        assert await ping(client) == b"PONG"


async def test_a_database_of_its_own(server: RedisServer) -> None:
    async with using(f"redis://127.0.0.1:{server.port}/3", PATIENT) as client:
        await client.command(KEY, "SET", KEY, "1")

    assert "db3" in server.ask("INFO", "keyspace")


@pytest.mark.bug("K28")
async def test_a_password(server: RedisServer) -> None:
    server.ask("CONFIG", "SET", "requirepass", PASSWORD)
    host = f"127.0.0.1:{server.port}/0"

    async with using(f"redis://:{WRITTEN}@{host}", PATIENT) as client:
        assert await ping(client) == b"PONG"
    for wrong in (f"redis://:{WRITTEN}-canary@{host}", f"redis://{host}"):
        async with using(wrong, PATIENT) as client:
            with pytest.raises(StoreError) as caught:
                await ping(client)
            assert "canary" not in f"{caught.value!r} {caught.value.detail}"
            assert "NOAUTH" in caught.value.detail or "WRONGPASS" in caught.value.detail


async def test_a_user_that_may_do_no_more_than_it_must(server: RedisServer) -> None:
    rules = (
        "on",
        ">pw",
        "~gw:*",
        "-@all",
        "+@connection",
        "+@read",
        "+@write",
        "+@scripting",
        "+time",
    )
    server.ask("ACL", "SETUSER", "gateway", *rules)

    async with using(f"redis://gateway:pw@127.0.0.1:{server.port}/0", PATIENT) as client:
        counters = RedisCounters(client)
        one = Hold("gw:{t}:n", 1, 10)
        assert (await counters.reserve("t", "run", [one], 0.0)).granted
        assert len(await counters.expired("t", 1)) == 1
        assert await counters.settle("t", "run", [one], [1])


async def test_a_server_that_throws_things_away_is_warned_of_once(
    server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    for policy, warnings in (("noeviction", 0), ("allkeys-lru", 1)):
        server.ask("CONFIG", "SET", "maxmemory-policy", policy)
        caplog.clear()
        async with using(server.url, PATIENT) as client:
            await ping(client)
            server.ask("CLIENT", "KILL", "TYPE", "normal")
            await ping(client)

        assert sum(policy in record.getMessage() for record in caplog.records) == warnings


@pytest.mark.bug("K29")
async def test_tls_with_the_authority_that_is_named(server: RedisServer, tmp_path: Path) -> None:
    authority, other = trustme.CA(), trustme.CA()
    for name, made in (("right", authority), ("wrong", other)):
        made.cert_pem.write_to_path(str(tmp_path / f"{name}.pem"))

    async with tls_before(server, authority) as port:
        address = f"rediss://localhost:{port}/0?ssl_ca_certs={tmp_path}"
        async with using(f"{address}/right.pem", PATIENT) as client:
            assert await ping(client) == b"PONG"
        async with using(f"{address}/wrong.pem", PATIENT) as client:
            with pytest.raises(StoreError) as caught:
                await ping(client)
            assert "certificate" in caught.value.detail.lower()
        other_name = f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={tmp_path}/right.pem"
        async with using(other_name, PATIENT) as client:
            with pytest.raises(StoreError):
                await ping(client)


async def test_clients_of_one_address_share_a_connection(server: RedisServer) -> None:
    background = Background()
    clients = [Client(server.url, background.spawn) for _ in range(3)]
    for client in clients:
        await ping(client)
    named = str(server.ask("CLIENT", "LIST")).count("name=gateway")
    await clients[0].aclose()
    await clients[0].aclose()

    assert named == 1
    with pytest.raises(StoreError):
        await ping(clients[0])
    assert await ping(clients[1]) == b"PONG"
    for client in clients:
        await client.aclose()
    await background.join()
