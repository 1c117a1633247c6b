"""A caller that leaves takes its connection with it, whatever it was waiting for."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from gateway.core.errors import UpstreamError
from gateway.upstream.client import Answer, Endpoint
from tests.support.outgoing import (
    JSON,
    TRANSPORTS,
    Unanswering,
    all_gone,
    client,
    limits,
    now,
    playing,
    post,
    spec,
    whole,
)
from tests.support.scripted_upstream import (
    LAST_CHUNK,
    STREAM_HEAD,
    Authority,
    Peer,
    answering,
    chunk,
    ok,
    once,
    until,
    upstream,
)

LOOPS = ("asyncio", "uvloop")
pytestmark = [
    pytest.mark.parametrize("transport", TRANSPORTS),
    pytest.mark.bug("K05"),
    pytest.mark.threat("T-16"),
]


async def cancel(task: "asyncio.Task[object]") -> float:
    """Cancel a task, and return when it was."""
    began = now()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return began


async def read_on(to: Endpoint) -> None:
    answer = await post(to)
    while await answer.read():
        answer.touch()


async def test_leaving_while_the_first_byte_is_awaited(transport: str) -> None:
    async with playing(transport, once()) as (up, to):
        task = asyncio.create_task(read_on(to))
        await until(lambda: up.requests)

        await all_gone(up, await cancel(task))


async def test_leaving_while_the_head_is_coming(transport: str) -> None:
    async with playing(transport, once(b"HTTP/1.1 200 OK\r\ncontent-")) as (up, to):
        task = asyncio.create_task(read_on(to))
        await until(lambda: up.peers and up.peers[0].sent_bytes)
        await asyncio.sleep(0.02)

        await all_gone(up, await cancel(task))


async def test_leaving_while_the_body_is_coming(transport: str) -> None:
    async with playing(transport, once(STREAM_HEAD, chunk(b"data: 1\n\n"))) as (up, to):
        task = asyncio.create_task(read_on(to))
        await until(lambda: up.peers and up.peers[0].sent_bytes > len(STREAM_HEAD))
        await asyncio.sleep(0.02)

        await all_gone(up, await cancel(task))


@pytest.mark.parametrize("pieces", [(), (chunk(b"data: 1\n\n"),)])
async def test_aborting_an_answer_closes_at_once_and_twice_is_once(
    transport: str, pieces: tuple[bytes, ...]
) -> None:
    async with playing(transport, once(STREAM_HEAD, *pieces)) as (up, to):
        answer = await post(to)
        if pieces:
            await answer.read()
        began = now()
        answer.abort()
        answer.abort()

        await all_gone(up, began)
        with pytest.raises(UpstreamError):
            await answer.read()


async def test_aborting_after_the_end_harms_nobody_else(transport: str) -> None:
    async def script(peer: Peer) -> None:
        while True:
            request = await peer.request()
            await peer.send(STREAM_HEAD, chunk(request.body), LAST_CHUNK)

    async with playing(transport, script) as (_, to):
        old = await post(to, b"old")
        assert await old.read_all(10) == b"old"
        new = await post(to, b"new")
        old.abort()

        assert await new.read_all(10) == b"new"
        assert await old.read() == b""


# The library leaves it to uvloop's finaliser to close a socket that was still connecting.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_leaving_while_the_connection_is_made(transport: str) -> None:
    with Unanswering() as port:
        async with client() as out:
            before = sockets()
            task = asyncio.create_task(
                read_on(out.endpoint(spec(f"http://127.0.0.1:{port}", transport)))
            )
            await until(lambda: sockets() > before)
            began = await cancel(task)

            await until(lambda: sockets() <= before)
            assert now() - began < 0.25


async def test_leaving_while_tls_is_agreed_on(transport: str) -> None:
    async with upstream(lambda peer: peer.hang()) as up, client() as out:
        url = up.url.replace("http:", "https:")
        task = asyncio.create_task(read_on(out.endpoint(spec(url, transport))))
        await until(lambda: up.peers and up.peers[0].received)

        await all_gone(up, await cancel(task))


async def test_leaving_while_the_body_is_sent(transport: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.read(100)
        peer.pause()
        await asyncio.sleep(0.2)
        peer.resume()
        await peer.hang()

    async with playing(transport, script) as (up, to):
        task = asyncio.create_task(whole(to, b"x" * 30_000_000))
        await until(lambda: up.peers and up.peers[0].received)

        await all_gone(up, await cancel(task), 0.5)


async def test_leaving_while_an_upload_waits_for_its_source(transport: str) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"one"
        await asyncio.sleep(60)

    async with playing(transport, once()) as (up, to):
        task = asyncio.create_task(to.send(b"POST", b"/files", JSON, pieces(), now() + 60))
        await until(lambda: up.peers and b"one" in up.peers[0].received)

        await all_gone(up, await cancel(task))


async def test_leaving_while_waiting_for_a_connection_gives_the_turn_on(transport: str) -> None:
    gate = asyncio.Event()

    async def script(peer: Peer) -> None:
        while True:
            request = await peer.request()
            await gate.wait()
            await peer.send(ok(request.body))

    async with playing(transport, script, max_connections=1) as (up, to):
        first = asyncio.create_task(whole(to, b"1"))
        await until(lambda: up.requests)
        second = asyncio.create_task(whole(to, b"2"))
        third = asyncio.create_task(whole(to, b"3"))
        await asyncio.sleep(0.02)
        await cancel(second)
        gate.set()

        assert await asyncio.gather(first, third) == [b"1", b"3"]
        assert [request.body for request in up.requests] == [b"1", b"3"]


async def test_leaving_the_only_connection_gives_it_to_the_next(transport: str) -> None:
    async with playing(transport, once(), answering(ok(b"2")), max_connections=1) as (up, to):
        first = asyncio.create_task(whole(to))
        await until(lambda: up.requests)
        second = asyncio.create_task(whole(to))
        await asyncio.sleep(0.02)
        await cancel(first)

        assert await second == b"2"


async def test_a_waiter_whose_time_is_up_gives_the_turn_on(transport: str) -> None:
    gate = asyncio.Event()

    async def script(peer: Peer) -> None:
        while True:
            request = await peer.request()
            await gate.wait()
            await peer.send(ok(request.body))

    async with upstream(script) as up, client() as out:
        settings = {"max_connections": 1}
        hasty = out.endpoint(spec(up.url, transport, timeouts=limits(pool_s=0.2), **settings))
        to = out.endpoint(spec(up.url, transport, **settings)) if transport == "fast" else hasty
        first = asyncio.create_task(whole(to, b"1"))
        await until(lambda: up.requests)
        with pytest.raises(UpstreamError) as caught:
            await whole(hasty, b"2")
        with pytest.raises(UpstreamError) as late:
            await post(to, b"3", within_s=0.1)
        gate.set()

        assert (caught.value.code, caught.value.phase, caught.value.sent) == (
            "overloaded",
            "pool",
            False,
        )
        assert (late.value.code, late.value.phase, late.value.sent) == (
            "deadline_exceeded",
            "pool",
            False,
        )
        assert await first == b"1"
        assert await whole(to, b"4") == b"4"


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
async def test_a_storm_of_leaving_callers_leaves_nothing_behind(
    transport: str, tls: bool, tmp_path: Path
) -> None:
    """Ten thousand callers on 50 connections leave at any moment; each that stays gets its own answer."""
    many = 300 if transport == "httpx" else 2_000 if tls else 10_000
    authority = Authority.made(tmp_path)
    context = authority.server("localhost") if tls else None
    dice = random.Random(7)

    async def script(peer: Peer) -> None:
        while True:
            request = await peer.request()
            await peer.send(STREAM_HEAD)
            await asyncio.sleep(0)
            for _ in range(3):
                await peer.send(chunk(request.body))
            await peer.send(LAST_CHUNK)

    async def caller(to: Endpoint, number: int) -> str:
        marker = b"<%d>" % number
        answer: Answer = await post(to, marker, within_s=200)
        try:
            body = await answer.read_all(1000)
        finally:
            answer.abort()
        assert body == marker * 3
        return "answered"

    async def leaving(to: Endpoint, number: int) -> str:
        task = asyncio.create_task(caller(to, number))
        for _ in range(dice.choice((0, 1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 40))):
            await asyncio.sleep(0)
        if dice.random() < 0.9:
            task.cancel()
        try:
            return await task
        except asyncio.CancelledError:
            return "left"

    tasks_before, sockets_before = len(asyncio.all_tasks()), sockets()
    async with upstream(script, tls=context) as up:
        async with client() as out:
            settings = {"max_connections": 50, "max_waiting": 10_000, "ca_file": authority.ca_file}
            to = out.endpoint(spec(up.url, transport, timeouts=limits(pool_s=200), **settings))
            ends: list[str] = []
            for start in range(0, many, 500):
                numbers = range(start, min(start + 500, many))
                ends += await asyncio.gather(*(leaving(to, number) for number in numbers))

            assert len(ends) == many
            assert ends.count("left") > many / 3
            assert await asyncio.gather(*(whole(to, b"!") for _ in range(60))) == [b"!!!"] * 60
        await until(lambda: not up.open)
    await until(lambda: len(asyncio.all_tasks()) <= tasks_before)
    await until(lambda: sockets() <= sockets_before + 1)


def sockets() -> int:
    """Count the sockets of this process; loops open other sockets of their own as they need them."""
    found = 0
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            found += str(link.readlink()).startswith("socket:")
    return found
