"""A connection carries another request only when nothing of the last one is left on it."""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.upstream.client import Endpoint
from gateway.upstream.http1.endpoint import Http1Endpoint
from gateway.upstream.http1.pool import Pool
from tests.support.outgoing import (
    JSON,
    all_gone,
    client,
    facts,
    failure,
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
    Script,
    ScriptedUpstream,
    answering,
    chunk,
    ok,
    until,
    upstream,
)

LOOPS = ("asyncio", "uvloop")
ENDS = pytest.mark.parametrize("end", [Peer.fin, Peer.rst])


def pool_of(endpoint: Endpoint) -> Pool:
    assert isinstance(endpoint, Http1Endpoint)
    return endpoint.pool


async def test_the_connection_used_last_is_used_first() -> None:
    async with playing("fast", answering(ok())) as (up, to):
        await asyncio.gather(*(whole(to) for _ in range(3)))
        before = [len(peer.requests) for peer in up.peers]
        for _ in range(5):
            await whole(to)

        after = [len(peer.requests) for peer in up.peers]
        assert sorted(b - a for a, b in zip(before, after, strict=True)) == [0, 0, 5]


async def first(peer: Peer) -> None:
    """Answer one request, and keep the connection."""
    await peer.request()
    await peer.send(ok())
    await peer.hang()


TLS = pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])


@asynccontextmanager
async def serving(
    *scripts: Script, tls: Path | None
) -> AsyncGenerator[tuple[ScriptedUpstream, Endpoint]]:
    context = Authority.made(tls).server("localhost") if tls else None
    async with upstream(*scripts, tls=context) as up, client() as out:
        yield up, out.endpoint(spec(up.url, verify_tls=False))


@pytest.mark.fault("U-15")
@pytest.mark.parametrize("size", [8, 15_000, 2_000_000])
async def test_a_connection_that_dies_as_it_is_reused_costs_one_quiet_repeat(size: int) -> None:
    body = b"{}".ljust(size)
    async with serving(first, answering(ok(b"again")), tls=None) as (up, to):
        await whole(to)
        up.peers[0].slam()  # the gateway has not yet been told
        answer = await post(to, body)

        assert await answer.read_all(10) == b"again"
        assert answer.repeated
        assert [request.body for request in up.requests] == [b"{}", body]


@pytest.mark.fault("U-15")
@pytest.mark.parametrize("size", [8, 15_000, 2_000_000])
async def test_a_tls_connection_that_is_closed_as_it_is_reused_costs_one_quiet_repeat(
    tmp_path: Path, size: int
) -> None:
    """As servers do it: the notice that TLS ends, and the end, both under way when the request leaves."""

    def accepted() -> ssl.SSLSocket:
        raw, _ = listening.accept()
        return context.wrap_socket(raw, server_side=True)

    def answered(sock: ssl.SSLSocket, length: int, answer: bytes) -> None:
        with sock.makefile("rb") as lines:
            while lines.readline() != b"\r\n":
                pass
            assert len(lines.read(length)) == length
        sock.sendall(answer)

    def served_again(length: int) -> None:
        with accepted() as sock:
            answered(sock, length, ok(b"again"))

    context = Authority.made(tmp_path).server("localhost")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        async with client() as out:
            port = listening.getsockname()[1]
            to = out.endpoint(spec(f"https://127.0.0.1:{port}", verify_tls=False))
            request = asyncio.create_task(whole(to))
            closing = await asyncio.to_thread(accepted)
            await asyncio.to_thread(answered, closing, 2, ok())
            assert await request == b"{}"

            again = asyncio.create_task(asyncio.to_thread(served_again, size))
            await asyncio.sleep(0)
            closing.setblocking(False)
            with pytest.raises(ssl.SSLWantReadError):
                closing.unwrap()
            closing.close()
            answer = await post(to, b"{}".ljust(size))  # sent before the loop can hear of the end
            assert answer.repeated
            assert await answer.read_all(10) == b"again"
            await again


@TLS
@ENDS
@pytest.mark.fault("U-16")
@pytest.mark.bug("K15")
async def test_what_the_upstream_had_is_not_sent_again_in_silence(
    tmp_path: Path, end: Callable[[Peer], None], tls: bool
) -> None:
    """It may have been begun, and then it is billed: whoever retries must reserve and account for it."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(ok())
        await peer.request()
        end(peer)

    async with serving(script, tls=tmp_path if tls else None) as (up, to):
        await whole(to)
        error = await failure(post(to))

        assert facts(error) == ("upstream_unavailable", "first_byte", True)
        assert len(up.requests) == 2


@pytest.mark.fault("U-15")
async def test_all_stale_connections_cost_one_repeat_each_at_most() -> None:
    async with upstream(first) as up, client() as out:
        to = out.endpoint(spec(up.url))
        await asyncio.gather(*(whole(to) for _ in range(20)))
        up.scripts = (answering(ok(b"2")),)
        for peer in up.peers:
            peer.slam()

        assert await asyncio.gather(*(whole(to) for _ in range(20))) == [b"2"] * 20
        assert len(up.requests) == 40


@pytest.mark.fault("U-15")
async def test_the_repeat_gets_a_connection_even_when_the_pool_is_full() -> None:
    async with upstream(first) as up, client() as out:
        to = out.endpoint(spec(up.url, max_connections=2))
        await asyncio.gather(*(whole(to) for _ in range(2)))
        up.scripts = (answering(ok(b"2")),)
        for peer in up.peers:
            peer.slam()

        assert await asyncio.gather(*(whole(to) for _ in range(6))) == [b"2"] * 6
        assert pool_of(to).used <= 2


@ENDS
@pytest.mark.fault("U-15", "U-16")
async def test_a_request_is_not_repeated_after_a_byte_of_its_answer(
    end: Callable[[Peer], None],
) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(ok())
        await peer.request()
        await peer.send(b"H")
        end(peer)

    async with playing("fast", script) as (up, to):
        await whole(to)
        error = await failure(post(to))

        assert facts(error) == ("upstream_unavailable", "first_byte", True)
        assert len(up.requests) == 2


@pytest.mark.fault("U-16")
async def test_a_fresh_connection_that_dies_is_not_repeated() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        peer.rst()

    async with playing("fast", script) as (up, to):
        assert (await failure(post(to))).code == "upstream_unavailable"
        assert len(up.peers) == 1


async def test_an_upload_is_not_repeated() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(ok())
        await peer.read(10)
        peer.rst()

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b"p" * 1000
            await asyncio.sleep(0.005)

    async with playing("fast", script) as (up, to):
        await whole(to)
        error = await failure(to.send(b"POST", b"/files", JSON, pieces(), now() + 20))

        assert (error.code, error.phase, error.sent) == ("upstream_unavailable", "send", True)
        assert len(up.peers) == 1


@ENDS
async def test_a_connection_that_the_upstream_closes_while_idle_leaves_the_pool(
    end: Callable[[Peer], None],
) -> None:
    go_on = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(ok())
        await go_on.wait()
        end(peer)

    async with playing("fast", script) as (up, to):
        await whole(to)
        assert (pool_of(to).idle, pool_of(to).used) == (1, 1)
        go_on.set()
        await until(lambda: not up.open)

        await until(lambda: (pool_of(to).idle, pool_of(to).used) == (0, 0))


@pytest.mark.threat("T-16")
@pytest.mark.parametrize(
    "surplus",
    [
        b"x",
        b"H",
        b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\nforeign",
        b"HTTP/1.1 200 OK\r\ncontent-le",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"0\r\n\r\n",
    ],
)
@pytest.mark.parametrize("wire", [ok(b"{}"), STREAM_HEAD + chunk(b"{}") + LAST_CHUNK])
@pytest.mark.parametrize("later", [False, True], ids=["at once", "later"])
@pytest.mark.parametrize("transport", ["fast", "httpx"])
async def test_surplus_bytes_end_the_connection(
    transport: str, wire: bytes, surplus: bytes, later: bool
) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        if later:
            await peer.send(wire)
            await asyncio.sleep(0.02)
            await peer.send(surplus)
        else:
            await peer.send(wire + surplus)
        await peer.hang()

    async with playing(transport, script, answering(ok(b"own"))) as (up, to):
        assert await whole(to) == b"{}"
        await until(lambda: up.peers[0].ended_at is not None)

        assert await whole(to) == b"own"


@pytest.mark.threat("T-16")
async def test_surplus_after_a_head_answer_ends_the_connection() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\nsurplus")
        await peer.hang()

    async with playing("fast", script, answering(ok(b"own"))) as (up, to):
        answer = await to.send(b"HEAD", b"/x", (), None, now() + 20)
        assert await answer.read() == b""
        await all_gone(up, now())

        assert await whole(to) == b"own"


@pytest.mark.parametrize(
    "wire",
    [
        ok(b"{}", b"connection: close"),
        ok(b"{}").replace(b"1.1", b"1.0"),
    ],
)
async def test_a_connection_that_the_upstream_will_close_is_not_kept(wire: bytes) -> None:
    async with playing("fast", answering(wire)) as (up, to):
        for _ in range(3):
            assert await whole(to) == b"{}"

        assert len(up.peers) == 3
        assert pool_of(to).used == 0


async def test_an_idle_connection_is_closed_before_the_upstream_would() -> None:
    async with (
        upstream(answering(ok(b"{}", b"keep-alive: timeout=1, max=9"))) as up,
        client() as out,
    ):
        to = out.endpoint(spec(up.url))
        await whole(to)
        began = now()
        await until(lambda: not up.open)

        assert 0.3 < now() - began < 1.0
        assert pool_of(to).used == 0


async def test_a_fully_read_answer_frees_its_connection_before_it_is_read() -> None:
    async with playing("fast", answering(ok(b"{}"))) as (up, to):
        first = await post(to)
        second = await post(to)

        assert len(up.peers) == 1
        assert await first.read_all(10) == await second.read_all(10) == b"{}"


async def test_equal_settings_share_connections_and_others_do_not() -> None:
    async with upstream(answering(ok())) as up, client() as out:
        await whole(out.endpoint(spec(up.url)))
        await whole(out.endpoint(spec(up.url + "/v1")))
        assert len(up.peers) == 1

        other_key = ((b"authorization", b"Bearer sk-other"),)
        await whole(out.endpoint(spec(up.url, headers=other_key)))
        assert len(up.peers) == 2
        assert {r.header(b"authorization") for r in up.peers[0].requests} == {b"Bearer sk-secret"}
        assert {r.header(b"authorization") for r in up.peers[1].requests} == {b"Bearer sk-other"}


@pytest.mark.parametrize("transport", ["fast", "httpx"])
async def test_endpoints_that_are_not_retained_close_as_they_fall_idle(transport: str) -> None:
    gate = asyncio.Event()

    async def script(peer: Peer) -> None:
        while True:
            request = await peer.request()
            if request.body == b"slow":
                await gate.wait()
            await peer.send(ok(request.body))

    async with upstream(script) as up, client() as out:
        kept = out.endpoint(spec(up.url, transport))
        dropped = out.endpoint(spec(up.url, transport, max_connections=7))
        await asyncio.gather(whole(kept), whole(dropped), whole(dropped))
        slow = asyncio.create_task(whole(dropped, b"slow"))
        await until(lambda: any(request.body == b"slow" for request in up.requests))
        out.retain([kept])
        gate.set()

        assert await slow == b"slow"
        assert await whole(dropped, b"still") == b"still"
        assert await whole(kept, b"kept") == b"kept"
        await until(lambda: len(up.open) == (1 if transport == "fast" else 0))
