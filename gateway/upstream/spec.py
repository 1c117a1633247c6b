"""What a caller says about an upstream and what it gets back: settings, the endpoint and the answer."""

from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

Headers = Sequence[tuple[bytes, bytes]]
Body = bytes | AsyncIterator[bytes] | None
Spawn = Callable[[Coroutine[Any, Any, None], str], object]
"""Starts background work that nobody awaits, under a name."""

UNSENT = ("nothing was sent",)
"""The arguments of the CancelledError of a request of which nothing has left."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Limits of the phases, in seconds.

    `connect_s` covers name, socket and TLS; `first_byte_s` the whole answer head; `idle_s` the gap between touches.
    """

    connect_s: float = 5.0
    pool_s: float = 5.0
    first_byte_s: float = 120.0
    idle_s: float = 60.0


@dataclass(frozen=True, slots=True)
class EndpointSpec:
    """One origin with one credential; built when the configuration loads.

    `base_url` is scheme://host[:port][/prefix]: only its origin is used, targets are absolute below the origin.
    `headers` holds the static headers, credentials included, and never Host, Content-Length or Connection.
    `transport` is "fast" or "httpx"; `proxy` and `http2` need "httpx".
    """

    base_url: str
    headers: tuple[tuple[bytes, bytes], ...] = field(default=(), repr=False)
    timeouts: Timeouts = Timeouts()
    max_connections: int = 1000
    max_waiting: int = 1000
    verify_tls: bool = True
    ca_file: str | None = None
    allow_private: bool = True
    transport: str = "fast"
    proxy: str | None = field(default=None, repr=False)
    http2: bool = False


class Answer(Protocol):
    """An answer whose final head has arrived; the body is read, or the answer aborted, by one owner."""

    @property
    def status(self) -> int:
        """The HTTP status; 400 and above are ordinary answers."""
        ...

    @property
    def headers(self) -> Headers:
        """The headers in order, names in lower case."""
        ...

    @property
    def content_type(self) -> bytes:
        """The media type in lower case without parameters; empty when absent."""
        ...

    @property
    def complete(self) -> bool:
        """Whether the message ended by its own framing, not by a close."""
        ...

    @property
    def repeated(self) -> bool:
        """Whether a stale connection made the request go out a second time, on a fresh one."""
        ...

    def header(self, name: bytes) -> bytes | None:
        """Return the first header of this lower-case name."""
        ...

    async def read(self) -> bytes:
        """Return all bytes that have come, at least one; empty at the end.

        Raises UpstreamError, phase body: upstream_truncated, upstream_timeout, deadline_exceeded,
        upstream_invalid_response.
        """
        ...

    async def flow(self, take: Callable[[], bool]) -> None:
        """Have `take` called for whatever comes, as it comes, until it returns False or the message ends.

        `take` empties `pending`. No task is switched to for it. Returns at once where that cannot be, and where
        something is to be read already.
        """
        ...

    @property
    def pending(self) -> list[bytes]:
        """What has come and was not read, for `take` of `flow` alone."""
        ...

    def at_hand(self, limit: int) -> bytes | None:
        """Return the whole rest if it is here and not above `limit` bytes; else it must be awaited."""
        ...

    async def read_all(self, limit: int) -> bytes:
        """Return the whole rest; UpstreamError upstream_invalid_response above `limit` bytes."""
        ...

    def touch(self) -> None:
        """Tell that real data came: the idle limit counts from here."""
        ...

    def abort(self) -> None:
        """Close the connection now; no effect after the end, or twice."""
        ...


class Endpoint(Protocol):
    """One origin and credential, ready to send."""

    @property
    def spec(self) -> EndpointSpec:
        """The settings this endpoint was made from."""
        ...

    @property
    def pool(self) -> object:
        """What endpoints of equal settings share; only its identity means something here."""
        ...

    async def send(
        self, method: bytes, target: bytes, headers: Headers, body: Body, deadline: float
    ) -> Answer:
        """Send one request and return when the final head of its answer has arrived.

        `target` is the absolute path below the origin with its query; `headers` the extras of this request;
        `deadline` an absolute time of the loop's clock. Raises UpstreamError with the phase pool, connect, send,
        first_byte or body: overloaded, upstream_unavailable, upstream_timeout, deadline_exceeded,
        upstream_invalid_response. ValueError for a target or header that must not go on the wire.
        """
        ...
