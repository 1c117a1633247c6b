"""State addresses: redis://, rediss://, unix://, redis+cluster://, redis+sentinel://; rediss is TLS."""

import ssl
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast
from urllib.parse import urlsplit

from redis import RedisError
from redis.asyncio.connection import SSLConnection, parse_url

from gateway.core.errors import StoreError

_PORT: Final = 6379
_SENTINEL_PORT: Final = 26379
_KINDS: Final = {"": "standalone", "cluster": "cluster", "sentinel": "sentinel"}


@dataclass(frozen=True, slots=True)
class Login:
    """What a server wants to know of us."""

    username: str = ""
    password: str = field(default="", repr=False)
    db: int = 0


@dataclass(frozen=True, slots=True)
class Address:
    """A parsed state address. `path` is a Unix socket; `service` what sentinels call the primary;
    `sentinel_login` is for themselves (`?sentinel_password=`).

    `command_s` and `connect_s` None: the address does not say (`?socket_timeout=`, `?socket_connect_timeout=`).
    """

    kind: Literal["standalone", "cluster", "sentinel"]
    hosts: tuple[tuple[str, int], ...]
    login: Login
    path: str = ""
    service: str = ""
    sentinel_login: Login = Login()
    tls: ssl.SSLContext | None = None
    command_s: float | None = None
    connect_s: float | None = None


def parse(url: str) -> Address:
    """Read a state address; raises StoreError, which quotes nothing of it."""
    try:
        return _parse(url)
    except (ValueError, OSError, KeyError, RedisError) as error:
        detail = f"the state address cannot be used ({type(error).__name__})"
        raise StoreError("state_unavailable", detail=detail) from None


def _parse(url: str) -> Address:
    scheme, _, rest = url.partition("://")
    base, _, kind = scheme.partition("+")
    place, mark, query = rest.partition("?")
    netloc, _, path = place.partition("/")
    service, hosts = "", ()
    if base == "unix":
        options = _options(url)
    else:
        if kind == "sentinel":
            service, _, path = path.partition("/")
        user, at, names = netloc.rpartition("@")
        port = _SENTINEL_PORT if kind == "sentinel" else _PORT
        hosts = tuple(_host(name, port) for name in names.split(","))
        options = _options(f"{base}://{user}{at}localhost/{path}{mark}{query}")
    if (kind == "sentinel") != bool(service) or (not kind and len(hosts) > 1):
        raise ValueError("only sentinels name a service, only groups have several hosts")
    return Address(
        kind=cast("Any", _KINDS[kind]),
        hosts=hosts,
        login=Login(
            options.get("username") or "",
            options.get("password") or "",
            int(options.get("db") or 0),
        ),
        path=options.get("path") or "",
        service=service,
        sentinel_login=Login(
            str(options.get("sentinel_username", "")), str(options.get("sentinel_password", ""))
        ),
        tls=_context(options) if base == "rediss" else None,
        command_s=options.get("socket_timeout"),
        connect_s=options.get("socket_connect_timeout"),
    )


def _host(name: str, default: int) -> tuple[str, int]:
    parts = urlsplit(f"//{name}")
    if not parts.hostname:
        raise ValueError("a host is missing")
    return parts.hostname, parts.port or default


def _options(url: str) -> dict[str, Any]:
    return dict(cast("Any", parse_url(url)))


def _context(options: dict[str, Any]) -> ssl.SSLContext:
    wanted = {name: value for name, value in options.items() if name.startswith("ssl_")}
    return cast("Any", SSLConnection(**wanted)).ssl_context.get()
