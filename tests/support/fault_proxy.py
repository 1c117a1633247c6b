"""A TCP proxy on the running loop that does to a connection what networks do: delay, swallow, cut, refuse."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast


class FaultProxy:
    """Passes bytes on between clients and one server until it is told otherwise; settings act at once.

    `delay_s`: replies come this much later. `swallow_requests`, `swallow_replies`: bytes vanish, connections stay;
    both together are a black hole. `accepted`: connections so far; `open`: those that are open.
    """

    def __init__(self, port: int) -> None:
        self._to = port
        self._server: asyncio.Server | None = None
        self._pairs: set[_Pair] = set()
        self.port = 0
        self.accepted = 0
        self.delay_s = 0.0
        self.swallow_requests = False
        self.swallow_replies = False
        self.requests_left: int | None = None
        self.replies_left: int | None = None

    @property
    def url(self) -> str:
        """The state address of the proxy."""
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def open(self) -> int:
        """How many connections are open."""
        return len(self._pairs)

    async def accept(self) -> None:
        """Listen, at the same port as before."""
        if self._server is None:
            loop = asyncio.get_running_loop()
            self._server = await loop.create_server(
                lambda: _Client(_Pair(self)), "127.0.0.1", self.port
            )
            self.port = int(self._server.sockets[0].getsockname()[1])

    async def refuse(self) -> None:
        """Close all connections and refuse new ones."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.cut()
        await asyncio.sleep(0)

    def blackhole(self) -> None:
        """Swallow everything without closing anything, new connections included."""
        self.swallow_requests = self.swallow_replies = True

    def heal(self) -> None:
        """Pass everything on again."""
        self.delay_s = 0.0
        self.swallow_requests = self.swallow_replies = False
        self.requests_left = self.replies_left = None

    def cut(self) -> None:
        """Reset all connections."""
        for pair in tuple(self._pairs):
            pair.close()

    def cut_after(self, *, requests: int | None = None, replies: int | None = None) -> None:
        """Reset the connection that has passed this many more bytes of one direction, once."""
        self.requests_left, self.replies_left = requests, replies


class _Pair:
    """A client's connection and the one to the server behind it."""

    def __init__(self, proxy: FaultProxy) -> None:
        self.proxy = proxy
        self.client: asyncio.Transport | None = None
        self.server: asyncio.Transport | None = None
        self._early: list[bytes] = []
        self._late: deque[tuple[float, bytes]] = deque()
        self.closed = False

    async def dial(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(lambda: _Server(self), "127.0.0.1", self.proxy._to)
        except OSError:
            self.close()

    def to_server(self, data: bytes) -> None:
        proxy = self.proxy
        if proxy.swallow_requests or self.closed:
            return
        if proxy.requests_left is not None:
            data = data[: proxy.requests_left]
            proxy.requests_left -= len(data)
        if self.server is None:
            self._early.append(data)
        else:
            self.server.write(data)
        if proxy.requests_left == 0:
            proxy.requests_left = None
            self.close(after_writes=True)

    def connected(self, server: asyncio.Transport) -> None:
        self.server = server
        if self.closed:  # the client left while this was dialled
            server.abort()
            return
        server.write(b"".join(self._early))
        self._early.clear()

    def to_client(self, data: bytes) -> None:
        if self.proxy.swallow_replies:
            return
        now = asyncio.get_running_loop().time()
        if not self.proxy.delay_s and not self._late:
            self._deliver(data)
            return
        due = max(now + self.proxy.delay_s, self._late[-1][0] if self._late else now)
        self._late.append((due, data))
        if len(self._late) == 1:
            self._wake(due)

    def _wake(self, due: float) -> None:
        asyncio.get_running_loop().call_at(due, self._pass_on)

    def _pass_on(self) -> None:
        """Deliver what is due, in its order: timers of one moment have none."""
        now = asyncio.get_running_loop().time()
        while self._late and self._late[0][0] <= now:
            self._deliver(self._late.popleft()[1])
        if self._late:
            self._wake(self._late[0][0])

    def _deliver(self, data: bytes) -> None:
        proxy = self.proxy
        if self.closed or self.client is None:
            return
        if proxy.replies_left is not None:
            data = data[: proxy.replies_left]
            proxy.replies_left -= len(data)
        self.client.write(data)
        if proxy.replies_left == 0:
            proxy.replies_left = None
            self.close()

    def close(self, *, after_writes: bool = False) -> None:
        if self.closed:
            return
        self.closed = True
        self.proxy._pairs.discard(self)
        if self.client is not None:
            self.client.abort()
        if self.server is not None:
            if after_writes:
                self.server.close()
            else:
                self.server.abort()


class _Client(asyncio.Protocol):
    def __init__(self, pair: _Pair) -> None:
        self._pair = pair
        self._dialing: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._pair.client = cast("asyncio.Transport", transport)
        self._pair.proxy.accepted += 1
        self._pair.proxy._pairs.add(self._pair)
        self._dialing = asyncio.get_running_loop().create_task(self._pair.dial())

    def data_received(self, data: bytes) -> None:
        self._pair.to_server(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._pair.close()


class _Server(asyncio.Protocol):
    def __init__(self, pair: _Pair) -> None:
        self._pair = pair

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._pair.connected(cast("asyncio.Transport", transport))

    def data_received(self, data: bytes) -> None:
        self._pair.to_client(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._pair.close()


@asynccontextmanager
async def fault_proxy(port: int) -> AsyncGenerator[FaultProxy]:
    """Run a proxy before a server of this machine."""
    proxy = FaultProxy(port)
    await proxy.accept()
    try:
        yield proxy
    finally:
        await proxy.refuse()
        await asyncio.sleep(0.01)
