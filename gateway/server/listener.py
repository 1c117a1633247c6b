"""The two listeners of a process: clients on the guarded protocol, operators on plain uvicorn."""

import asyncio
import errno
import socket
from dataclasses import dataclass
from typing import Any

import uvicorn

from gateway.server.exchange import Handler, Render
from gateway.server.limits import ConnectionLimits
from gateway.server.protocol import GuardedProtocol

_BACKLOG = 4096
_LOOK_S = 0.01
_WRONG_PORT = frozenset({errno.EADDRINUSE, errno.EACCES, errno.EPERM})


@dataclass(slots=True)
class Edge:
    """What the guarded protocol serves; a connection keeps to the limits it began with."""

    handler: Handler
    limits: ConnectionLimits
    render: Render


class Listener:
    """A listening socket and the server behind it; signals are not its business."""

    def __init__(self, config: uvicorn.Config, sock: socket.socket) -> None:
        self._server = uvicorn.Server(config)
        self._sock = sock

    @property
    def url(self) -> str:
        """The address that the socket is bound to."""
        return url_of(self._sock)

    async def start(self) -> None:
        """Begin to accept connections."""
        config = self._server.config
        config.load()
        self._server.lifespan = config.lifespan_class(config)
        await self._server.startup(sockets=[self._sock])

    def wind_down(self) -> None:
        """Let every client connection end with the answer to its next request, which says so."""
        for connection in self._server.server_state.connections:
            if isinstance(connection, GuardedProtocol):
                connection.closing = True

    def close_idle(self) -> None:
        """Close client connections that rest: their next request goes elsewhere instead of being refused."""
        connections: set[Any] = self._server.server_state.connections
        for connection in tuple(connections):
            if isinstance(connection, GuardedProtocol):
                connection.close_idle()

    def stop_accepting(self) -> None:
        """Close the listening socket, and the connections that are idle."""
        for server in self._server.servers:
            server.close()
        for connection in tuple(self._server.server_state.connections):
            connection.shutdown()

    async def wait_closed(self) -> None:
        """Wait until every connection is closed: the clients have taken what was written for them."""
        while self._server.server_state.connections:  # noqa: ASYNC110  uvicorn's set tells nobody
            await asyncio.sleep(_LOOK_S)


def data_listener(edge: Edge, sock: socket.socket) -> Listener:
    """Return the listener for clients."""
    config = uvicorn.Config(
        edge,  # pyright: ignore[reportArgumentType]  the guarded protocol reads it, uvicorn never calls it
        http=GuardedProtocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        backlog=_BACKLOG,
    )
    return Listener(config, sock)


def admin_listener(app: Any, sock: socket.socket) -> Listener:  # noqa: ANN401  an ASGI application
    """Return the listener for operators."""
    config = uvicorn.Config(
        app, ws="none", lifespan="off", log_config=None, access_log=False, proxy_headers=False
    )
    return Listener(config, sock)


def url_of(sock: socket.socket) -> str:
    """Return the URL of a listening socket; an address for all interfaces is shown as loopback."""
    host, port = sock.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{shown}:{port}"


class ListenError(Exception):
    """The operating system refuses an address; the text says which, why, and what to change."""


def bind(host: str, port: int, *, section: str = "server", share: bool = False) -> socket.socket:
    """Bind a listening socket, without delay; `share` lets other processes bind the same port.

    `section` is the part of the configuration that names the address. Raises ListenError.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if share:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        setting = f"{section}.{'port' if error.errno in _WRONG_PORT else 'host'}"
        variable = f"GATEWAY_{setting.upper().replace('.', '__')}"
        message = (
            f"cannot listen on {host}, port {port}: {error.strerror or error}. "
            f"Change {setting}, or set {variable}."
        )
        raise ListenError(message) from None
    sock.listen(_BACKLOG)
    sock.setblocking(False)
    return sock
