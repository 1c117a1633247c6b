"""A client of the gateway's own with limits that bind nothing, and what tests of both transports share."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from gateway.core.errors import UpstreamError
from gateway.upstream.client import Answer, Client, Endpoint, EndpointSpec, Timeouts
from gateway.upstream.resolver import Resolver
from tests.support.scripted_upstream import (
    Script,
    ScriptedUpstream,
    answering,
    ok,
    until,
    upstream,
)

TRANSPORTS = ("fast", "httpx")
JSON = ((b"content-type", b"application/json"),)
PATIENT = Timeouts(connect_s=20.0, pool_s=20.0, first_byte_s=20.0, idle_s=20.0)


class Background:
    """Starts the client's background work and waits for it at the end."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Start work."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def join(self) -> None:
        """Wait until nothing runs."""
        await asyncio.gather(*self._tasks)


@asynccontextmanager
async def client(resolver: Resolver | None = None) -> AsyncGenerator[Client]:
    """Make a client and close it."""
    background = Background()
    made = Client(resolver=resolver, spawn=background.spawn)
    try:
        yield made
    finally:
        await background.join()
        await made.aclose()


def spec(url: str, transport: str = "fast", **settings: Any) -> EndpointSpec:
    """Write the settings of an endpoint with a credential and limits that bind nothing."""
    known = EndpointSpec(
        url,
        headers=((b"authorization", b"Bearer sk-secret"),),
        transport=transport,
        timeouts=PATIENT,
    )
    return replace(known, **settings)


async def post(
    endpoint: Endpoint,
    body: bytes = b"{}",
    target: bytes = b"/v1/chat/completions",
    within_s: float = 20.0,
) -> Answer:
    """Send a JSON request."""
    deadline = asyncio.get_running_loop().time() + within_s
    return await endpoint.send(b"POST", target, JSON, body, deadline)


async def whole(endpoint: Endpoint, body: bytes = b"{}", limit: int = 1 << 20) -> bytes:
    """Send a JSON request and return the body of its answer."""
    return await (await post(endpoint, body)).read_all(limit)


def facts(error: UpstreamError) -> tuple[str, str, bool]:
    """Return what callers act on."""
    return error.code, error.phase, error.sent


def limits(**changes: float) -> Timeouts:
    """Write limits that bind nothing but the named ones."""
    return replace(PATIENT, **changes)


def now() -> float:
    """Return the time on the clock of deadlines."""
    return asyncio.get_running_loop().time()


@asynccontextmanager
async def playing(
    transport: str, *scripts: Script, **settings: Any
) -> AsyncGenerator[tuple[ScriptedUpstream, Endpoint]]:
    """Serve scripts and give an endpoint to them; afterwards the next request must still work."""
    async with upstream(*scripts) as up, client() as out:
        yield up, out.endpoint(spec(up.url, transport, **settings))
        up.scripts = (answering(ok(b"probe")),)
        probe = await post(out.endpoint(spec(up.url, transport, **settings)), b"probe")
        assert await probe.read_all(100)


async def all_gone(up: ScriptedUpstream, since: float, within_s: float = 1.0) -> None:
    """Check that the client closed every connection soon after a moment."""
    await until(lambda: all(peer.ended_at is not None for peer in up.peers))
    assert max((peer.ended_at or 0.0 for peer in up.peers), default=since) - since < within_s


async def failure(work: Coroutine[Any, Any, object]) -> UpstreamError:
    """Return the UpstreamError that the work ends with."""
    try:
        value = await work
    except UpstreamError as error:
        return error
    raise AssertionError(f"no failure but {value!r}")


class Unanswering:
    """A port whose SYNs are dropped: its queue of accepted connections is full."""

    def __init__(self, address: str = "127.0.0.1", port: int = 0) -> None:
        self._at = (address, port)

    def __enter__(self) -> int:
        self._sock = socket.socket()
        self._sock.bind(self._at)
        self._sock.listen(0)
        self._fill = [socket.socket() for _ in range(4)]
        for filler in self._fill:
            filler.setblocking(False)
            filler.connect_ex(self._sock.getsockname())
        return self._sock.getsockname()[1]

    def __exit__(self, *_: object) -> None:
        for sock in (self._sock, *self._fill):
            sock.close()
