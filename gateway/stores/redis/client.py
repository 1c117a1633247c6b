"""Redis for the stores: a command or a script by key, in time or not at all.

Every failure is Refused, a StoreError `state_unavailable`.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, Protocol

from gateway.stores.redis.address import Address, parse
from gateway.stores.redis.cluster import Cluster
from gateway.stores.redis.dial import Dialer
from gateway.stores.redis.failure import Reason, Refused, Unwatched, Watcher
from gateway.stores.redis.limits import Limits
from gateway.stores.redis.node import Node, Spawn
from gateway.stores.redis.scripts import Script, load
from gateway.stores.redis.sentinel import Guarded, Sentinels
from gateway.stores.redis.wire import Part, Pending, Reply, ReplyError

_HOPS: Final = 5
_NOBODY: Final = "no node of redis serves the key"
_AGAIN_S: Final = 0.005
_NOT_SERVING: Final = frozenset({"READONLY", "LOADING", "MASTERDOWN", "NOAUTH"})


class _Place(Protocol):
    """Which server serves a key. `on_change` is called when `down` may have changed."""

    on_change: Callable[[], None]

    @property
    def down(self) -> bool: ...

    def find(self, key: str) -> Node | None: ...

    async def learn(self) -> None: ...

    def redirect(self, node: Node, words: Sequence[str]) -> Node | None: ...

    def refresh(self) -> None: ...

    def close(self) -> None: ...


class _Single:
    """One server for all keys."""

    def __init__(self, address: Address, dialer: Dialer, spawn: Spawn, limits: Limits) -> None:
        host, port = address.hosts[0] if address.hosts else (address.path, 0)
        name = f"redis {host}:{port}" if address.hosts else "redis"
        self._node = Node(name, lambda: dialer.open(host, port), spawn, limits)
        self._node.on_change = self._noticed
        self.on_change: Callable[[], None] = lambda: None

    @property
    def down(self) -> bool:
        return bool(self._node.down)

    def _noticed(self) -> None:
        self.on_change()

    def find(self, key: str) -> Node:
        return self._node

    async def learn(self) -> None:
        return

    def redirect(self, node: Node, words: Sequence[str]) -> Node | None:
        return None

    def refresh(self) -> None:
        return

    def close(self) -> None:
        self._node.close()


class _Link:
    """What the clients of one address share: one connection for each server."""

    def __init__(self, address: Address, spawn: Spawn, limits: Limits) -> None:
        self.limits = limits
        self.dialer = Dialer(address, address.login, may_drop=limits.may_drop)
        self.users = 0
        self.watcher: Watcher = Unwatched()
        self._address = address
        self._spawn = spawn
        self._place: _Place | None = None

    @property
    def place(self) -> _Place:
        """Where servers are found; made with the first call, inside its loop."""
        if self._place is None:
            self._place = self._open()
            self._place.on_change = self.changed
        return self._place

    def changed(self) -> None:
        """Tell the watcher how things stand."""
        self.watcher.down(is_down=self._place is not None and self._place.down)

    def _open(self) -> _Place:
        address, common = self._address, (self.dialer, self._spawn, self.limits)
        if address.kind == "cluster":
            return Cluster(address.hosts, *common)
        if address.kind == "sentinel":
            asking = Dialer(address, address.sentinel_login)
            sentinels = Sentinels(asking, address.hosts, address.service, self.limits)
            return Guarded(sentinels, *common)
        return _Single(address, *common)

    def close(self) -> None:
        """Drop all connections."""
        self.watcher = Unwatched()
        if self._place is not None:
            self._place.close()


_links: dict[tuple[str, Spawn, Limits], _Link] = {}


class Client:
    """A user of Redis, of a sentinels' service or of a cluster. Connects with the first call.

    Clients of one address with one `spawn`, which starts background work under a name, share their connections. All
    calls are commands that may be sent twice; one that may not says `again=False`, and fails when the connection is
    lost.
    """

    def __init__(self, url: str, spawn: Spawn, limits: Limits | None = None) -> None:
        address = parse(url)
        own = Limits() if limits is None else limits
        own = own._replace(
            command_s=address.command_s or own.command_s,
            connect_s=address.connect_s or own.connect_s,
        )
        self._key = (url, spawn, own)
        self._link: _Link | None = _links.setdefault(self._key, _Link(address, spawn, own))
        self._link.users += 1

    @property
    def command_s(self) -> float:
        """How long a call may take, in seconds."""
        return self._key[2].command_s

    def command(self, key: str, *parts: Part, again: bool = True) -> Coroutine[Any, Any, Reply]:
        """Send a command to whichever server has `key`; `parts` is all of it, as in "GET", key."""
        return self.call(key, parts, again=again)

    def script(
        self,
        name: str,
        keys: Sequence[str],
        args: Sequence[Part],
        *,
        identified: bool = False,
        again: bool = True,
    ) -> Coroutine[Any, Any, Reply]:
        """Run `scripts/<name>.lua`; all keys are of one tenant (RS-8).

        `identified`: ARGV[1] is the identity of the server process, which changes when it restarts or another
        takes its place; `args` follow.
        """
        script = load(name)
        server = ("",) if identified else ()
        parts: tuple[Part, ...] = ("EVALSHA", script.sha, len(keys), *keys, *server, *args)
        server_at = 3 + len(keys) if identified else 0
        return self.call(keys[0], parts, server_at=server_at, again=again, script=script)

    async def call(
        self,
        key: str,
        parts: tuple[Part, ...],
        *,
        server_at: int = 0,
        again: bool = True,
        script: Script | None = None,
    ) -> Reply:
        """Send the parts of a command to whichever server has `key`; `script` is what it runs by name.

        `server_at`: where among the parts the identity of the server is put, 0: nowhere.
        """
        link = self._link
        if link is None:
            raise Refused("down", "the connection to redis is closed")
        try:
            place = link.place
            node = place.find(key)
            if node is None:
                await place.learn()
                node = place.find(key)
                if node is None:
                    raise Refused("refused", _NOBODY)
            pending = Pending(node.loop.create_future(), parts, server_at, again)
            node.submit(pending)
            reply = await pending.future
            if type(reply) is not ReplyError:
                return reply
            return await _elsewhere(link, key, node, pending, reply, script)
        except Refused as error:
            link.watcher.failed(error.reason)
            raise

    async def aclose(self) -> None:
        """Refuse later calls; the last user drops the connections."""
        link, self._link = self._link, None
        if link is not None:
            link.users -= 1
            if not link.users:
                del _links[self._key]
                link.close()


def log_in_as(url: str, spawn: Spawn, new: str) -> None:
    """Let the connections of an address, from the next one on, log in as another address says (RS-11)."""
    for (address, owner, _), link in _links.items():
        if address == url and owner == spawn:
            link.dialer.login = parse(new).login


def watch(url: str, spawn: Spawn, watcher: Watcher) -> None:
    """Tell a watcher from now on how the connections of an address fare."""
    for (address, owner, _), link in _links.items():
        if address == url and owner == spawn:
            link.watcher = watcher
            link.changed()


async def _elsewhere(
    link: _Link,
    key: str,
    node: Node,
    pending: Pending,
    error: ReplyError,
    script: Script | None,
) -> Reply:
    """Do what an error asks for: send the script too, ask another server, try again; else raises Refused."""
    place, hops, until = link.place, 0, node.loop.time() + link.limits.command_s
    while hops < _HOPS:
        words = str(error).split(" ")
        pending = pending.anew(node.loop.create_future())
        following: Node | None = node
        match words[0]:
            case "NOSCRIPT" if script is not None:
                pending.parts = ("EVAL", script.source, *pending.parts[2:])
                hops += 1
            case "MOVED" | "ASK":
                following = place.redirect(node, words)
                pending.asking = words[0] == "ASK"
                hops += 1
            case "TRYAGAIN" if node.loop.time() + _AGAIN_S < until:
                # The slot moves just now, and its keys are on both sides.
                await asyncio.sleep(_AGAIN_S)
                following = place.find(key)
            case word:
                if word in _NOT_SERVING:
                    node.drop(f"cannot be used: {error}")
                elif word == "CLUSTERDOWN":
                    place.refresh()
                reason: Reason = "full" if word == "OOM" else "refused"
                raise Refused(reason, f"{node.name}: {error}")
        if following is None:
            break
        node = following
        node.submit(pending)
        reply = await pending.future
        if type(reply) is not ReplyError:
            return reply
        error = reply
    raise Refused("refused", _NOBODY)
