"""What is used of asyncpg, which has no types: connections, a pool, and what its failures mean."""

import re
from collections.abc import Mapping
from typing import Any, Final, Protocol, cast
from urllib.parse import parse_qsl, unquote, urlencode

import asyncpg  # pyright: ignore[reportMissingTypeStubs]

from gateway.core import urls
from gateway.core.errors import StoreError


class Connection(Protocol):
    """The part of asyncpg's connection that the stores use."""

    async def execute(self, query: str, *args: object, timeout: float | None = None) -> str: ...

    async def fetch(
        self, query: str, *args: object, timeout: float | None = None
    ) -> list[Mapping[str, Any]]: ...

    def terminate(self) -> None: ...


class Pool(Protocol):
    """The part of asyncpg's pool that the stores use."""

    async def acquire(self, *, timeout: float) -> Connection: ...

    async def release(self, connection: Connection) -> None: ...

    async def expire_connections(self) -> None: ...

    def terminate(self) -> None: ...


CONNECT_S: Final = 2.0
ANSWER_S: Final = 1.0
"""What a reply may take beyond the time of its statement."""
_IDLE_S = 60.0
_PORT = "5432"
_USUAL: Final = {"sslmode": "prefer", "target_session_attrs": "any"}
_driver = cast("Any", asyncpg)

FAILURES: Final[tuple[type[Exception], ...]] = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,  # also TimeoutError
)
"""All that a call to Postgres may raise."""
ANSWERED: Final[type[Exception]] = asyncpg.PostgresError
BROKEN: Final[tuple[type[Exception], ...]] = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.OperatorInterventionError,  # shutdown, crash, terminated; a cancelled query is told apart
    asyncpg.TooManyConnectionsError,
    OSError,
)
CLASHES: Final[tuple[type[Exception], ...]] = (
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
)
READ_ONLY: Final[type[Exception]] = asyncpg.ReadOnlySQLTransactionError
_QUERY_CANCELLED: Final[type[Exception]] = asyncpg.QueryCanceledError


async def connect(url: str, statement_s: float) -> Connection:
    """Open one connection within `CONNECT_S`."""
    return await _driver.connect(complete(url), **_options(url, statement_s))


async def make_pool(url: str, connections: int, statement_s: float) -> Pool:
    """Make a pool that opens its connections when they are needed."""
    return await _driver.create_pool(
        complete(url),
        min_size=0,
        max_size=connections,
        max_inactive_connection_lifetime=_IDLE_S,
        reset=_as_it_is,
        **_options(url, statement_s),
    )


def complete(url: str) -> str:
    """Return an address that leaves nothing open: the driver fills gaps from the environment (T-39)."""
    parts = urls.split(url)
    given = dict(parse_qsl(parts.query))
    hosts = [_with_port(host) for host in parts.hosts.split(",")] if parts.hosts else []
    if len(hosts) > 1:
        # Not before the path: the library that the driver reads addresses with takes no list of IPv6 hosts there.
        names, ports = zip(*(host.rsplit(":", 1) for host in hosts), strict=True)
        given |= {"host": ",".join(names), "port": ",".join(ports)}
        hosts = []
    elif not hosts:
        given.setdefault("port", _PORT)
    query = urlencode({**_USUAL, **given})
    login = f"{parts.login}@" if parts.login else ""
    return f"{parts.scheme}://{login}{''.join(hosts)}{parts.path}?{query}"


def _with_port(host: str) -> str:
    return host if re.search(r":[0-9]+\Z", host) else f"{host}:{_PORT}"


async def _as_it_is(connection: object) -> None:
    """Leave a connection as it is when it is given back: every setting ended with its transaction."""


def _options(url: str, statement_s: float) -> dict[str, Any]:
    return {
        "password": unquote(urls.split(url).password),
        "timeout": CONNECT_S,
        "command_timeout": statement_s + ANSWER_S,
        # Named statements do not survive a pooler between us and the server.
        "statement_cache_size": 0,
        "server_settings": {"application_name": "llm-gateway"},
    }


def is_lost(error: BaseException) -> bool:
    """Tell whether the connection itself is gone, or never was."""
    return isinstance(error, BROKEN) and not isinstance(error, _QUERY_CANCELLED)


def down(error: Exception) -> StoreError:
    """Return what callers are told; the driver's words hold no password, those about an address might."""
    if isinstance(error, ValueError) and not isinstance(error, OSError):
        return StoreError("state_unavailable", detail="the address of Postgres cannot be read")
    detail = f"Postgres: {type(error).__name__}: {error}".rstrip(": ")
    return StoreError("state_unavailable", detail=detail)
