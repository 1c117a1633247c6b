"""Bodies that are sent while they are still being made."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import pytest

from gateway.upstream.client import Endpoint
from tests.support.outgoing import (
    JSON,
    TRANSPORTS,
    all_gone,
    facts,
    failure,
    limits,
    now,
    playing,
    post,
)
from tests.support.scripted_upstream import Peer, ok, once

LOOPS = ("asyncio", "uvloop")
pytestmark = pytest.mark.parametrize("transport", TRANSPORTS)


async def test_an_upload_waits_for_a_slow_upstream(transport: str) -> None:
    made = 0
    paused = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.read(100)
        peer.pause()
        await paused.wait()
        peer.resume()
        await peer.read(19_999_000)
        await peer.send(ok())
        peer.fin()

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal made
        for _ in range(400):
            made += 1
            yield b"p" * 50_000

    async with playing(transport, script) as (_, to):
        task = asyncio.create_task(upload(to, pieces()))
        await asyncio.sleep(0.3)
        stopped_at = made
        assert stopped_at < 300
        await asyncio.sleep(0.1)
        assert made == stopped_at
        paused.set()

        assert await (await task).read_all(10) == b"{}"


async def test_an_early_answer_ends_the_upload(transport: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.read(100)
        await peer.send(b"HTTP/1.1 413 Large\r\ncontent-length: 3\r\n\r\nbig")
        await peer.hang()

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(200):
            yield b"p" * 1000
            await asyncio.sleep(0.005)

    async with playing(transport, script) as (up, to):
        answer = await upload(to, pieces())

        assert (answer.status, await answer.read_all(10)) == (413, b"big")
        await all_gone(up, now())


async def test_an_early_answer_to_a_big_body_is_given_and_the_connection_closed(
    transport: str,
) -> None:
    async def script(peer: Peer) -> None:
        await peer.read(100)
        peer.pause()
        await peer.send(b"HTTP/1.1 413 Large\r\ncontent-length: 3\r\n\r\nbig")
        await asyncio.sleep(0.1)
        peer.resume()
        await peer.hang()

    if transport == "httpx":
        pytest.skip("the library reads only after it has written all")
    async with playing(transport, script) as (up, to):
        answer = await post(to, b"p" * 20_000_000)

        assert (answer.status, await answer.read_all(10)) == (413, b"big")
        await all_gone(up, now(), 1.0)


async def test_a_failing_source_of_an_upload_closes_the_connection(transport: str) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"p"
        await asyncio.sleep(0.01)
        raise EOFError("the client left")

    async with playing(transport, once()) as (up, to):
        with pytest.raises(EOFError):
            await upload(to, pieces())

        await all_gone(up, now())
        assert up.requests == []


async def test_an_upload_that_the_upstream_does_not_take_ends_at_the_limit(transport: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.read(100)
        peer.pause()
        await asyncio.sleep(30)

    async def pieces() -> AsyncIterator[bytes]:
        while True:
            yield b"p" * 50_000

    async with playing(transport, script, timeouts=limits(idle_s=0.3, first_byte_s=0.5)) as (_, to):
        error = await failure(upload(to, pieces()))

        assert facts(error) == ("upstream_timeout", "send", True)


def upload(to: Endpoint, pieces: AsyncIterator[bytes]) -> Coroutine[Any, Any, Any]:
    return to.send(b"POST", b"/v1/files", JSON, pieces, now() + 20)
