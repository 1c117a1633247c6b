"""A caller on the running loop, made of a socket: it sends what it is given, reads at its own pace and leaves when told."""

import asyncio
import socket
import struct
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from gateway.core import codec
from tests.support.serving import KEY

_RST_ON_CLOSE = struct.pack("ii", 1, 0)
_READ_S = 10.0


def request(
    body: Mapping[str, Any] | bytes, *lines: str, path: str = "/v1/chat/completions", key: str = KEY
) -> bytes:
    """Write a POST request with a caller's key; `lines` are more headers."""
    content = body if isinstance(body, bytes) else codec.encode(body)
    more = "".join(f"{line}\r\n" for line in lines)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n{more}\r\n"
    )
    return head.encode() + content


class Caller:
    """One connection to the gateway. Every read is bounded in time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, port: int, *, receive_bytes: int | None = None) -> "Caller":
        """Connect; `receive_bytes` bounds what the kernel takes for a caller that does not read."""
        sock = socket.socket()
        sock.setblocking(False)
        if receive_bytes is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        try:
            await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
            # A small limit: what is not asked for stays in the kernel.
            return cls(*await asyncio.open_connection(sock=sock, limit=2048))
        except BaseException:
            sock.close()
            raise

    def send(self, data: bytes) -> None:
        """Send."""
        self._writer.write(data)

    async def read_until(self, mark: bytes) -> bytes:
        """Return the bytes up to and with `mark`."""
        data = b""
        while mark not in data:
            more = await self.read()
            if not more:
                message = f"closed before {mark!r}: {data[-2000:]!r}"
                raise AssertionError(message)
            data += more
        return data

    async def read_past(self, mark: bytes) -> int:
        """Read up to and with `mark`, however much that is; return how many bytes came."""
        size, tail = 0, b""
        while more := await self.read():
            size += len(more)
            tail = tail[-len(mark) :] + more
            if mark in tail:
                return size
        message = f"closed before {mark!r}: {tail[-2000:]!r}"
        raise AssertionError(message)

    async def read(self, most: int = 65536) -> bytes:
        """Return what has come, at least a byte; nothing at the end."""
        async with asyncio.timeout(_READ_S):
            try:
                return await self._reader.read(most)
            except ConnectionResetError:
                return b""

    async def read_to_end(self) -> bytes:
        """Return all bytes until the gateway closes."""
        parts: list[bytes] = []
        while data := await self.read():
            parts.append(data)
        return b"".join(parts)

    def half_close(self) -> None:
        """Send nothing any more, but read on."""
        self._writer.write_eof()

    def close(self) -> None:
        """Leave in order; the kernel makes a reset of it when something was left unread."""
        self._writer.close()

    def reset(self) -> None:
        """Leave with a reset."""
        handle = self._writer.get_extra_info("socket")
        handle.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RST_ON_CLOSE)
        self._writer.transport.abort()

    async def closed(self) -> None:
        """Wait until the socket is gone."""
        try:
            await self._writer.wait_closed()
        except OSError:
            return


@asynccontextmanager
async def calling(port: int, *, receive_bytes: int | None = None) -> AsyncGenerator[Caller]:
    """Connect; the connection is closed with the block."""
    caller = await Caller.open(port, receive_bytes=receive_bytes)
    try:
        yield caller
    finally:
        caller.close()
        await caller.closed()
