"""Which node of a cluster serves which key (RS-9)."""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Final

from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot

from gateway.stores.redis.dial import Dialer, Unusable
from gateway.stores.redis.failure import Refused
from gateway.stores.redis.limits import Limits
from gateway.stores.redis.node import Node, Spawn
from gateway.stores.redis.patience import patience
from gateway.stores.redis.wire import Reply, ReplyError

_At = tuple[str, int]
_PAUSE_S: Final = 0.1


class Cluster:
    """The primaries of a cluster by slot. The map is learnt in the background, and anew when it proves wrong."""

    def __init__(self, hosts: Sequence[_At], dialer: Dialer, spawn: Spawn, limits: Limits) -> None:
        self._seeds = tuple(hosts)
        self._dialer = dialer
        self._spawn = spawn
        self._limits = limits
        self._nodes: dict[_At, Node] = {}
        self._slots: list[Node | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
        self._learning = False
        self._down = ""
        self._told = asyncio.Event()
        self._closing = asyncio.Event()
        self.on_change: Callable[[], None] = lambda: None

    def find(self, key: str) -> Node | None:
        """Return the node that serves a key; None: not known yet."""
        return self._slots[key_slot(key.encode())]

    async def learn(self) -> None:
        """Wait for the map; raises Refused when there is none in time."""
        if self._closing.is_set() or self._down:
            raise _refusal(self._down or "is closed")
        self.refresh()
        try:
            async with patience(self._limits.command_s):
                await self._told.wait()
        except TimeoutError:
            raise _refusal("did not answer in time") from None
        if self._down:
            raise _refusal(self._down)

    def redirect(self, node: Node, words: Sequence[str]) -> Node | None:
        """Follow MOVED or ASK to another node; `words` is the reply: its code, the slot, the address."""
        if len(words) != 3:
            return None
        host, _, port = words[2].rpartition(":")
        own_host = next((at[0] for at, known in self._nodes.items() if known is node), "")
        there = self._node((host.strip("[]") or own_host, int(port)))
        if words[0] == "MOVED":
            self._slots[int(words[1])] = there
            self.refresh()
        return there

    def _node(self, at: _At) -> Node:
        node = self._nodes.get(at)
        if node is None:
            node = Node(
                f"redis {at[0]}:{at[1]}", lambda: self._dialer.open(*at), self._spawn, self._limits
            )
            node.on_change = self._noticed
            self._nodes[at] = node
        return node

    def refresh(self) -> None:
        """Learn the map anew, in the background."""
        if not self._learning and not self._closing.is_set():
            self._learning = True
            self._spawn(self._learn(), "redis-cluster")

    async def _learn(self) -> None:
        """Read the map until every node in it answers."""
        try:
            while not self._closing.is_set():
                try:
                    self._apply(*await self._ask())
                    self._down = ""
                except Unusable as error:
                    self._down = "" if any(self._slots) else str(error)
                self._told.set()
                self.on_change()
                if any(self._slots) and not any(node.down for node in self._mapped()):
                    return
                await self._wait(_PAUSE_S * random.uniform(0.5, 1.0))  # noqa: S311
        finally:
            self._learning = False
            self._told.clear()

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._closing.wait()
        except TimeoutError:
            return

    async def _ask(self) -> tuple[_At, Reply]:
        """Return who answered, and what it says of the slots."""
        known = [at for at, node in self._nodes.items() if not node.down]
        random.shuffle(known)
        for at in dict.fromkeys((*known, *self._seeds)):
            try:
                async with patience(self._limits.connect_s):
                    connection = await self._dialer.open(*at, primary=False)
                    try:
                        reply: Reply = await connection.ask("CLUSTER", "SLOTS")
                    finally:
                        connection.abort()
            except (OSError, UnicodeError, Unusable):
                continue
            if not isinstance(reply, ReplyError) and reply:
                return at, reply
        raise Unusable("no node of the cluster answers")

    def _apply(self, asked: _At, rows: Reply) -> None:
        slots: list[Node | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
        for first, last, primary, *_ in rows:
            host = bytes(primary[0] or b"").decode() or asked[0]
            node = self._node((host, int(primary[1])))
            slots[first : last + 1] = [node] * (last + 1 - first)
        self._slots = slots
        mapped = self._mapped()
        for at, node in tuple(self._nodes.items()):
            if node not in mapped and (node.down or not len(node)):
                node.close()
                del self._nodes[at]

    @property
    def down(self) -> bool:
        """Whether a part of the keys cannot be reached."""
        return bool(self._down) or any(node.down for node in self._mapped())

    def _noticed(self) -> None:
        if any(node.down for node in self._mapped()):
            self.refresh()
        self.on_change()

    def _mapped(self) -> set[Node]:
        return {node for node in self._slots if node is not None}

    def close(self) -> None:
        """Let go of everything."""
        self._closing.set()
        self._told.set()
        for node in self._nodes.values():
            node.close()


def _refusal(why: str) -> Refused:
    return Refused("down", f"the redis cluster: {why}")
