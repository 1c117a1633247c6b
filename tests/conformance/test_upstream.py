"""What both transports promise about requests and answers that go well."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from gateway.core.errors import UpstreamError
from gateway.upstream.client import Answer, Endpoint, Timeouts
from tests.support.outgoing import JSON, TRANSPORTS, client, failure, post, spec, whole
from tests.support.scripted_upstream import (
    LAST_CHUNK,
    STREAM_HEAD,
    Peer,
    answering,
    chunk,
    ok,
    once,
    until,
    upstream,
)

LOOPS = ("asyncio", "uvloop")
pytestmark = pytest.mark.parametrize("transport", TRANSPORTS)
LENGTH_2 = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


async def send(endpoint: Endpoint, method: bytes, body: bytes | None = None) -> Answer:
    return await endpoint.send(method, b"/x", (), body, asyncio.get_running_loop().time() + 5)


async def test_sends_what_was_asked_and_nothing_else(transport: str) -> None:
    async with upstream(answering(ok(b'{"a":1}'))) as up, client() as out:
        answer = await post(out.endpoint(spec(up.url, transport)), b'{"q":1}')

        assert await answer.read_all(100) == b'{"a":1}'
        (request,) = up.requests
        assert (request.method, request.target, request.body) == (
            b"POST",
            b"/v1/chat/completions",
            b'{"q":1}',
        )
        assert sorted(request.headers) == [
            (b"accept-encoding", b"identity"),
            (b"authorization", b"Bearer sk-secret"),
            (b"content-length", b"7"),
            (b"content-type", b"application/json"),
            (b"host", b"localhost:%d" % up.port),
            (b"user-agent", b"llm-gateway"),
        ]


async def test_gives_the_head_as_it_came(transport: str) -> None:
    body = b"HTTP/1.1 429 Slow\r\nContent-Type: Text/HTML; charset=x\r\nRetry-After:  3 \r\nX-Two: a\r\nX-Two: b\r\nX-None:\r\ncontent-length: 0\r\n\r\n"
    async with upstream(answering(body)) as up, client() as out:
        answer = await post(out.endpoint(spec(up.url, transport)))

        assert answer.status == 429
        assert answer.content_type == b"text/html"
        assert answer.header(b"retry-after") == b"3"
        assert answer.header(b"x-none") == b""
        assert answer.header(b"x-missing") is None
        assert [v for n, v in answer.headers if n == b"x-two"] == [b"a", b"b"]
        assert await answer.read() == b""
        assert answer.complete
        assert not answer.repeated


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503, 529])
async def test_an_error_status_is_an_ordinary_answer(transport: str, status: int) -> None:
    async with (
        upstream(answering(b"HTTP/1.1 %d X\r\ncontent-length: 3\r\n\r\nbad" % status)) as up,
        client() as out,
    ):
        answer = await post(out.endpoint(spec(up.url, transport)))

        assert (answer.status, await answer.read_all(10)) == (status, b"bad")


@pytest.mark.parametrize(
    ("wire", "body", "complete"),
    [
        (LENGTH_2, b"ok", True),
        (STREAM_HEAD + chunk(b"o") + chunk(b"k") + LAST_CHUNK, b"ok", True),
        (STREAM_HEAD + chunk(b"ok") + b"0\r\nx-trailer: 1\r\n\r\n", b"ok", True),
        (STREAM_HEAD + b"2;ext=1\r\nok\r\n" + LAST_CHUNK, b"ok", True),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + LENGTH_2, b"ok", True),
        (b"HTTP/1.1 103 Hint\r\nlink: </a>\r\n\r\nHTTP/1.1 102 P\r\n\r\n" + LENGTH_2, b"ok", True),
        (b"HTTP/1.1 204 None\r\n\r\n", b"", True),
        (b"HTTP/1.1 304 Same\r\netag: x\r\n\r\n", b"", True),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok", b"ok", True),
        (b"HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nok", b"ok", True),
    ],
)
@pytest.mark.parametrize("pieces", ["whole", "bytes"])
async def test_understands_every_framing(
    transport: str, wire: bytes, body: bytes, complete: bool, pieces: str
) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        if pieces == "whole":
            await peer.send(wire)
        else:
            await peer.drip(wire, 0.0)
        await peer.hang()

    async with upstream(script) as up, client() as out:
        answer = await post(out.endpoint(spec(up.url, transport)))

        assert (await answer.read_all(10), answer.complete) == (body, complete)


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
async def test_a_body_that_ends_by_close_is_not_complete(transport: str, version: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/%b 200 OK\r\ncontent-type: text/plain\r\n\r\nall" % version)
        peer.fin()

    async with upstream(script) as up, client() as out:
        answer = await post(out.endpoint(spec(up.url, transport)))

        assert await answer.read_all(10) == b"all"
        assert not answer.complete


async def test_a_head_request_has_no_body_and_keeps_the_connection_usable(transport: str) -> None:
    async def script(peer: Peer) -> None:
        while True:
            request = await peer.request()
            await peer.send(LENGTH_2 if request.method == b"GET" else LENGTH_2[:-2])

    async with upstream(script) as up, client() as out:
        endpoint = out.endpoint(spec(up.url, transport))
        for method, body in ((b"HEAD", b""), (b"GET", b"ok"), (b"HEAD", b""), (b"GET", b"ok")):
            answer = await send(endpoint, method)
            assert (answer.status, await answer.read_all(10), answer.complete) == (200, body, True)


async def test_a_head_request_that_is_too_late_leaves_no_trace(transport: str) -> None:
    async with upstream(answering(LENGTH_2)) as up, client() as out:
        endpoint = out.endpoint(spec(up.url, transport))
        await send(endpoint, b"GET")
        with pytest.raises(UpstreamError):
            await endpoint.send(b"HEAD", b"/x", (), None, 0.0)

        assert await (await send(endpoint, b"GET")).read_all(10) == b"ok"


@pytest.mark.parametrize(
    ("method", "body", "length"),
    [
        (b"GET", None, None),
        (b"DELETE", None, None),
        (b"POST", None, b"0"),
        (b"POST", b"", b"0"),
        (b"PUT", b"x", b"1"),
        (b"PATCH", b"xy", b"2"),
    ],
)
async def test_a_request_says_its_length_where_it_can_have_a_body(
    transport: str, method: bytes, body: bytes | None, length: bytes | None
) -> None:
    async with upstream(answering(LENGTH_2)) as up, client() as out:
        await (await send(out.endpoint(spec(up.url, transport)), method, body)).read_all(10)

        assert up.requests[0].header(b"content-length") == length


async def test_the_first_bytes_come_before_the_last_are_sent(transport: str) -> None:
    go_on = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(STREAM_HEAD, chunk(b"data: 1\n\n"))
        await go_on.wait()
        await peer.send(chunk(b"data: 2\n\n") + LAST_CHUNK)
        await peer.hang()

    async with upstream(script) as up, client() as out:
        answer = await post(out.endpoint(spec(up.url, transport)))
        assert await answer.read() == b"data: 1\n\n"
        go_on.set()

        assert await answer.read() == b"data: 2\n\n"
        assert await answer.read() == b""
        assert await answer.read() == b""
        assert answer.complete


async def test_the_head_arrives_before_any_body(transport: str) -> None:
    async with upstream(once(STREAM_HEAD)) as up, client() as out:
        answer = await post(out.endpoint(spec(up.url, transport)))

        assert answer.status == 200
        answer.abort()


@pytest.mark.parametrize("size", [1, 20_000, 3_000_000])
async def test_large_bodies_arrive_whole_in_both_directions(transport: str, size: int) -> None:
    async def script(peer: Peer) -> None:
        while True:
            request = await peer.request()
            await peer.send(ok(request.body[::-1]))

    async with upstream(script) as up, client() as out:
        endpoint = out.endpoint(spec(up.url, transport))
        body = bytes(range(256)) * (size // 256) + b"e"
        for _ in range(2):
            assert await whole(endpoint, body, limit=10_000_000) == body[::-1]


async def test_an_upload_goes_out_in_chunks(transport: str) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"one"
        yield b""
        await asyncio.sleep(0)
        yield b"two" * 100_000

    async with upstream(answering(ok())) as up, client() as out:
        endpoint = out.endpoint(spec(up.url, transport))
        for _ in range(2):
            answer = await endpoint.send(
                b"POST", b"/files", JSON, pieces(), asyncio.get_running_loop().time() + 5
            )
            assert await answer.read_all(10) == b"{}"

        assert {request.body for request in up.requests} == {b"one" + b"two" * 100_000}
        assert up.requests[0].header(b"content-length") is None


async def test_one_thousand_requests_at_once(transport: str) -> None:
    many = 1000 if transport == "fast" else 100

    async def script(peer: Peer) -> None:
        while True:
            request = await peer.request()
            await peer.send(ok(request.body))

    async with upstream(script) as up, client() as out:
        endpoint = out.endpoint(spec(up.url, transport, timeouts=Timeouts()))
        bodies = [b'{"n":%d}' % number for number in range(many)]
        assert await asyncio.gather(*(whole(endpoint, b) for b in bodies)) == bodies


async def test_the_bound_on_connections_holds_and_the_rest_wait_in_order(transport: str) -> None:
    gate = asyncio.Event()

    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            await gate.wait()
            await peer.send(ok())

    async with upstream(script) as up, client() as out:
        endpoint = out.endpoint(spec(up.url, transport, max_connections=3))
        tasks = [asyncio.create_task(whole(endpoint)) for _ in range(12)]
        await until(lambda: len(up.requests) == 3)
        gate.set()

        assert await asyncio.gather(*tasks) == [b"{}"] * 12
        assert max(len(up.open), 3) == 3


async def test_too_many_waiting_are_refused_at_once(transport: str) -> None:
    async with upstream(once()) as up, client() as out:
        endpoint = out.endpoint(spec(up.url, transport, max_connections=1, max_waiting=1))
        tasks = [asyncio.create_task(whole(endpoint)) for _ in range(2)]
        await until(lambda: up.requests)

        error = await failure(post(endpoint))

        assert (error.code, error.phase, error.sent) == ("overloaded", "pool", False)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize(
    "target",
    [
        b"",
        b"v1",
        b"http://other/",
        b"//other/",
        b"/a b",
        b"/a\r\nx: y",
        b"/a\0",
        b"/\xc3\xa9",
        b"/a/../b",
        b"/a/./b",
        b"/..",
        b"/a/%2e%2E/b",
        b"/a%2f..%2fb",
        b"/a\\..\\b",
        b"/..;/b",
        b"/a#b",
    ],
)
@pytest.mark.threat("T-1", "T-5")
async def test_a_target_that_could_leave_its_path_is_a_mistake(
    transport: str, target: bytes
) -> None:
    async with upstream(answering(ok())) as up, client() as out:
        with pytest.raises(ValueError, match="target"):
            await post(out.endpoint(spec(up.url, transport)), target=target)

        assert up.peers == []


@pytest.mark.parametrize(
    "target", [b"/", b"/v1/x?api-version=1&y=%20..", b"/a.b/c..d/..e", b"/m:go"]
)
async def test_ordinary_targets_go_out_as_they_are(transport: str, target: bytes) -> None:
    async with upstream(answering(ok())) as up, client() as out:
        await (await post(out.endpoint(spec(up.url, transport)), target=target)).read_all(10)

        assert up.requests[0].target == target


@pytest.mark.parametrize(
    "header",
    [
        (b"x", b"a\r\nb: c"),
        (b"x", b"a\nb"),
        (b"x", b"a\rb"),
        (b"x", b"\0"),
        (b"x\r\ny", b"a"),
        (b"x y", b"a"),
        (b"", b"a"),
        (b"x:", b"a"),
        (b"Host", b"other"),
        (b"content-length", b"9"),
        (b"Transfer-Encoding", b"chunked"),
        (b"connection", b"close"),
        (b"accept-encoding", b"gzip"),
    ],
)
@pytest.mark.threat("T-29")
async def test_a_header_that_could_split_the_request_is_a_mistake(
    transport: str, header: tuple[bytes, bytes]
) -> None:
    async with upstream(answering(ok())) as up, client() as out:
        endpoint = out.endpoint(spec(up.url, transport))
        with pytest.raises(ValueError, match="header"):
            await endpoint.send(
                b"POST", b"/x", [header], b"", asyncio.get_running_loop().time() + 5
            )

        assert up.peers == []


async def test_a_closed_client_sends_nothing(transport: str) -> None:
    async with upstream(answering(ok())) as up:
        async with client() as out:
            endpoint = out.endpoint(spec(up.url, transport))
            await whole(endpoint)
        await until(lambda: not up.open)

        error = await failure(post(endpoint))

        assert (error.code, error.sent) == ("draining", False)
