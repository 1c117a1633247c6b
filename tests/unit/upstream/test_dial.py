"""Connections go to checked addresses only, and a dead address costs a moment, not the request."""

import asyncio
import socket
from typing import Any

import pytest

from gateway.core.errors import UpstreamError
from gateway.upstream.http1.dial import HEAD_START_S, Race
from gateway.upstream.resolver import Resolver
from tests.support.outgoing import Unanswering, client, failure, now, post, spec, whole
from tests.support.scripted_upstream import answering, ok, upstream

LOOPS = ("asyncio", "uvloop")
Row = tuple[Any, ...]


def names(*addresses: str) -> Resolver:
    def answer(_host: str, _port: None, **_: Any) -> list[Row]:
        return [(0, 0, 0, "", (address, 0)) for address in addresses]

    return Resolver(answer)


async def race(*addresses: str, port: int) -> socket.socket:
    return await Race(asyncio.get_running_loop(), list(addresses), port).run()


async def test_a_dead_address_is_passed_over_at_once() -> None:
    with socket.create_server(("127.0.0.3", 0)) as server:
        port = server.getsockname()[1]
        began = now()
        sock = await race("127.0.0.1", "127.0.0.2", "127.0.0.3", port=port)

        assert sock.getpeername() == ("127.0.0.3", port)
        assert now() - began < HEAD_START_S
        sock.close()


async def test_a_silent_address_is_overtaken_after_a_head_start() -> None:
    with Unanswering() as port, socket.create_server(("127.0.0.2", port)):
        began = now()
        sock = await race("127.0.0.1", "127.0.0.2", port=port)

        assert sock.getpeername() == ("127.0.0.2", port)
        assert HEAD_START_S * 0.9 < now() - began < HEAD_START_S + 1.0
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        sock.close()


async def test_when_no_address_answers_the_last_failure_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

    with pytest.raises(ConnectionRefusedError):
        await race("127.0.0.1", "127.0.0.2", port=port)
    with pytest.raises(OSError, match="no address"):
        await race(port=port)


async def test_a_cancelled_race_closes_every_socket() -> None:
    with Unanswering() as port, Unanswering("127.0.0.2", port):
        started = Race(asyncio.get_running_loop(), ["127.0.0.1", "127.0.0.2"], port)
        task = asyncio.create_task(started.run())
        while len(started._running) < 2:
            await asyncio.sleep(0.005)
        socks = tuple(started._running)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert [sock.fileno() for sock in socks] == [-1, -1]


@pytest.mark.threat("T-1")
@pytest.mark.bug("K29")
@pytest.mark.parametrize("transport", ["fast", "httpx"])
async def test_a_name_that_leads_inside_is_refused_before_a_connection_is_made(
    transport: str,
) -> None:
    async with upstream(answering(ok())) as up, client(names("127.0.0.1")) as out:
        url = f"http://api.example.com:{up.port}"
        error = await failure(post(out.endpoint(spec(url, transport, allow_private=False))))

        assert (error.code, error.phase, error.sent) == ("upstream_unavailable", "connect", False)
        assert up.peers == []
        assert await whole(out.endpoint(spec(url, transport))) == b"{}"


@pytest.mark.threat("T-1")
@pytest.mark.parametrize("transport", ["fast", "httpx"])
@pytest.mark.parametrize("address", ["169.254.169.254", "::ffff:169.254.169.254", "0.0.0.0"])
async def test_a_name_that_leads_to_a_metadata_service_is_always_refused(
    transport: str, address: str
) -> None:
    async with client(names(address)) as out:
        with pytest.raises(UpstreamError) as caught:
            await post(out.endpoint(spec("http://api.example.com", transport)))

        assert caught.value.detail.startswith("egress: ")


@pytest.mark.threat("T-2")
@pytest.mark.parametrize("transport", ["fast", "httpx"])
async def test_the_host_header_stays_the_configured_one(transport: str) -> None:
    async with upstream(answering(ok())) as up, client(names("127.0.0.1")) as out:
        await whole(out.endpoint(spec(f"http://api.example.com:{up.port}", transport)))

        assert up.requests[0].header(b"host") == b"api.example.com:%d" % up.port
