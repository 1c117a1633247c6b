"""Outgoing proxies and HTTP/2, which only the second transport offers."""

import asyncio
from pathlib import Path

import pytest

from tests.support.outgoing import all_gone, client, facts, failure, limits, now, post, spec, whole
from tests.support.scripted_upstream import (
    STREAM_HEAD,
    Authority,
    Peer,
    answering,
    chunk,
    ok,
    once,
    upstream,
)

LOOPS = ("asyncio", "uvloop")


async def tunnel(peer: Peer) -> None:
    """Play a proxy: connect where CONNECT asks, and carry bytes both ways."""
    request = await peer.request()
    host, _, port = request.target.partition(b":")
    reader, writer = await asyncio.open_connection(host.decode(), int(port))
    await peer.send(b"HTTP/1.1 200 Connection established\r\n\r\n")

    async def back() -> None:
        while data := await reader.read(65_536):
            await peer.send(data)
        peer.fin()

    task = asyncio.create_task(back())
    try:
        while True:
            writer.write(await peer.read(1))
            writer.write(peer.take_rest())
    finally:
        task.cancel()
        writer.close()
        await asyncio.gather(task, writer.wait_closed(), return_exceptions=True)


async def test_a_plain_request_goes_through_the_proxy_alone() -> None:
    async with upstream(answering(ok(b"by proxy"))) as proxy, client() as out:
        proxied = proxy.url.replace("http://", "http://user:pass@")
        to = out.endpoint(spec("http://api.example.com/v1", "httpx", proxy=proxied))

        assert await whole(to) == b"by proxy"
        (request,) = proxy.requests
        assert request.raw.startswith(
            b"POST http://api.example.com/v1/chat/completions HTTP/1.1\r\n"
        )
        assert request.header(b"host") == b"api.example.com"
        assert request.header(b"authorization") == b"Bearer sk-secret"
        assert request.header(b"proxy-authorization") == b"Basic dXNlcjpwYXNz"


async def test_a_tls_request_is_tunnelled_and_the_proxy_sees_no_credential(tmp_path: Path) -> None:
    authority = Authority.made(tmp_path)
    context = authority.server("localhost")
    async with (
        upstream(answering(ok(b"behind")), tls=context) as up,
        upstream(tunnel) as proxy,
        client() as out,
    ):
        to = out.endpoint(spec(up.url, "httpx", proxy=proxy.url, ca_file=authority.ca_file))

        assert await whole(to) == b"behind"
        assert up.requests[0].target == b"/v1/chat/completions"
        assert b"secret" not in bytes(proxy.peers[0].received)


async def test_the_caller_who_leaves_takes_the_tunnel_along(tmp_path: Path) -> None:
    authority = Authority.made(tmp_path)
    script = once(STREAM_HEAD, chunk(b"1"))
    async with (
        upstream(script, tls=authority.server("localhost")) as up,
        upstream(tunnel) as proxy,
        client() as out,
    ):
        to = out.endpoint(spec(up.url, "httpx", proxy=proxy.url, ca_file=authority.ca_file))
        answer = await post(to)
        await answer.read()
        began = now()
        answer.abort()

        await all_gone(proxy, began)


@pytest.mark.parametrize(
    "refusing",
    [
        b"HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 407 Who\r\ncontent-length: 0\r\n\r\n",
        b"garbage\r\n\r\n",
    ],
)
async def test_a_proxy_that_refuses_is_an_upstream_that_cannot_be_reached(refusing: bytes) -> None:
    async with upstream(once(refusing)) as proxy, client() as out:
        to = out.endpoint(spec("https://api.example.com", "httpx", proxy=proxy.url))

        assert facts(await failure(post(to))) == ("upstream_unavailable", "connect", False)


async def test_a_proxy_that_hangs_ends_with_the_connect_limit() -> None:
    async with upstream(once()) as proxy, client() as out:
        settings = {"proxy": proxy.url, "timeouts": limits(connect_s=0.3)}
        to = out.endpoint(spec("https://api.example.com", "httpx", **settings))

        assert facts(await failure(post(to))) == ("upstream_timeout", "connect", False)
        await all_gone(proxy, now())
