"""What both transports do when the upstream fails: the code, the phase, and the socket closed at once."""

import asyncio
import socket
from collections.abc import Callable

import pytest

from gateway.upstream.client import Endpoint
from tests.support.outgoing import (
    TRANSPORTS,
    Unanswering,
    all_gone,
    client,
    facts,
    failure,
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
    Peer,
    answering,
    chunk,
    ok,
    once,
    upstream,
)

LOOPS = ("asyncio", "uvloop")
pytestmark = pytest.mark.parametrize("transport", TRANSPORTS)
HEAD_5 = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n"


@pytest.mark.fault("U-8")
async def test_a_refused_connection_is_unavailable_and_nothing_was_sent(transport: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
    async with client() as out:
        error = await failure(post(out.endpoint(spec(f"http://127.0.0.1:{port}", transport))))

    assert facts(error) == ("upstream_unavailable", "connect", False)


@pytest.mark.fault("U-9")
@pytest.mark.parametrize(
    ("connect_s", "within_s", "code"),
    [(0.2, 20.0, "upstream_timeout"), (20.0, 0.2, "deadline_exceeded")],
)
async def test_a_connect_that_hangs_ends_in_time(
    transport: str, connect_s: float, within_s: float, code: str
) -> None:
    with Unanswering() as port:
        async with client() as out:
            began = now()
            settings = {"timeouts": limits(connect_s=connect_s)}
            endpoint = out.endpoint(spec(f"http://127.0.0.1:{port}", transport, **settings))
            error = await failure(post(endpoint, within_s=within_s))

            assert facts(error) == (code, "connect", False)
            assert 0.15 < now() - began < 2.0


@pytest.mark.bug("K13")
@pytest.mark.parametrize("within_s", [0.0, -5.0])
async def test_a_request_whose_time_is_up_is_not_sent(transport: str, within_s: float) -> None:
    async with playing(transport, answering(ok())) as (up, to):
        await whole(to)
        error = await failure(post(to, within_s=within_s))

        assert facts(error) == ("deadline_exceeded", "pool", False)
        assert len(up.requests) == 1


@pytest.mark.fault("U-12")
@pytest.mark.parametrize(
    ("first_byte_s", "within_s", "code"),
    [(0.3, 20.0, "upstream_timeout"), (20.0, 0.3, "deadline_exceeded")],
)
async def test_silence_ends_at_the_first_byte_limit(
    transport: str, first_byte_s: float, within_s: float, code: str
) -> None:
    async with playing(transport, once(), timeouts=limits(first_byte_s=first_byte_s)) as (up, to):
        began = now()
        error = await failure(post(to, within_s=within_s))

        assert facts(error) == (code, "first_byte", True)
        assert 0.25 < now() - began < 2.0
        await all_gone(up, now())


@pytest.mark.fault("U-13")
async def test_a_dripped_head_ends_at_the_first_byte_limit(transport: str) -> None:
    async def drip(peer: Peer) -> None:
        await peer.request()
        await peer.drip(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 10_000, 0.02)

    async with playing(transport, drip, timeouts=limits(first_byte_s=0.4)) as (up, to):
        began = now()
        error = await failure(post(to))

        assert facts(error) == ("upstream_timeout", "first_byte", True)
        assert 0.3 < now() - began < 2.0
        await all_gone(up, now())


@pytest.mark.fault("U-13")
async def test_interim_answers_do_not_move_the_first_byte_limit(transport: str) -> None:
    async def drip(peer: Peer) -> None:
        await peer.request()
        while True:
            await peer.send(b"HTTP/1.1 102 Processing\r\n\r\n")
            await asyncio.sleep(0.05)

    async with playing(transport, drip, timeouts=limits(first_byte_s=0.4)) as (_, to):
        assert facts(await failure(post(to))) == ("upstream_timeout", "first_byte", True)


@pytest.mark.fault("U-16")
@pytest.mark.parametrize("part", [b"", b"HTTP/1.1 200 OK\r\ncontent-le"])
@pytest.mark.parametrize("end", [Peer.rst, Peer.fin])
async def test_a_cut_before_the_head_is_unavailable_and_sent(
    transport: str, part: bytes, end: Callable[[Peer], None]
) -> None:
    async def cut(peer: Peer) -> None:
        await peer.request()
        await peer.send(part)
        end(peer)

    async with playing(transport, cut) as (up, to):
        error = await failure(post(to))

        assert facts(error) == ("upstream_unavailable", "first_byte", True)
        assert len(up.peers) == 1


@pytest.mark.fault("U-17", "U-18", "S-1", "S-2")
@pytest.mark.parametrize("end", [Peer.rst, Peer.fin])
@pytest.mark.parametrize(
    "wire", [HEAD_5 + b"abc", STREAM_HEAD + chunk(b"abc"), STREAM_HEAD + b"a\r\nabc"]
)
async def test_a_cut_body_gives_what_came_and_then_says_so(
    transport: str, wire: bytes, end: Callable[[Peer], None]
) -> None:
    go_on = asyncio.Event()

    async def cut(peer: Peer) -> None:
        await peer.request()
        await peer.send(wire)
        await go_on.wait()
        end(peer)

    async with playing(transport, cut) as (_, to):
        answer = await post(to)
        assert await answer.read() == b"abc"
        go_on.set()

        for _ in range(2):
            assert facts(await failure(answer.read())) == ("upstream_truncated", "body", True)
        assert not answer.complete


@pytest.mark.fault("U-17", "U-18")
async def test_a_cut_body_is_never_returned_as_a_whole(transport: str) -> None:
    async def cut(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD_5 + b"abc")
        peer.fin()

    async with playing(transport, cut) as (_, to):
        assert facts(await failure(whole(to))) == ("upstream_truncated", "body", True)


@pytest.mark.fault("U-17")
async def test_a_reset_body_without_a_length_is_cut_too(transport: str) -> None:
    go_on = asyncio.Event()

    async def cut(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\nabc")
        await go_on.wait()
        peer.rst()

    async with playing(transport, cut) as (_, to):
        answer = await post(to)
        assert await answer.read() == b"abc"
        go_on.set()

        assert facts(await failure(answer.read())) == ("upstream_truncated", "body", True)


@pytest.mark.fault("S-8")
async def test_a_cut_at_any_byte_is_noticed(transport: str) -> None:
    wire = STREAM_HEAD + chunk("data: é\n\n".encode()) + chunk(b"data: 2\n\n") + LAST_CHUNK
    step = 1 if transport == "fast" else 7
    for at in range(0, len(wire), step):

        async def cut(peer: Peer, at: int = at) -> None:
            await peer.request()
            await peer.send(wire[:at])
            peer.fin()

        async with upstream(cut) as up, client() as out:
            error = await failure(whole(out.endpoint(spec(up.url, transport))))
            code = "upstream_truncated" if at >= len(STREAM_HEAD) else "upstream_unavailable"
            assert (at, error.code) == (at, code)


@pytest.mark.fault("S-8")
@pytest.mark.parametrize("where", ["in two", "in bytes"])
async def test_pieces_of_any_size_give_the_same_stream(transport: str, where: str) -> None:
    wire = STREAM_HEAD + chunk("data: é\n\n".encode()) + chunk(b"data: 2\n\n") + LAST_CHUNK
    cuts = range(1, len(wire), 1 if transport == "fast" else 5) if where == "in two" else [0]

    async def script(peer: Peer) -> None:
        for at in cuts:
            await peer.request()
            if at:
                await peer.send(wire[:at])
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                await peer.send(wire[at:])
            else:
                await peer.drip(wire, 0.0)
        await peer.hang()

    once_each = script if transport == "fast" else None
    if once_each is None:
        for at in cuts:
            cuts = [at]
            async with upstream(script) as up, client() as out:
                assert (
                    await whole(out.endpoint(spec(up.url, transport)))
                    == "data: é\n\ndata: 2\n\n".encode()
                )
        return
    async with upstream(script) as up, client() as out:
        to = out.endpoint(spec(up.url, transport))
        for _ in cuts:
            assert await whole(to) == "data: é\n\ndata: 2\n\n".encode()
        assert len(up.peers) == 1


@pytest.mark.fault("S-5", "U-20")
async def test_a_stall_ends_at_the_idle_limit(transport: str) -> None:
    wire = STREAM_HEAD + chunk(b"data: 1\n\n")
    async with playing(transport, once(wire), timeouts=limits(idle_s=0.3)) as (up, to):
        answer = await post(to)
        await answer.read()
        answer.touch()
        began = now()
        error = await failure(answer.read())

        assert facts(error) == ("upstream_timeout", "body", True)
        assert 0.2 < now() - began < 2.0
        await all_gone(up, now())


@pytest.mark.fault("U-20")
async def test_an_upstream_that_half_closes_is_not_waited_for(transport: str) -> None:
    async def half(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD_5 + b"abc")
        peer.half_close()
        await peer.hang()

    async with playing(transport, half) as (up, to):
        answer = await post(to)

        assert facts(await failure(answer.read_all(10))) == ("upstream_truncated", "body", True)
        await all_gone(up, now())


@pytest.mark.fault("U-14")
@pytest.mark.bug("K13")
async def test_comments_alone_do_not_keep_a_stream_alive(transport: str) -> None:
    async def comment(peer: Peer) -> None:
        await peer.request()
        await peer.send(STREAM_HEAD)
        while True:
            await peer.send(chunk(b": still here\n\n"))
            await asyncio.sleep(0.05)

    async with playing(transport, comment, timeouts=limits(idle_s=0.4)) as (up, to):
        answer = await post(to)
        began = now()

        async def read_on() -> None:
            while await answer.read():
                pass

        assert facts(await failure(read_on())) == ("upstream_timeout", "body", True)
        assert 0.3 < now() - began < 3.0
        await all_gone(up, now())


async def test_touching_keeps_a_slow_stream_alive(transport: str) -> None:
    async def slow(peer: Peer) -> None:
        await peer.request()
        await peer.send(STREAM_HEAD)
        for _ in range(8):
            await asyncio.sleep(0.1)
            await peer.send(chunk(b"x"))
        await peer.send(LAST_CHUNK)

    async with playing(transport, slow, timeouts=limits(idle_s=0.5)) as (_, to):
        answer = await post(to)
        got = b""
        while data := await answer.read():
            answer.touch()
            got += data

        assert got == b"x" * 8


@pytest.mark.fault("S-12")
async def test_a_slow_reader_is_not_taken_for_a_stalled_upstream(transport: str) -> None:
    wire = STREAM_HEAD + chunk(b"1") + chunk(b"2")
    go_on = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(wire)
        await go_on.wait()
        await peer.send(LAST_CHUNK)

    async with playing(transport, script, timeouts=limits(idle_s=0.3)) as (_, to):
        answer = await post(to)
        await asyncio.sleep(0.9)
        go_on.set()

        assert await answer.read_all(10) == b"12"


@pytest.mark.fault("U-14")
async def test_a_dripped_body_ends_at_the_deadline(transport: str) -> None:
    async def drip(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
        await peer.drip(b"y" * 1000, 0.05)

    async with playing(transport, drip) as (up, to):
        began = now()
        error = await failure(read_whole_within(to, 0.5))

        assert facts(error) == ("deadline_exceeded", "body", True)
        assert 0.4 < now() - began < 2.0
        await all_gone(up, now())


async def read_whole_within(to: Endpoint, within_s: float) -> bytes:
    return await (await post(to, within_s=within_s)).read_all(1 << 20)
