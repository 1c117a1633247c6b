"""Where the primary is, as sentinels tell (RS-6)."""

import asyncio
from collections.abc import Callable, Sequence

from gateway.stores.redis.dial import Dialer, Unusable
from gateway.stores.redis.limits import Limits
from gateway.stores.redis.node import Node, Spawn
from gateway.stores.redis.patience import patience
from gateway.stores.redis.wire import Connection, Reply, ReplyError

_WATCH_S = 0.5


class Sentinels:
    """Asks sentinels for the primary; one that does not answer is asked last from then on."""

    def __init__(
        self, dialer: Dialer, hosts: Sequence[tuple[str, int]], service: str, limits: Limits
    ) -> None:
        self._dialer = dialer
        self._hosts = list(hosts)
        self._service = service
        self._each_s = limits.connect_s / 2
        self._connection: Connection | None = None

    async def primary(self) -> tuple[str, int]:
        """Return the address of the primary; raises Unusable when no sentinel knows it."""
        for _ in tuple(self._hosts):
            try:
                async with patience(self._each_s):
                    return await self._ask()
            except (OSError, UnicodeError, Unusable):
                self._next()
            except asyncio.CancelledError:
                self._next()
                raise
        raise Unusable("no sentinel names a primary")

    async def _ask(self) -> tuple[str, int]:
        if self._connection is None or self._connection.closed:
            self._connection = await self._dialer.open(*self._hosts[0], primary=False)
        reply: Reply = await self._connection.ask(
            "SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._service
        )
        if reply is None or isinstance(reply, ReplyError):
            raise Unusable("the sentinel knows no such service")
        host, port = reply
        return bytes(host).decode(), int(port)

    def _next(self) -> None:
        self.close()
        self._hosts.append(self._hosts.pop(0))

    def close(self) -> None:
        """Let the sentinel go."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()


class Guarded:
    """The primary of a service: found anew for every connection, left when sentinels name another."""

    def __init__(self, sentinels: Sentinels, dialer: Dialer, spawn: Spawn, limits: Limits) -> None:
        self._sentinels = sentinels
        self._dialer = dialer
        self._spawn = spawn
        self._closing = asyncio.Event()
        self._at: tuple[str, int] | None = None
        self._node = Node("redis", self._open, spawn, limits)
        self._node.on_change = self._noticed
        self._watching = False
        self.on_change: Callable[[], None] = lambda: None

    def find(self, key: str) -> Node:
        """Return the one server."""
        if not self._watching and not self._closing.is_set():
            self._watching = True
            self._spawn(self._watch(), "redis-sentinel")
        return self._node

    async def learn(self) -> None:
        """Know everything already."""

    def redirect(self, node: Node, words: Sequence[str]) -> Node | None:
        """Follow nobody: this is no cluster."""
        return None

    def refresh(self) -> None:
        """Know everything already."""

    @property
    def down(self) -> bool:
        """Whether there is no primary to talk to."""
        return bool(self._node.down)

    def _noticed(self) -> None:
        self.on_change()

    async def _open(self) -> Connection:
        self._at = await self._sentinels.primary()
        return await self._dialer.open(*self._at)

    async def _watch(self) -> None:
        try:
            while not self._closing.is_set():
                try:
                    async with asyncio.timeout(_WATCH_S):
                        await self._closing.wait()
                except TimeoutError:
                    await self._look()
        finally:
            self._watching = False
            self._sentinels.close()

    async def _look(self) -> None:
        if self._node.down:
            return  # whoever connects asks already
        try:
            at = await self._sentinels.primary()
        except Unusable:
            return
        if at != self._at:
            self._node.drop("is no longer the primary")

    def close(self) -> None:
        """Let go of everything."""
        self._closing.set()
        self._node.close()
        self._sentinels.close()
