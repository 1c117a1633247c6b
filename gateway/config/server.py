"""The sections `server`, `stores` and `telemetry`: what environment variables may override."""

import ipaddress
import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from gateway.config.base import Block, Count, Port, Seconds, Text
from gateway.config.references import MaskedUrl, Secret
from gateway.config.secret_rules import check_door_secret
from gateway.core.metadata import is_metadata

_HOST_NAME = re.compile(r"(?=.{1,253}\.?\Z)[a-z0-9_][a-z0-9_-]{0,62}(?:\.[a-z0-9_-]{1,63})*\.?\Z")
_NUMBERS = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)\Z")
_URL_PATH = re.compile(r"(?:/(?!/)(?:[A-Za-z0-9._~!$&'()*+,=:@-]|%[0-9A-Fa-f]{2})*)*\Z")
_DOT_SEGMENT = re.compile(r"(?:/|%2f|%5c)(?:\.|%2e){1,2}(?:/|%2f|%5c|\Z)", re.IGNORECASE)
STATE_SCHEMES = (
    "memory",
    "redis",
    "rediss",
    "unix",
    "redis+cluster",
    "rediss+cluster",
    "redis+sentinel",
    "rediss+sentinel",
)
DATABASE_SCHEMES = ("memory", "sqlite", "postgres", "postgresql")
_POSTGRES_SCHEMES = DATABASE_SCHEMES[2:]
CACHE_SCHEMES = (*STATE_SCHEMES, *_POSTGRES_SCHEMES)
_STORE_HOST = r"(?:[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
_STORE_HOSTS = rf"{_STORE_HOST}(?:,{_STORE_HOST})*"
_POSTGRES = re.compile(
    r"postgres(?:ql)?://[^@:/?#\s]+(?::[^@:/?#\s]*)?@"
    rf"(?P<hosts>(?:{_STORE_HOSTS})?)"
    r"/[^@/?#\s]+(?P<query>(?:\?[^#\s]*)?)\Z",
    re.ASCII,
)
_POSTGRES_ELSEWHERE = re.compile(r"[?&](?:user|password|passfile|dbname|database|service)=")
"""What would be read from a second place, or from a file that the address does not show."""
_STATE_FORMS = {
    "redis": rf"{_STORE_HOST}(?:/[0-9]*)?",
    "unix": r"/[^?#\s]+",
    "cluster": rf"{_STORE_HOSTS}/?",
    "sentinel": rf"{_STORE_HOSTS}/[\w.-]+(?:/[0-9]+)?",
}


def _state(url: MaskedUrl) -> MaskedUrl:
    url = _known_scheme(url, STATE_SCHEMES)
    base, _, kind = url.scheme.partition("+")
    form = _STATE_FORMS.get(kind or base.replace("rediss", "redis"))
    rest = url.reveal().partition(":")[2]
    user = r"//(?:[^@/?#\s]*@)?"
    if form and not re.fullmatch(rf"{user}(?:{form})(?:\?[^#\s]*)?", rest, re.ASCII):
        raise PydanticCustomError(
            "redis",
            "must be redis://USER:PASSWORD@HOST:PORT/N or a form of it that the manual lists, odd characters "
            "written as %XX",
        )
    return url


def _cache(url: MaskedUrl) -> MaskedUrl:
    if url.scheme in _POSTGRES_SCHEMES:
        return _database(url)
    if url.scheme not in STATE_SCHEMES:
        return _known_scheme(url, CACHE_SCHEMES)
    return _state(url)


def _database(url: MaskedUrl) -> MaskedUrl:
    return _known_scheme(url, DATABASE_SCHEMES)


def _known_scheme(url: MaskedUrl, known: tuple[str, ...]) -> MaskedUrl:
    if url.scheme not in known:
        words = {"scheme": url.scheme, "known": ", ".join(known)}
        raise PydanticCustomError("scheme", "must begin with one of: {known}", words)
    if url.scheme == "memory" and url.reveal() != "memory":
        raise PydanticCustomError("scheme", "memory takes no address")
    if url.scheme == "sqlite":
        file = url.reveal().removeprefix("sqlite:")
        # Programs disagree on whether sqlite:///x is /x or x.
        if not file.strip("/") or file.startswith("//"):
            raise PydanticCustomError("file", "must be sqlite:FILE, a path without //")
    if url.scheme in _POSTGRES_SCHEMES:
        _check_postgres(url.reveal())
    return url


def _check_postgres(url: str) -> None:
    """Refuse what the driver would read otherwise than it was meant: it splits at the first odd character.

    User and database stand there, so that the driver does not ask the environment for them (T-39).
    """
    match = _POSTGRES.match(url)
    known = match is not None and bool(match["hosts"] or "host=" in match["query"])
    if not known or _POSTGRES_ELSEWHERE.search(url):
        raise PydanticCustomError(
            "postgres",
            "must be postgres://USER:PASSWORD@HOST:PORT/DATABASE, odd characters written as %XX",
        )


def http_url(url: str) -> str:
    """Accept an http or https URL that all programs read alike; drop the slash at its end.

    No user, query or fragment, no host in odd numbers, no dot segment: what is written is what is called. No
    metadata service of a cloud: it gives credentials to whoever asks.
    """
    metadata = False
    try:
        parts = urlsplit(url)
        metadata = is_metadata(parts.hostname or "")
        known = parts.scheme in {"http", "https"} and parts.port != 0 and _is_host(parts.hostname)
        known = known and ("[" in parts.netloc) == (":" in (parts.hostname or ""))
    except ValueError:
        known = False
    if metadata:
        raise PydanticCustomError("metadata", "must not be a metadata service of a cloud")
    if not known or not url.isascii() or any(character.isspace() for character in url):
        raise PydanticCustomError("url", "must be a URL such as https://host/v1")
    if "@" in urlsplit(url).netloc:
        raise PydanticCustomError("url", "must not hold a user or password")
    if "?" in url or "#" in url:
        raise PydanticCustomError("url", "must not hold a query or fragment")
    url = url.rstrip("/")
    path = urlsplit(url).path
    if not _URL_PATH.match(path) or _DOT_SEGMENT.search(path):
        raise PydanticCustomError(
            "url", "must not hold dot segments, empty segments or odd characters"
        )
    return url


def _is_host(host: str | None) -> bool:
    """Tell whether a host is a plain name, a dotted IPv4 or an IPv6 address; a zone is neither."""
    if not host or "%" in host:
        return False
    if ":" in host or _NUMBERS.match(host.rstrip(".").rpartition(".")[2]):
        ipaddress.ip_address(host)
        return True
    return _HOST_NAME.match(host) is not None


HttpUrl = Annotated[Text, AfterValidator(http_url)]
Host = Annotated[str, Field(min_length=1, pattern=r"^[A-Za-z0-9.:%_-]*$")]


class Admin(Block):
    """The second listener: /metrics, /admin/* and /docs."""

    host: Host = Field(default="127.0.0.1", description="Address of the admin listener.")
    port: Port = Field(default=4001, description="Port of the admin listener; 0 takes a free one.")
    key: Annotated[Secret, AfterValidator(check_door_secret)] | None = Field(
        default=None,
        description="Key for /admin/*, 16 characters or more; without one only loopback may call.",
    )


class Server(Block):
    """The listener for clients, its limits and its time limits."""

    host: Host = Field(default="127.0.0.1", description="Address that clients connect to.")
    port: Port = Field(
        default=4000, description="Port that clients connect to; 0 takes a free one."
    )
    admin: Admin = Field(default_factory=Admin, description="The admin listener.")
    workers: int = Field(default=1, ge=1, le=256, description="Processes that share the port.")
    body_limit_bytes: Count = Field(
        default=20_971_520, description="Largest request body; a larger one is answered 413."
    )
    upload_limit_bytes: Count = Field(
        default=536_870_912,
        description="Largest file passed on to a provider; never held in memory.",
    )
    max_in_flight: Count = Field(
        default=2000,
        description="Requests at work at once in each worker; above it 503 `overloaded`, before any "
        "work. One of several tenants may hold eight times what is free, so that others find room.",
    )
    head_timeout_s: Seconds = Field(
        default=10, description="Time for the head of a request to arrive."
    )
    body_timeout_s: Seconds = Field(
        default=60, description="Time for the body of a request to arrive."
    )
    request_timeout_s: Seconds = Field(
        default=600,
        description="One deadline for a whole request; the header `x-gateway-timeout-ms` may only "
        "shorten it.",
    )
    ping_interval_s: Seconds = Field(
        default=15,
        description="A stream that was silent this long gets a comment line or ping event.",
    )
    announce_s: float = Field(
        default=0.3,
        ge=0,
        le=86_400,
        description="Time between telling `/readyz` that the process stops and refusing new requests: "
        "as long as a load balancer needs to notice.",
    )
    drain_s: float = Field(
        default=30,
        ge=0,
        le=86_400,
        description="Time that running requests get after that.",
    )


class Stores(Block):
    """Where counters and records are kept."""

    state: Annotated[MaskedUrl, AfterValidator(_state)] = Field(
        default_factory=lambda: MaskedUrl("memory"),
        description="Counters, limits and idempotency keys: `memory` for one process, else `redis://HOST:PORT/N`, "
        "`rediss://` over TLS, `unix://PATH`, `redis+cluster://HOST:PORT,HOST:PORT` or "
        "`redis+sentinel://HOST:PORT,HOST:PORT/SERVICE`. REDIS_URL is read when nothing is written.",
        json_schema_extra={"default": "memory"},
    )
    database: Annotated[MaskedUrl, AfterValidator(_database)] = Field(
        default_factory=lambda: MaskedUrl("sqlite:gateway.db"),
        description="Keys made at run time, and the ledger: `sqlite:FILE` (below the data directory), "
        "`postgres://USER:PASSWORD@HOST/DATABASE` (also `postgresql`) for several machines, or `memory`. "
        "DATABASE_URL is read when nothing is written and it names one of these.",
        json_schema_extra={"default": "sqlite:gateway.db"},
    )
    cache: Annotated[MaskedUrl, AfterValidator(_cache)] | None = Field(
        default=None,
        description="Answers of the semantic cache: any address as for `state`, or a Postgres as for `database`. "
        "They are kept where `state` is when nothing is written.",
    )
    lease_s: float = Field(
        default=60,
        ge=1,
        le=3600,
        description="How long a reservation of budgets and limits outlives the process that made it; then what the "
        "ledger knows of its run is charged, else all of it.",
    )
    on_state_down: Literal["closed", "open"] = Field(
        default="closed",
        description="What budgets and limits do while the state store is down: refuse (`closed`) "
        "or let pass within a small allowance of each process (`open`).",
    )


class Telemetry(Block):
    """What is logged and exported."""

    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least level that is logged."
    )
    log_bodies: bool = Field(
        default=False,
        description="Also log what exceptions say, which may quote a client. Bodies are not logged in "
        "this version.",
    )
    traces: int = Field(
        default=200,
        ge=0,
        le=100_000,
        description="Newest requests of a process whose way through their chain is kept for "
        "`GET /admin/traces/{request_id}`, and how many of a second at most, if that is above 100; 0 keeps none.",
    )
    otlp_endpoint: HttpUrl | None = Field(
        default=None,
        description="Where traces go; this version sends none. OTEL_EXPORTER_OTLP_ENDPOINT is read "
        "when nothing is written.",
    )
