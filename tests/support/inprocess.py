"""A whole gateway without sockets: callers and providers stand at its transports, so that a million requests are few.

What is real: the inbound protocol, the chain, the stores, the upstream client and its pool. Not there: the kernel.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httptools
from uvicorn.config import Config
from uvicorn.server import ServerState

from gateway.chain.layers import known_middleware
from gateway.cli.commands import known_kinds
from gateway.config.loader import load
from gateway.core import codec
from gateway.server.listener import Edge
from gateway.server.protocol import GuardedProtocol
from gateway.stores.registry import open_keys
from gateway.telemetry.cells import Registry
from gateway.telemetry.logs import LogSink
from gateway.telemetry.redact import Redactor
from gateway.telemetry.writer import LineWriter
from gateway.upstream.http1.connection import Connection
from gateway.worker import Worker

_PIECE = 32_768
_GRACE_S = 5.0


class Wire(asyncio.Transport):
    """One end of a connection that nobody else sees; `sent` gets what is written to it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, handle: socket.socket) -> None:
        super().__init__()
        self._loop = loop
        self._handle = handle
        self.ended = False
        self.protocol: asyncio.BaseProtocol | None = None

    def sent(self, data: bytes) -> None:
        """Take what the gateway says."""
        raise NotImplementedError

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Pass on at once."""
        if not self.ended:
            self.sent(bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        """Pass on at once."""
        self.write(b"".join(list_of_data))

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Name a peer on this machine."""
        return {"peername": ("127.0.0.1", 5), "socket": self._handle}.get(name, default)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Hold nothing."""

    def get_write_buffer_size(self) -> int:
        """Return that nothing waits."""
        return 0

    def is_closing(self) -> bool:
        """Tell whether it is over."""
        return self.ended

    def pause_reading(self) -> None:
        """Go on: what is sent here is small."""

    def resume_reading(self) -> None:
        """Go on."""

    def can_write_eof(self) -> bool:
        """Close as a whole alone."""
        return False

    def close(self) -> None:
        """End, as the loop would tell it."""
        if not self.ended:
            self.ended = True
            self._loop.call_soon(self.over, None)

    abort = close

    def over(self, error: Exception | None) -> None:
        """Tell the protocol of the end."""
        self.ended = True
        protocol, self.protocol = self.protocol, None
        if protocol is not None:
            protocol.connection_lost(error)


class Asked:
    """One request that a provider got: its path and its body, and the ways to answer it."""

    __slots__ = ("body", "path", "wire")

    def __init__(self, wire: "ProviderWire", path: bytes, body: bytes) -> None:
        self.wire = wire
        self.path = path
        self.body = body

    def say(self, data: bytes) -> None:
        """Send a piece; nothing once the gateway has hung up."""
        protocol = cast("Connection | None", self.wire.protocol)
        for at in range(0, len(data), _PIECE):
            if self.wire.ended or protocol is None:
                return
            piece = data[at : at + _PIECE]
            protocol.get_buffer(len(piece))[: len(piece)] = piece
            protocol.buffer_updated(len(piece))

    def reset(self) -> None:
        """Break the connection."""
        if not self.wire.ended:
            self.wire.over(ConnectionResetError())


Provider = Callable[[Asked], None]


class ProviderWire(Wire):
    """A provider's end of a connection; called in the context of the request that it is asked for."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, handle: socket.socket, provider: Provider
    ) -> None:
        super().__init__(loop, handle)
        self._provider = provider
        self._begin()

    def _begin(self) -> None:
        self._parser: Any = httptools.HttpRequestParser(self)
        self._url = b""
        self._body: list[bytes] = []

    def sent(self, data: bytes) -> None:
        """Read requests."""
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        """Collect the target."""
        self._url += url

    def on_body(self, body: bytes) -> None:
        """Collect the body."""
        self._body.append(body)

    def on_message_complete(self) -> None:
        """Hand one request over."""
        asked = Asked(self, self._url, b"".join(self._body))
        self._url, self._body = b"", []
        self._provider(asked)


class Answered:
    """What a caller got: status, headers and content; `complete` False where it was cut."""

    __slots__ = ("complete", "content", "headers", "status")

    def __init__(self) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.content = b""
        self.complete = False

    def header(self, name: bytes) -> str:
        """Return a header, "" where there is none."""
        return next((value.decode() for key, value in self.headers if key == name), "")


class Caller(Wire):
    """A caller's end of a connection, which is kept for one request after another."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, handle: socket.socket, make: Callable[[], Any]
    ) -> None:
        super().__init__(loop, handle)
        self._waiter: asyncio.Future[Answered] | None = None
        self._parser: Any = httptools.HttpResponseParser(self)
        self._got = Answered()
        self._parts: list[bytes] = []
        self.protocol = self._edge = make()
        self._edge.connection_made(self)

    async def ask(self, raw: bytes, patience_s: float | None = None) -> Answered:
        """Send a request and return its answer; leaves after `patience_s`, in the middle of whatever comes."""
        self._waiter = waiter = self._loop.create_future()
        self._edge.data_received(raw)
        timer = None
        if patience_s is not None:
            timer = self._loop.call_later(patience_s, self.close)
        try:
            return await waiter
        finally:
            if timer is not None:
                timer.cancel()

    def sent(self, data: bytes) -> None:
        """Read answers."""
        self._parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a header."""
        self._got.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Note the status."""
        self._got.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        """Collect content."""
        self._parts.append(body)

    def on_message_complete(self) -> None:
        """Give out an answer that has come to its end."""
        self._give(complete=True)

    def over(self, error: Exception | None) -> None:
        """Give out what there is of an answer."""
        super().over(error)
        self._give(complete=False)

    def _give(self, *, complete: bool) -> None:
        got, self._got = self._got, Answered()
        got.content, self._parts = b"".join(self._parts), []
        got.complete = complete
        if self._waiter is not None and not self._waiter.done():
            self._loop.call_soon(_set, self._waiter, got)


def _set(waiter: "asyncio.Future[Answered]", got: Answered) -> None:
    if not waiter.done():
        waiter.set_result(got)


class Lines(LineWriter):
    """Log lines, handed to a reader instead of a file."""

    def __init__(self, reader: Callable[[bytes], None]) -> None:
        super().__init__(-1)
        self._reader = reader

    def write(self, line: bytes) -> None:
        """Hand one line over."""
        self._reader(line)

    def start(self) -> None:
        """Start nothing."""

    def close(self) -> None:
        """End nothing."""


class Inside:
    """A gateway that answers without sockets."""

    def __init__(
        self, worker: Worker, edge: Edge, loop: asyncio.AbstractEventLoop, handle: socket.socket
    ) -> None:
        self.worker = worker
        self._loop = loop
        self._handle = handle
        config = cast("Config", SimpleNamespace(app=edge))
        state = ServerState()
        self._make = lambda: GuardedProtocol(config, state, {}, loop)

    def caller(self) -> Caller:
        """Connect a caller."""
        return Caller(self._loop, self._handle, self._make)

    async def at_rest(self) -> None:
        """Wait until nothing is being answered."""
        async with asyncio.timeout(_GRACE_S):
            while len(self.worker._inflight):
                await asyncio.sleep(0.005)


def request(path: str, body: object, headers: Sequence[tuple[str, str]]) -> bytes:
    """Write a request."""
    content = codec.encode(body)
    own = "".join(f"{name}: {value}\r\n" for name, value in headers)
    head = f"POST {path} HTTP/1.1\r\nhost: g\r\ncontent-type: application/json\r\n{own}"
    return f"{head}content-length: {len(content)}\r\n\r\n".encode() + content


@contextmanager
def _wired(worker: Worker, provider: Provider, handle: socket.socket) -> Generator[None]:
    """Have every pool of the worker connect to a provider in memory."""

    async def connect(make: Callable[[], Connection], *_: object) -> Connection:
        loop = asyncio.get_running_loop()
        made = make()
        wire = ProviderWire(loop, handle, provider)
        wire.protocol = made
        made.connection_made(wire)
        return made

    for pool in worker._client._pools.values():
        cast("Any", pool)._connect = connect
    yield


@asynccontextmanager
async def inside(
    config: Mapping[str, Any], folder: Path, provider: Provider, reader: Callable[[bytes], None]
) -> AsyncGenerator[Inside]:
    """Run a configuration until the block ends; `reader` gets each line of the log."""
    path = folder / "gateway.yaml"
    path.write_bytes(codec.encode({"stores": {"database": "memory"}, **config}))
    tree = load(path, environ={}, known_kinds=known_kinds(), known_middleware=known_middleware())
    redactor = Redactor(tree.secrets())
    sink = LogSink(Lines(reader), redactor, level="info")
    registry = Registry.create()
    loop = asyncio.get_running_loop()
    worker = Worker(tree, open_keys("memory"), registry, redactor, sink)
    edge = worker.edge()
    worker.begin()
    with socket.socket() as handle, _wired(worker, provider, handle):
        try:
            yield Inside(worker, edge, loop, handle)
        finally:
            await worker.close()
            sink.close()
            registry.close()
