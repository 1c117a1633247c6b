"""The limits of a connection cost no timer per request, and still hold to the moment."""

import asyncio
from typing import Any, cast

import pytest

from gateway.upstream.client import Timeouts
from gateway.upstream.http1.connection import Connection

LOOPS = ("asyncio", "uvloop")
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Owner:
    keep_alive_s = 20.0

    def __init__(self) -> None:
        self.events: list[str] = []

    def release(self, connection: Connection) -> None:
        self.events.append("release")
        connection.rest()

    def closed(self, connection: Connection) -> None:
        self.events.append("closed")

    def gone(self, connection: Connection) -> None:
        self.events.append("gone")


class Silent:
    """A transport that takes everything."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.calls: list[str] = []

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def writelines(self, pieces: tuple[bytes, ...]) -> None:
        self.written += pieces

    def get_write_buffer_size(self) -> int:
        return 0

    def __getattr__(self, name: str) -> Any:
        return lambda: self.calls.append(name)


@pytest.fixture
async def parts() -> tuple[Connection, Owner, Silent]:
    owner, transport = Owner(), Silent()
    connection = Connection(owner, asyncio.get_running_loop(), bytearray(65_536))
    connection.connection_made(cast("asyncio.BaseTransport", transport))
    return connection, owner, transport


def feed(connection: Connection, data: bytes) -> None:
    buffer = connection.get_buffer(-1)
    buffer[: len(data)] = data
    connection.buffer_updated(len(data))


async def test_a_thousand_requests_arm_one_timer(parts: tuple[Connection, Owner, Silent]) -> None:
    connection, owner, _ = parts
    connection.rest()
    timers: set[int] = set()
    for _ in range(1000):
        deadline = asyncio.get_running_loop().time() + 600
        answer = connection.start(b"GET / HTTP/1.1\r\n\r\n", b"", Timeouts(), deadline)
        feed(connection, ANSWER)
        assert await answer.read_all(10) == b"ok"
        timers.add(id(connection._timer))

    assert len(timers) == 1
    assert owner.events == ["release"] * 1000
    connection.close()


async def test_a_small_request_is_one_write_and_a_big_body_is_not_copied(
    parts: tuple[Connection, Owner, Silent],
) -> None:
    connection, _, transport = parts
    big = b"b" * 100_000
    for body in (b"small", big):
        connection.start(b"HEAD", body, Timeouts(), asyncio.get_running_loop().time() + 60)
        feed(connection, ANSWER)

    assert transport.written[:2] == [b"HEADsmall", b"HEAD"]
    assert transport.written[2] is big
    connection.close()


async def test_closing_twice_gives_the_slot_once(parts: tuple[Connection, Owner, Silent]) -> None:
    connection, owner, transport = parts
    connection.close()
    connection.close()
    connection.connection_lost(None)

    assert owner.events == ["closed", "gone"]
    assert transport.calls == ["abort"]


async def test_a_connection_that_comes_up_after_it_was_given_up_is_aborted() -> None:
    owner, transport = Owner(), Silent()
    connection = Connection(owner, asyncio.get_running_loop(), bytearray(65_536))
    connection.close()
    connection.connection_made(cast("asyncio.BaseTransport", transport))

    assert transport.calls == ["abort"]


async def test_only_a_connected_connection_starts() -> None:
    connection = Connection(Owner(), asyncio.get_running_loop(), bytearray(65_536))
    with pytest.raises(RuntimeError):
        connection.start(b"", b"", Timeouts(), 0.0)
