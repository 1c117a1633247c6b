"""An exchange that keeps a copy of its answer, and whose work outlives the client once it is held."""

import asyncio
from collections.abc import AsyncIterator, Callable

from gateway.core.errors import InputError
from gateway.core.receipts import Answer
from gateway.server.exchange import Block, Exchange, Headers
from gateway.server.fingerprint import BodyDigest

_KEPT = frozenset({
    b"content-type", b"content-disposition", b"cache-control", b"x-accel-buffering",
    b"x-gateway-cache", b"x-gateway-model",
})  # fmt: skip
"""The headers of an answer that belong to its content and are given again with it."""


class Recording:
    """Passes a request and its answer on; copies at most `limit` bytes of content.

    Until `hold` the client's leaving is told as it comes. After it nobody learns of that any more: what is written
    goes into the copy alone.
    """

    def __init__(self, exchange: Exchange, limit: int) -> None:
        self._inner = exchange
        self._limit = limit
        self._held = False
        self._callbacks: list[Callable[[], object]] = []
        self._body: bytes | None = None
        self._digest: BodyDigest | None = None
        self._status = 0
        self._headers: Headers | Block = ()
        self._length: int | None = None
        self._parts: list[bytes] = []
        self._size = 0
        self._aborted = False
        self.keep_alive = exchange.keep_alive
        self.started = False
        self.ended = False
        self.body_digest = ""

    def hold(self) -> None:
        """From now on the work goes on without the client."""
        self._held = True

    def answer(self) -> Answer | None:
        """Return the answer for another time; None when it is too large, or did not come to its end."""
        if not self.ended or self._aborted or self._size > self._limit:
            return None
        if self._length is not None and self._size != self._length:
            return None
        headers = tuple(pair for pair in _pairs(self._headers) if pair[0] in _KEPT)
        return Answer(self._status, headers, b"".join(self._parts), self._length is None)

    # ------------------------------------------------------------ the request

    @property
    def task(self) -> asyncio.Task[None] | None:
        return self._inner.task

    @property
    def method(self) -> str:
        return self._inner.method

    @property
    def raw_path(self) -> bytes:
        return self._inner.raw_path

    @property
    def query(self) -> bytes:
        return self._inner.query

    @property
    def headers(self) -> Headers:
        return self._inner.headers

    @property
    def client(self) -> str:
        return self._inner.client

    @property
    def received_at(self) -> float:
        return self._inner.received_at

    @property
    def request_id(self) -> str:
        return self._inner.request_id

    @property
    def content_length(self) -> int | None:
        return self._inner.content_length

    @property
    def has_body(self) -> bool:
        return self._inner.has_body

    def header(self, name: bytes) -> bytes | None:
        return self._inner.header(name)

    def sent_any(self, names: frozenset[bytes]) -> bool:
        return self._inner.sent_any(names)

    def at_hand(self, limit: int) -> bytes | None:
        """Return nothing: a body is read through this copy, which takes its digest."""
        del limit
        return None

    async def read_body(self, limit: int) -> bytes:
        """Return the whole body, as often as it is asked for; raises InputError."""
        if self._body is None:
            body = await self._inner.read_body(limit)
            seen = BodyDigest(self.header(b"content-type"))
            seen.feed(body)
            self.body_digest = seen.value()
            self._body = body
        if len(self._body) > limit:
            raise InputError("request_too_large")
        return self._body

    async def body_stream(self, limit: int) -> AsyncIterator[bytes]:
        """Yield the body as it arrives, or once more when it was read; raises InputError."""
        if self._body is not None:
            if self._body:
                yield await self.read_body(limit)
            return
        seen = BodyDigest(self.header(b"content-type"))
        async for part in self._inner.body_stream(limit):
            seen.feed(part)
            yield part
        self.body_digest = seen.value()

    # ------------------------------------------------------------ the client

    @property
    def gone(self) -> bool:
        """Whether nobody waits for the answer: while it is held, only when it was cut from this side."""
        return self._aborted if self._held else self._inner.gone

    @property
    def left(self) -> bool:
        """Whether the client left by itself."""
        return self._inner.gone and not self._aborted

    def on_gone(self, callback: Callable[[], object]) -> None:
        """Call this once when the client is gone, unless the work is held by then."""
        if not self._callbacks:
            self._inner.on_gone(self._left)
        self._callbacks.append(callback)

    def _left(self) -> None:
        if not self._held:
            for callback in self._callbacks:
                callback()

    # ------------------------------------------------------------ the answer

    @property
    def bytes_out(self) -> int:
        return self._inner.bytes_out

    @property
    def congested(self) -> bool:
        """Whether a client that is still there reads too slowly."""
        return not self._inner.gone and self._inner.congested

    def start(self, status: int, headers: Headers | Block, *, length: int | None) -> None:
        if self.started:
            raise RuntimeError("the answer was started before")
        self.started = True
        self._status, self._headers, self._length = status, headers, length
        if not self._inner.gone:
            self._inner.keep_alive = self.keep_alive
            self._inner.start(status, headers, length=length)

    def write(self, data: bytes) -> None:
        self._copy(data)
        if not self._inner.gone:
            self._inner.write(data)

    async def drain(self) -> None:
        if not self._inner.gone:
            await self._inner.drain()

    def end(self, data: bytes = b"") -> None:
        self._copy(data)
        self.ended = True
        if not self._inner.gone:
            self._inner.end(data)

    def give(self, status: int, block: Block, body: bytes) -> None:
        self.start(status, block, length=len(body))
        self.end(body)

    def abort(self) -> None:
        self._aborted = True
        self._inner.abort()

    def _copy(self, data: bytes) -> None:
        self._size += len(data)
        if self._size <= self._limit:
            self._parts.append(data)
        else:
            self._parts.clear()


def _pairs(headers: Headers | Block) -> Headers:
    if not isinstance(headers, Block):
        return headers
    cut = (line.partition(b": ") for line in headers.split(b"\r\n")[:-1])
    return [(name, value) for name, _, value in cut]
