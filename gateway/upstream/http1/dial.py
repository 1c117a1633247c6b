"""Makes connected sockets: several addresses raced without tasks, TLS on top, all within one time limit."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from typing import TYPE_CHECKING, Final, cast

from gateway.core.errors import UpstreamError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.upstream.addresses import Addresses
    from gateway.upstream.http1.connection import Connection
    from gateway.upstream.spec import Timeouts

HEAD_START_S: Final = 0.25
"""How long an address may try alone before the next one joins."""
_SPARE_S: Final = 1.0
_IN_PROGRESS: Final = 115, 36, 10035


class Dialer:
    """Connects to one origin, at checked addresses only."""

    def __init__(self, addresses: Addresses, context: ssl.SSLContext | None) -> None:
        self._addresses = addresses
        self._origin = addresses.origin
        self._context = context

    async def connect(
        self, make: Callable[[], Connection], timeouts: Timeouts, deadline: float
    ) -> Connection:
        """Return a connected connection; UpstreamError phase connect, sent False."""
        loop = asyncio.get_running_loop()
        limit = loop.time() + timeouts.connect_s
        try:
            async with asyncio.timeout_at(min(limit, deadline)):
                return await self._connect(make, loop, timeouts.connect_s)
        except TimeoutError:
            code = "deadline_exceeded" if deadline <= limit else "upstream_timeout"
            raise UpstreamError(code, phase="connect", sent=False) from None
        except (OSError, ssl.CertificateError) as error:
            raise UpstreamError(
                "upstream_unavailable", phase="connect", sent=False, detail=_explain(error)
            ) from None

    async def _connect(
        self, make: Callable[[], Connection], loop: asyncio.AbstractEventLoop, connect_s: float
    ) -> Connection:
        sock = await Race(loop, await self._addresses.find(), self._origin.port).run()
        connection = make()
        try:
            if self._context is None:
                await loop.create_connection(lambda: connection, sock=sock)
            else:
                await self._secure(sock, connection, self._context, connect_s)
        except BaseException:
            # Not the socket: it is the loop's by now, which closes it; its number may be taken again.
            connection.close()
            raise
        return connection

    async def _secure(
        self, sock: socket.socket, connection: Connection, context: ssl.SSLContext, connect_s: float
    ) -> None:
        """Speak TLS on a socket, in two steps: uvloop leaks a handshake that is given up inside of one."""
        loop = asyncio.get_running_loop()
        plain, _ = await loop.create_connection(_Mute, sock=sock)
        try:
            secured = await loop.start_tls(
                plain,
                connection,
                context,
                server_hostname=self._origin.host,
                # Our own limit ends first; until this one the loop remembers the handshake.
                ssl_handshake_timeout=connect_s + _SPARE_S,
            )
            if secured is None:
                raise ConnectionAbortedError
        except BaseException:
            plain.abort()
            raise
        connection.connection_made(secured)


class _Mute(asyncio.Protocol):
    """Leaves everything that comes to who speaks TLS."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Read nothing."""
        cast("asyncio.Transport", transport).pause_reading()


class Race:
    """Connects to the first address that answers; each next one starts after a head start or a failure."""

    def __init__(self, loop: asyncio.AbstractEventLoop, addresses: list[str], port: int) -> None:
        self._loop = loop
        self._todo = list(reversed(addresses))
        self._port = port
        self._running: list[socket.socket] = []
        self._timer: asyncio.TimerHandle | None = None
        self._error = OSError("no address")
        self._won: asyncio.Future[socket.socket | None] = loop.create_future()

    async def run(self) -> socket.socket:
        """Return a connected socket that does not block; OSError of the last failure."""
        winner: socket.socket | None = None
        try:
            self._next()
            winner = await self._won
        finally:
            if self._timer is not None:
                self._timer.cancel()
            for sock in self._running:
                self._loop.remove_writer(sock)
                if sock is not winner:
                    sock.close()
        if winner is None:
            raise self._error
        return winner

    def _next(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._todo and not self._won.done():
            try:
                if self._begin(self._todo.pop()):
                    if self._todo:
                        self._timer = self._loop.call_later(HEAD_START_S, self._next)
                    return
            except OSError as error:
                self._error = error
        if not self._running and not self._won.done():
            self._won.set_result(None)

    def _begin(self, address: str) -> bool:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            code = sock.connect_ex((address, self._port))
            if code and code not in _IN_PROGRESS:
                raise OSError(code, os.strerror(code))
            self._loop.add_writer(sock, self._ready, sock)
        except BaseException:
            sock.close()
            raise
        self._running.append(sock)
        return True

    def _ready(self, sock: socket.socket) -> None:
        self._loop.remove_writer(sock)
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code == 0:
            if not self._won.done():
                self._won.set_result(sock)
            return
        self._running.remove(sock)
        sock.close()
        self._error = OSError(code, os.strerror(code))
        self._next()


def _explain(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or type(error).__name__}"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return type(error).__name__
