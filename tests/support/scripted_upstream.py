"""The scripted upstream: a server on loopback that plays a script of bytes to each connection.

It records what it received and when each connection ended, and never hides what it sends behind a library.
"""

import asyncio
import os
import socket
import ssl
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Self, cast

import trustme

_RST_ON_CLOSE = struct.pack("ii", 1, 0)


class PeerGone(Exception):
    """The client closed the connection; ends the script."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came. `headers` in order, names in lower case; `raw` is the head."""

    method: bytes
    target: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    raw: bytes

    def header(self, name: bytes) -> bytes | None:
        """Return the first header of this name."""
        return next((value for key, value in self.headers if key == name), None)


class Peer(asyncio.Protocol):
    """One connection of the scripted upstream, from the script's side."""

    def __init__(self, owner: "ScriptedUpstream") -> None:
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self.number = len(owner.peers)
        self.received = bytearray()  # all of it, read by the script or not
        self.requests: list[Request] = []
        self.sent_bytes = 0
        self.ended_at: float | None = None  # when the client closed or reset
        self.was_reset = False
        self._taken = 0
        self._eof = False

    # ------------------------------------------------------------ what scripts do

    async def request(self) -> Request:
        """Read one whole request."""
        end = await self._find(b"\r\n\r\n")
        raw = self._take(end + 4)
        lines = raw[:-4].split(b"\r\n")
        method, target, _ = lines[0].split(b" ")
        headers = tuple(
            (name.lower(), value.strip())
            for name, _, value in (line.partition(b":") for line in lines[1:])
        )
        known = dict(headers)
        if known.get(b"transfer-encoding") == b"chunked":
            body = await self._chunks()
        else:
            body = await self.read(int(known.get(b"content-length", b"0")))
        request = Request(method, target, headers, body, raw)
        self.requests.append(request)
        return request

    async def read(self, size: int) -> bytes:
        """Read exactly so many bytes."""
        while len(self.received) - self._taken < size:
            await self._more()
        return self._take(size)

    def take_rest(self) -> bytes:
        """Return what has come and was not read."""
        return self._take(len(self.received) - self._taken)

    async def send(self, *pieces: bytes) -> None:
        """Send bytes as fast as the client takes them."""
        for piece in pieces:
            await self._writable.wait()
            if self._transport.is_closing():
                raise PeerGone
            self._transport.write(piece)
            self.sent_bytes += len(piece)

    async def drip(self, data: bytes, gap_s: float) -> None:
        """Send byte by byte."""
        for index in range(len(data)):
            await self.send(data[index : index + 1])
            await asyncio.sleep(gap_s)

    async def hang(self) -> None:
        """Say nothing until the client goes."""
        while True:
            await self._more()

    def fin(self) -> None:
        """Close in order."""
        self._transport.close()

    def slam(self) -> None:
        """Close at once: what comes from now on is taken by nobody, and answered with a reset."""
        # A second handle of it: what uvloop hands out cannot shut down.
        with socket.socket(fileno=os.dup(self._transport.get_extra_info("socket").fileno())) as own:
            own.shutdown(socket.SHUT_RDWR)

    def half_close(self) -> None:
        """Send nothing any more, but keep reading."""
        self._transport.write_eof()

    def rst(self) -> None:
        """Reset the connection."""
        sock = self._transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RST_ON_CLOSE)
        self._transport.abort()

    def pause(self) -> None:
        """Read nothing from now on, so that the client's writes fill up."""
        self._transport.pause_reading()

    def resume(self) -> None:
        """Read again."""
        self._transport.resume_reading()

    # ------------------------------------------------------------ asyncio protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._is_tls = transport.get_extra_info("ssl_object") is not None
        self._owner.joined(self)

    def data_received(self, data: bytes) -> None:
        self.received += data
        self._news.set()

    def eof_received(self) -> bool:
        self._ended(was_reset=False)
        # A script that has half-closed may go on for as long as it likes; TLS cannot.
        return not self._is_tls

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended(was_reset=exc is not None)
        self._owner.left(self)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def drop(self) -> None:
        """Close without a word."""
        if not self._transport.is_closing():
            self._transport.abort()

    def _ended(self, *, was_reset: bool) -> None:
        if self.ended_at is None:
            self.ended_at = self._loop.time()
            self.was_reset = was_reset
        self._eof = True
        self._news.set()
        self._writable.set()

    async def _find(self, mark: bytes) -> int:
        while (at := self.received.find(mark, self._taken)) < 0:
            await self._more()
        return at - self._taken

    async def _chunks(self) -> bytes:
        body = b""
        while True:
            size = int(self._take(await self._find(b"\r\n") + 2), 16)
            body += (await self.read(size + 2))[:-2]
            if not size:
                return body

    def _take(self, size: int) -> bytes:
        self._taken += size
        return bytes(self.received[self._taken - size : self._taken])

    async def _more(self) -> None:
        if self._eof:
            raise PeerGone
        self._news.clear()
        await self._news.wait()


Script = Callable[[Peer], Awaitable[None]]


@dataclass(eq=False)
class ScriptedUpstream:
    """A listening socket and the connections that came; the n-th plays the n-th script, later ones the last."""

    scripts: tuple[Script, ...]
    port: int = 0
    scheme: str = "http"
    peers: list[Peer] = field(default_factory=list[Peer])
    open: set[Peer] = field(default_factory=set[Peer])
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    _errors: list[BaseException] = field(default_factory=list[BaseException])

    @property
    def url(self) -> str:
        """The base URL; by name, so that certificates match."""
        return f"{self.scheme}://localhost:{self.port}"

    @property
    def requests(self) -> list[Request]:
        """All requests of all connections."""
        return [request for peer in self.peers for request in peer.requests]

    def joined(self, peer: Peer) -> None:
        """Start the script of a new connection."""
        script = self.scripts[min(len(self.peers), len(self.scripts) - 1)]
        self.peers.append(peer)
        self.open.add(peer)
        task = asyncio.get_running_loop().create_task(self._play(script, peer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def left(self, peer: Peer) -> None:
        """Forget an ended connection."""
        self.open.discard(peer)

    async def _play(self, script: Script, peer: Peer) -> None:
        try:
            await script(peer)
            peer.fin()
        except PeerGone:
            peer.drop()
        except (AssertionError, ValueError, TypeError, AttributeError) as error:
            self._errors.append(error)
            peer.drop()

    async def stop(self) -> None:
        """End every script and connection; raises the first mistake of a script."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for peer in tuple(self.open):
            peer.drop()
        await until(lambda: not self.open)
        if self._errors:
            raise self._errors[0]


@asynccontextmanager
async def upstream(
    *scripts: Script, tls: ssl.SSLContext | None = None, backlog: int = 2048, port: int = 0
) -> AsyncGenerator[ScriptedUpstream]:
    """Serve scripts on a port of loopback, a free one by default, on the running loop."""
    served = ScriptedUpstream(scripts, scheme="https" if tls else "http")
    # The protocol is named: asyncio sets TCP_NODELAY on accepted sockets only then.
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", port))
    served.port = sock.getsockname()[1]
    server = await asyncio.get_running_loop().create_server(
        lambda: Peer(served), sock=sock, ssl=tls, backlog=backlog
    )
    try:
        yield served
    finally:
        server.close()
        await served.stop()


async def until(fact: Callable[[], object], within_s: float = 5.0) -> None:
    """Wait until something holds; AssertionError when it does not in time."""
    loop = asyncio.get_running_loop()
    end = loop.time() + within_s
    while not fact():
        assert loop.time() < end, "it did not come true in time"
        await asyncio.sleep(0.002)


def ok(body: bytes = b"{}", *lines: bytes) -> bytes:
    """Write a plain JSON answer with its length."""
    more = b"".join(line + b"\r\n" for line in lines)
    return (
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n%bcontent-length: %d\r\n\r\n%b"
        % (more, len(body), body)
    )


STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)
LAST_CHUNK = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """Write one chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def answering(answer: bytes) -> Script:
    """Make a script that gives the same answer to every request."""

    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(answer)

    return script


def once(*pieces: bytes) -> Script:
    """Make a script that reads one request, sends bytes and then waits for the client to go."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(*pieces)
        await peer.hang()

    return script


@dataclass(frozen=True, slots=True)
class Authority:
    """A private certificate authority and what it vouches for."""

    ca: trustme.CA
    ca_file: str

    @classmethod
    def made(cls, folder: Path) -> Self:
        """Make an authority; its certificate lies in the folder."""
        ca = trustme.CA()
        ca.cert_pem.write_to_path(folder / "ca.pem")
        return cls(ca, str(folder / "ca.pem"))

    def server(self, *names: str, not_after: datetime | None = None) -> ssl.SSLContext:
        """Return a server's context for these names."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate = self.ca.issue_cert(*names, not_after=not_after)
        # One file for both: the library's own way into a context is untyped.
        with certificate.private_key_and_cert_chain_pem.tempfile() as path:
            context.load_cert_chain(path)
        return context
