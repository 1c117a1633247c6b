"""A server in a thread of its own, with a handler that does what the path says and notes what it saw."""

import asyncio
import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

import uvicorn

from gateway.core import codec
from gateway.core.errors import GatewayError
from gateway.server.asgi import asgi_app
from gateway.server.exchange import Exchange, Handler
from gateway.server.limits import ConnectionLimits
from gateway.server.protocol import GuardedProtocol
from tests.support.raw_client import Address

BODY_LIMIT = 1 << 20
BLOCK = b"x" * 65536


def render(error: GatewayError, request_id: str) -> bytes:
    """Write the error envelope of the tests."""
    told = {"message": error.message, "type": "test", "param": error.param, "code": error.code}
    return codec.encode({"error": told, "request_id": request_id})


@dataclass(frozen=True, slots=True)
class Edge:
    """What the guarded protocol serves."""

    handler: Handler
    limits: ConnectionLimits
    render: Callable[[GatewayError, str], bytes] = render


class Stub:
    """The handler. The first segment of the path names what it does, the query says how much."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.seen: list[tuple[str, bytes, bytes]] = []
        self.heads: list[dict[bytes, bytes]] = []
        self.bodies: list[bytes] = []
        self.gone_at: list[float] = []
        self.gone_ids: list[str] = []
        self.errors: list[str] = []
        self.written: list[int] = []
        self.left = 0
        self.release = threading.Event()

    async def __call__(self, exchange: Exchange) -> None:
        self.seen.append((exchange.method, exchange.raw_path, exchange.query))
        self.heads.append(dict(exchange.headers))
        exchange.on_gone(lambda: self._gone(exchange))
        asked = parse_qs(exchange.query.decode())
        how_many = {name: int(value) for name, (value, *_) in asked.items() if value.isdigit()}
        kind = exchange.raw_path.split(b"/")[1].decode()
        try:
            await getattr(self, f"_do_{kind}", self._do_plain)(exchange, how_many)
        except GatewayError as error:
            self.errors.append(error.code)
            if not exchange.started and not exchange.gone:
                body = render(error, exchange.request_id)
                exchange.start(error.http, self._headers(exchange), length=len(body))
                exchange.end(body)
        finally:
            self.left += 1

    def _gone(self, exchange: Exchange) -> None:
        self.gone_at.append(time.monotonic())
        self.gone_ids.append(exchange.request_id)

    def _headers(self, exchange: Exchange) -> list[tuple[bytes, bytes]]:
        return [(b"x-request-id", exchange.request_id.encode())]

    async def _do_plain(self, exchange: Exchange, _: dict[str, int]) -> None:
        body = b"%b %b" % (exchange.method.encode(), exchange.raw_path)
        exchange.start(200, self._headers(exchange), length=len(body))
        exchange.end(body)

    async def _do_echo(self, exchange: Exchange, how: dict[str, int]) -> None:
        body = await exchange.read_body(how.get("limit", BODY_LIMIT))
        self.bodies.append(body)
        exchange.start(200, self._headers(exchange), length=len(body))
        exchange.end(body)

    async def _do_refuse(self, exchange: Exchange, how: dict[str, int]) -> None:
        status = how.get("status", 401)
        exchange.start(status, self._headers(exchange), length=7)
        exchange.end(b"refused")

    async def _do_ticks(self, exchange: Exchange, how: dict[str, int]) -> None:
        exchange.start(200, self._headers(exchange), length=None)
        for number in range(how.get("n", 3)):
            await asyncio.sleep(how.get("ms", 5) / 1000)
            exchange.write(b"%d;" % number)
        exchange.end()

    async def _do_hold(self, exchange: Exchange, how: dict[str, int]) -> None:
        """Wait for the test or for the client to leave, then answer; `stream` begins at once."""
        if "stream" in how:
            exchange.start(200, self._headers(exchange), length=None)
            exchange.write(b"begun;")
        while not self.release.is_set() and not exchange.gone:
            await asyncio.sleep(0.005)
        if exchange.gone:
            return
        if not exchange.started:
            exchange.start(200, self._headers(exchange), length=4)
        exchange.end(b"done")

    async def _do_timer(self, exchange: Exchange, how: dict[str, int]) -> None:
        """A timer writes while the handler waits for something else."""
        exchange.start(200, self._headers(exchange), length=None)
        loop = asyncio.get_running_loop()
        loop.call_later(how["ms"] / 1000, exchange.write, b"tick;")
        await self._do_hold(exchange, {})

    async def _do_flood(self, exchange: Exchange, how: dict[str, int]) -> None:
        exchange.start(200, self._headers(exchange), length=None)
        written = 0
        for _ in range(how.get("n", 4096)):
            if exchange.gone:
                break
            exchange.write(BLOCK)
            written += len(BLOCK)
            if exchange.congested:
                await exchange.drain()
        self.written.append(written)
        if not exchange.gone:
            exchange.end()

    async def _do_late(self, exchange: Exchange, how: dict[str, int]) -> None:
        """Wait before the body is asked for."""
        await asyncio.sleep(how["ms"] / 1000)
        await self._do_echo(exchange, how)

    async def _do_rush(self, exchange: Exchange, how: dict[str, int]) -> None:
        """Write without ever waiting."""
        exchange.start(200, self._headers(exchange), length=None)
        written = 0
        for _ in range(how.get("n", 4096)):
            if exchange.gone:
                break
            exchange.write(BLOCK)
            written += len(BLOCK)
        self.written.append(written)
        if not exchange.gone:
            exchange.end()

    async def _do_big(self, exchange: Exchange, how: dict[str, int]) -> None:
        size = how["size"]
        exchange.start(200, self._headers(exchange), length=size)
        exchange.end(b"x" * size)

    async def _do_upload(self, exchange: Exchange, how: dict[str, int]) -> None:
        size = 0
        async for part in exchange.body_stream(how.get("limit", 1 << 30)):
            size += len(part)
            self.written.append(len(part))
            if "ms" in how:
                await asyncio.sleep(how["ms"] / 1000)
        answer = b"%d" % size
        exchange.start(200, self._headers(exchange), length=len(answer))
        exchange.end(answer)

    async def _do_cut(self, exchange: Exchange, how: dict[str, int]) -> None:
        length = how.get("length")
        exchange.start(200, self._headers(exchange), length=length)
        exchange.write(b"half")
        await asyncio.sleep(0.01)
        exchange.abort()

    async def _do_short(self, exchange: Exchange, how: dict[str, int]) -> None:
        exchange.start(200, self._headers(exchange), length=how.get("length", 10))
        exchange.end(b"half")

    async def _do_fail(self, exchange: Exchange, how: dict[str, int]) -> None:
        if "started" in how:
            exchange.start(200, self._headers(exchange), length=None)
            exchange.write(b"half")
        raise RuntimeError("planted")

    async def _do_forget(self, exchange: Exchange, how: dict[str, int]) -> None:
        """Return without an answer."""


@dataclass
class Running:
    """A running server and its stub."""

    address: Address
    stub: Stub
    mode: str
    server: uvicorn.Server

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self.server.server_state.connections)

    @property
    def tasks(self) -> int:
        """How many handlers run."""
        return len(self.server.server_state.tasks)


def _without_traceback(record: logging.LogRecord) -> bool:
    """Keep the line and drop the traceback: two threads that format one at a time upset Python 3.11."""
    record.exc_info = None
    return True


@contextmanager
def serve(
    *,
    mode: str = "direct",
    loop: str = "uvloop",
    limits: ConnectionLimits | None = None,
    tls: ssl.SSLContext | None = None,
) -> Generator[Running]:
    """Run a server until the block ends; `mode` is direct or asgi."""
    stub = Stub()
    bounds = limits or ConnectionLimits()
    app: Any = Edge(stub, bounds) if mode == "direct" else asgi_app(stub, bounds, render)
    config = uvicorn.Config(
        app,
        http=GuardedProtocol if mode == "direct" else "httptools",
        loop=loop,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        timeout_graceful_shutdown=5,
        ssl_context_factory=(lambda _config, _default: tls) if tls else None,
    )
    server = uvicorn.Server(config)
    sock = socket.create_server(("127.0.0.1", 0), backlog=512)
    for name in ("asyncio", "gateway.server", "uvicorn.error"):
        logging.getLogger(name).addFilter(_without_traceback)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
    thread.start()
    try:
        wait_until(lambda: server.started)
        yield Running(sock.getsockname()[:2], stub, mode, server)
    finally:
        stub.release.set()
        server.should_exit = True
        thread.join(10)
        sock.close()
    assert not thread.is_alive()


def wait_until(condition: Callable[[], object], within_s: float = 3.0) -> None:
    """Wait for a condition; fails when it does not come about."""
    until = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < until, "the condition did not come about"
        time.sleep(0.002)
