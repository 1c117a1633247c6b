"""Open a connection: resolve, connect, log in, ask who answers. Nothing here names a secret in an error."""

import asyncio
import logging
import socket
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from gateway.stores.redis.address import Address, Login
from gateway.stores.redis.wire import Connection, Part, Reply, ReplyError

_log = logging.getLogger("gateway")
_PRIMARY = b"master"


class Unusable(Exception):
    """A server that answered but cannot serve: it refused us, is loading, or only holds a copy."""


class Dialer:
    """Opens connections with one login; `login` may be replaced while it is used (RS-11).

    It warns of servers that drop what is kept when they are full, unless they `may_drop` it.
    """

    def __init__(self, address: Address, login: Login, *, may_drop: bool = False) -> None:
        self._tls = address.tls
        self._path = address.path
        self.login = login
        self._has_warned = may_drop
        self._lookups: dict[tuple[str, int], asyncio.Future[Any]] = {}

    async def open(self, host: str, port: int, *, primary: bool = True) -> Connection:
        """Connect to a server; raises OSError, or Unusable when it is no primary but has to be."""
        connection = await self._connect(host, port)
        try:
            facts = await _greet(connection, self.login, primary=primary)
        except BaseException:
            connection.abort()
            raise
        connection.server = facts.get(b"run_id", b"").decode("ascii", "replace")
        if primary:
            self._warn(facts)
        return connection

    def _warn(self, facts: Mapping[bytes, bytes]) -> None:
        policy = facts.get(b"maxmemory_policy", b"noeviction").decode("ascii", "replace")
        if policy != "noeviction" and not self._has_warned:
            self._has_warned = True
            _log.warning(
                "redis may drop what was spent: its maxmemory-policy is %s, not noeviction", policy
            )

    async def _connect(self, host: str, port: int) -> Connection:
        loop = asyncio.get_running_loop()
        if self._path:
            return (await loop.create_unix_connection(Connection, self._path))[1]
        failure = OSError("the name has no address")
        for ip in await self._resolve(host, port):
            try:
                _, connection = await loop.create_connection(
                    Connection, ip, port, ssl=self._tls, server_hostname=host if self._tls else None
                )
            except OSError as error:
                failure = error
                continue
            return connection
        raise failure

    async def _resolve(self, host: str, port: int) -> Sequence[str]:
        """Look a name up, anew for each attempt, but never twice at once: a lookup may hang for long."""
        lookup = self._lookups.get((host, port))
        if lookup is None:
            ask = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
            lookup = asyncio.get_running_loop().run_in_executor(None, ask)
            self._lookups[host, port] = lookup
            lookup.add_done_callback(lambda done: self._looked_up(host, port, done))
        found = await asyncio.shield(lookup)
        return [str(row[4][0]) for row in found]

    def _looked_up(self, host: str, port: int, done: asyncio.Future[Any]) -> None:
        self._lookups.pop((host, port), None)
        if not done.cancelled():
            done.exception()


async def _greet(connection: Connection, login: Login, *, primary: bool) -> Mapping[bytes, bytes]:
    """Log in and learn who answers, in one round trip; return what the server tells of itself."""
    hello: list[Part] = ["HELLO", 2]
    if login.password or login.username:
        hello += ["AUTH", login.username or "default", login.password]
    asked = [
        connection.ask(*hello, "SETNAME", "gateway"),
        connection.ask("INFO", "server", "memory"),
    ]
    if login.db:
        asked.append(connection.ask("SELECT", login.db))
    asked.append(connection.ask("PING"))
    greeting, about, *rest = await asyncio.gather(*asked)
    for reply in (greeting, *rest):
        if isinstance(reply, ReplyError):
            raise Unusable(str(reply))
    known: dict[bytes, Reply] = dict(zip(greeting[::2], greeting[1::2], strict=False))
    if primary and known.get(b"role", _PRIMARY) != _PRIMARY:
        raise Unusable("it is a read-only replica")
    # Who may not ask for it is served all the same: data lost in a restart is then seen by its absence alone.
    lines = b"" if isinstance(about, ReplyError) else bytes(about)
    facts = (line.partition(b":") for line in lines.splitlines())
    return {name: value for name, _, value in facts}
