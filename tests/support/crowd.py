"""Many callers and a light provider for long runs: nothing is kept of what has gone by, so that only leaks grow."""

import asyncio
import socket
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from tests.support.faulty import DONE, FINISH, FIRST, GOOD, event
from tests.support.scripted_upstream import LAST_CHUNK, STREAM_HEAD, chunk, ok

PARTS: dict[str, bytes] = {
    "head": b"",
    "half a head": b"HTTP/1.1 200 OK\r\ncontent-",
    "half a body": ok(GOOD)[:-20],
    "half an error": b"HTTP/1.1 500 Oh\r\ncontent-length: 90\r\n\r\n{",
    "first event": STREAM_HEAD,
    "half an event": STREAM_HEAD + chunk(FIRST[:30]),
    "mid-stream": STREAM_HEAD + chunk(FIRST) + chunk(event("more")),
    "after the end": STREAM_HEAD + chunk(FIRST + FINISH + DONE),
    "whole": ok(GOOD),
    "whole stream": STREAM_HEAD + chunk(FIRST + FINISH + DONE) + LAST_CHUNK,
}
"""What the provider says to a request that names a part in its field `user`; then it waits."""
_RST_ON_CLOSE = struct.pack("ii", 1, 0)


@dataclass
class Providers:
    """The ports of a provider that says parts and of one that never ends a TLS handshake; the first one's sockets."""

    port: int
    silent_port: int
    sockets: set[asyncio.Transport] = field(default_factory=set[asyncio.Transport])


class _Speaker(asyncio.Protocol):
    def __init__(self, sockets: set[asyncio.Transport]) -> None:
        self._sockets = sockets
        self._seen = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._sockets.add(self._transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._sockets.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        self._seen += data
        _, marker, after = self._seen.partition(b'"user":"')
        name, end, rest = after.partition(b'"')
        if marker and end and rest.endswith(b"}"):
            self._seen = b""
            self._transport.write(PARTS[name.decode()])


@asynccontextmanager
async def providers() -> AsyncGenerator[Providers]:
    """Serve both until the block ends."""
    loop = asyncio.get_running_loop()
    made = Providers(0, 0)
    speaking = await loop.create_server(
        lambda: _Speaker(made.sockets), "127.0.0.1", 0, backlog=2048
    )
    silent = await loop.create_server(asyncio.Protocol, "127.0.0.1", 0, backlog=2048)
    made.port, made.silent_port = (
        int(server.sockets[0].getsockname()[1]) for server in (speaking, silent)
    )
    try:
        yield made
    finally:
        speaking.close()
        silent.close()
        for each in tuple(made.sockets):
            each.abort()


async def abandon(port: int, raw: bytes, *, mark: bytes, pause_s: float, hard: bool) -> None:
    """Send a request, read until `mark`, wait for a moment and leave; `hard` with a reset."""
    loop = asyncio.get_running_loop()
    sock = socket.socket()
    sock.setblocking(False)
    try:
        await loop.sock_connect(sock, ("127.0.0.1", port))
        await loop.sock_sendall(sock, raw)
        got = b""
        async with asyncio.timeout(20):
            while mark not in got:
                more = await loop.sock_recv(sock, 65536)
                assert more, f"closed before {mark!r}: {got!r}"
                got += more
        await asyncio.sleep(pause_s)
        if hard:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RST_ON_CLOSE)
    finally:
        sock.close()


def resident_mb(pid: int) -> float:
    """Return how much memory a process holds."""
    pages = int((Path("/proc") / str(pid) / "statm").read_text().split()[1])
    return pages * 4096 / 1e6


def open_files(pid: int) -> int:
    """Return how many descriptors a process holds."""
    return sum(1 for _ in (Path("/proc") / str(pid) / "fd").iterdir())
