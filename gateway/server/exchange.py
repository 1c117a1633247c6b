"""One request and its answer, without a framework: all that handlers know of inbound HTTP."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any, Protocol

from gateway.core.errors import GatewayError
from gateway.server.limits import ConnectionLimits

Headers = Sequence[tuple[bytes, bytes]]
"""Names in lower case."""
BLANKS = b" \t"
"""What may stand around the value of a header; parsers leave what is behind it."""


class Block(bytes):
    """Headers as finished lines, made where their bytes are known to be harmless; none is a framing header."""

    __slots__ = ()


Render = Callable[[GatewayError, str], bytes]
"""Writes the JSON body of an error answer; the string is the request id."""


class Exchange(Protocol):
    """A request whose head has arrived. Times are seconds of the loop's clock.

    `keep_alive` may be set to False before `start`: the connection then closes after the answer.

    A client that only shuts down its sending side is still answered; `gone`: nobody reads any more.
    """

    keep_alive: bool

    @property
    def task(self) -> asyncio.Task[None] | None:
        """The task that answers it, where whoever started it has told."""
        ...

    @property
    def method(self) -> str:
        """The method, upper case."""
        ...

    @property
    def raw_path(self) -> bytes:
        """The path as sent: no dot segment, no encoded or doubled slash, no control byte."""
        ...

    @property
    def query(self) -> bytes:
        """What follows the question mark, as it was sent."""
        ...

    @property
    def headers(self) -> Headers:
        """All headers in the order of their arrival."""
        ...

    @property
    def client(self) -> str:
        """The address of the peer; empty when it has none."""
        ...

    @property
    def received_at(self) -> float:
        """When the head was complete."""
        ...

    @property
    def request_id(self) -> str:
        """The caller's own `x-request-id` when it is harmless, else a new one."""
        ...

    @property
    def content_length(self) -> int | None:
        """The declared length of the body; None when it was not declared."""
        ...

    @property
    def has_body(self) -> bool:
        """Whether the head announces a body that is not empty."""
        ...

    @property
    def started(self) -> bool:
        """Whether `start` was called."""
        ...

    @property
    def ended(self) -> bool:
        """Whether `end` was called."""
        ...

    @property
    def gone(self) -> bool:
        """Whether the connection is lost while the answer was not at its end."""
        ...

    @property
    def bytes_out(self) -> int:
        """Bytes of the answer's content so far, without head and framing."""
        ...

    @property
    def congested(self) -> bool:
        """Whether the client reads too slowly: `drain` before the next `write`."""
        ...

    def header(self, name: bytes) -> bytes | None:
        """Return the first header of this name, without the blanks around it, which are no part of it."""
        ...

    def sent_any(self, names: frozenset[bytes]) -> bool:
        """Tell whether any header of these names was sent: one look instead of many."""
        ...

    def at_hand(self, limit: int) -> bytes | None:
        """Return the whole body if it has arrived and is not too large; None else."""
        ...

    async def read_body(self, limit: int) -> bytes:
        """Return the whole body; raises InputError.

        `request_too_large` at once when it is declared, else when the count passes `limit`;
        `request_timeout`, `invalid_http` (broken framing), `client_gone`.
        """
        ...

    def body_stream(self, limit: int) -> AsyncIterator[bytes]:
        """Yield the body as it arrives; the client is held up meanwhile; raises as `read_body`."""
        ...

    def start(self, status: int, headers: Headers | Block, *, length: int | None) -> None:
        """Set the head of the answer; it leaves together with the first bytes of the content.

        `length` None: a stream; its head leaves in the next turn of the loop at the latest. Framing
        headers are made here; `connection: close` among `headers` is obeyed. Raises ValueError for
        a header that would break the head.
        """
        ...

    def write(self, data: bytes) -> None:
        """Send content now; dropped when the client is gone."""
        ...

    async def drain(self) -> None:
        """Wait until the client has taken most of what was written, or is gone."""
        ...

    def end(self, data: bytes = b"") -> None:
        """Send the last content and complete the answer; cut when `length` was not reached."""
        ...

    def give(self, status: int, block: Block, body: bytes) -> None:
        """Give a whole answer at once: `start` and `end`."""
        ...

    def abort(self) -> None:
        """Cut the connection, so that the client can see that the answer is not complete."""
        ...

    def on_gone(self, callback: Callable[[], object]) -> None:
        """Call this once, from the loop, when the client is gone; never after `end` or `abort`."""
        ...


Handler = Callable[[Exchange], Coroutine[Any, Any, None]]


class Application(Protocol):
    """What the edge serves: one handler, its limits, and the form of its own error answers."""

    @property
    def handler(self) -> Handler:
        """Answers one exchange."""
        ...

    @property
    def limits(self) -> ConnectionLimits:
        """The bounds of connections."""
        ...

    @property
    def render(self) -> Render:
        """Writes error bodies for what never reached the handler."""
        ...
