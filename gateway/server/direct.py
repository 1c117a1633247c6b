"""An exchange that stands on the connection itself: no queue, and a future only to wait."""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from gateway.core.errors import InputError
from gateway.core.ids import accepted, new_request_id
from gateway.server.exchange import BLANKS, Block, Headers
from gateway.server.head import CLOSE, response_head, wants_close, whole_answer

_log = logging.getLogger("gateway.server")

_NONE, _LENGTH, _CHUNKED, _UNTIL_CLOSE = range(4)
_JOIN_BYTES = 16 << 10
_HOLD_BYTES = 64 << 10
_MAX_PARTS = 1024
_LAST_CHUNK = b"0\r\n\r\n"
_BODYLESS = (204, 304)


class Link(Protocol):
    """What an exchange asks of its connection."""

    transport: asyncio.Transport
    loop: asyncio.AbstractEventLoop
    client: str
    write_paused: bool
    closing: bool

    def want_body(self, exchange: "DirectExchange") -> None:
        """Let the body come."""
        ...

    async def writable(self) -> None:
        """Wait until the transport takes more, or is lost."""
        ...

    def flood(self) -> bool:
        """Tell whether more is buffered than any handler should have written."""
        ...

    def finished(self, exchange: "DirectExchange") -> None:
        """Note the end of an answer."""
        ...

    def cut(self, *, hard: bool) -> None:
        """Close without a proper end; `hard` resets."""
        ...


class DirectExchange:
    """A request on a guarded connection."""

    __slots__ = (
        "_callbacks",
        "_failure",
        "_framing",
        "_head",
        "_index",
        "_left",
        "_link",
        "_parts",
        "_request_id",
        "_waiter",
        "_wake_above",
        "buffered",
        "bytes_out",
        "complete",
        "content_length",
        "ended",
        "expects",
        "gone",
        "has_body",
        "headers",
        "hold_above",
        "http11",
        "keep_alive",
        "method",
        "query",
        "raw_path",
        "received",
        "received_at",
        "started",
        "task",
    )

    def __init__(
        self,
        link: Link,
        method: str,
        target: tuple[bytes, bytes],
        headers: Headers,
        index: dict[bytes, bytes],
    ) -> None:
        self._link = link
        self.method = method
        self.raw_path, self.query = target
        self.headers = headers
        self._index = index
        self.received_at = link.loop.time()
        self.content_length: int | None = None
        self.has_body = False
        self.keep_alive = True
        self.http11 = True
        self.expects = False  # the client waits for `100 Continue`
        self.complete = False  # the whole message has arrived
        self.received = 0  # bytes of the body so far
        self.buffered = 0
        self.hold_above = _HOLD_BYTES  # reading stops when more than this is buffered
        self.task: asyncio.Task[None] | None = None
        self.started = False
        self.ended = False
        self.gone = False
        self.bytes_out = 0
        self._parts: list[bytes | bytearray] = []
        self._wake_above = sys.maxsize  # bytes of body that are of interest to whoever waits
        self._waiter: asyncio.Future[None] | None = None
        self._failure = ""
        self._request_id = ""
        self._callbacks: list[Callable[[], object]] | None = None
        self._framing = _NONE
        self._left = 0  # bytes that the declared length still allows
        self._head = b""

    # ------------------------------------------------------------ the request

    @property
    def client(self) -> str:
        """The address of the peer."""
        return self._link.client

    @property
    def request_id(self) -> str:
        """The caller's own id when it is harmless, else a new one."""
        made = self._request_id
        if not made:
            own = self.header(b"x-request-id")
            made = own.decode() if own is not None and accepted(own) else new_request_id()
            self._request_id = made
        return made

    def header(self, name: bytes) -> bytes | None:
        """Return the first header of this name, without the blanks behind it."""
        value = self._index.get(name)
        return value.rstrip(BLANKS) if value else value

    def sent_any(self, names: frozenset[bytes]) -> bool:
        """Tell whether any header of these names was sent."""
        return not names.isdisjoint(self._index)

    def at_hand(self, limit: int) -> bytes | None:
        """Return the whole body if it is here and not too large."""
        parts = self._parts
        if self.complete and len(parts) == 1 and self.received <= limit:
            return bytes(parts[0])
        return None

    async def read_body(self, limit: int) -> bytes:
        """Return the whole body; raises InputError."""
        if not self.complete:
            if self.content_length is not None and self.content_length > limit:
                raise InputError("request_too_large")
            self.hold_above = limit
            self._link.want_body(self)
            while not self.complete and self.received <= limit:
                await self._wait(limit)
        if self.received > limit:
            raise InputError("request_too_large")
        body = b"".join(self._parts)
        self._parts = [body]
        return body

    async def body_stream(self, limit: int) -> AsyncIterator[bytes]:
        """Yield the body as it arrives; raises InputError."""
        if self.content_length is not None and self.content_length > limit:
            raise InputError("request_too_large")
        while True:
            parts = self._parts
            if parts:
                self._parts = []
                self.buffered = 0
                if self.received > limit:
                    raise InputError("request_too_large")
                yield b"".join(parts)
            elif self.complete:
                return
            else:
                self._link.want_body(self)
                await self._wait(self.received)

    async def _wait(self, above: int) -> None:
        """Wait for more than `above` bytes in all, or the end of the body; raises InputError."""
        if self._failure:
            raise InputError(self._failure)
        self._wake_above = above
        self._waiter = self._link.loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
            self._wake_above = sys.maxsize
        if self._failure:
            raise InputError(self._failure)

    # ------------------------------------------------------------ called by the connection

    def feed(self, data: bytes) -> None:
        """Take a piece of the body; many small ones cost no more than their bytes."""
        parts = self._parts
        if len(parts) < _MAX_PARTS:
            parts.append(data)
        elif len(parts) == _MAX_PARTS:
            parts.append(bytearray(data))
        else:
            parts[-1] += data
        size = len(data)
        self.buffered += size
        self.received += size
        if self.received > self._wake_above:
            self._wake()

    def finish_body(self) -> None:
        """Note that the whole message has arrived."""
        self.complete = True
        if self._waiter is not None:
            self._wake()

    def fail_body(self, code: str) -> None:
        """Note that the rest of the body will not come; whoever reads it gets this error code."""
        self._failure = code
        self.keep_alive = False
        self._wake()

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def lose(self) -> None:
        """Note that the client is gone, and tell whoever asked to be told."""
        if self.gone or self.ended:
            return
        self.gone = True
        self._head = b""
        if not self.complete:
            self.fail_body("client_gone")
        callbacks, self._callbacks = self._callbacks, None
        for callback in callbacks or ():
            self._link.loop.call_soon(self._tell, callback)

    def _tell(self, callback: Callable[[], object]) -> None:
        """Call back, unless the handler has come to its end meanwhile."""
        if not self.ended:
            callback()

    # ------------------------------------------------------------ the answer

    @property
    def congested(self) -> bool:
        """Whether the client reads too slowly."""
        return self._link.write_paused

    def start(self, status: int, headers: Headers | Block, *, length: int | None) -> None:
        """Set the head of the answer."""
        if self.started:
            raise RuntimeError("the answer was started before")
        link = self._link
        keep_alive = self.keep_alive and self.complete and not link.closing
        if wants_close(headers):
            keep_alive = False
            framing = b""
        else:
            framing = b"" if keep_alive and self.http11 else CLOSE
        if self.method == "HEAD" or status in _BODYLESS:
            if length is not None and status != 204:
                framing = b"content-length: %d\r\n%b" % (length, framing)
        elif length is not None:
            self._framing = _LENGTH
            self._left = length
            framing = b"content-length: %d\r\n%b" % (length, framing)
        elif self.http11:
            self._framing = _CHUNKED
            framing = b"transfer-encoding: chunked\r\n" + framing
        else:
            self._framing = _UNTIL_CLOSE
        self._head = response_head(status, headers, framing, link.loop.time())
        self.keep_alive = keep_alive
        self.started = True
        if length is None:
            link.loop.call_soon(self.flush)

    def flush(self) -> None:
        """Send the head when no content has taken it along."""
        head = self._head
        if head and not self.gone:
            self._head = b""
            self._link.transport.write(head)

    def probe(self) -> bool:
        """Send a byte that means nothing, if there is such a byte at this point of the answer."""
        if self._framing != _CHUNKED:
            return False
        self.flush()
        self._link.transport.write(b"0")
        return True

    def write(self, data: bytes) -> None:
        """Send content now; dropped when the client is gone."""
        if not self.started or self.ended:
            raise RuntimeError("content outside of an answer")
        if not data or self.gone:
            return
        link = self._link
        if link.transport.is_closing():
            self.lose()
            return
        if link.write_paused and link.flood():
            _log.error(
                "request %s: content written without waiting for the client", self.request_id
            )
            self.abort()
            return
        if self._framing == _CHUNKED:
            self._send_chunk(data, b"")
            return
        if self._fits(data):
            self._send(data)

    async def drain(self) -> None:
        """Wait until the client has taken most of what was written, or is gone."""
        await self._link.writable()

    def end(self, data: bytes = b"") -> None:
        """Send the last content and complete the answer."""
        if self.ended or not self.started:
            raise RuntimeError("an end outside of an answer")
        if self.gone:
            self.ended = True
            return
        if self._framing == _CHUNKED:
            self._send_chunk(data, _LAST_CHUNK)
        elif self._fits(data):
            self._send(data)
            if self._left:
                _log.error("request %s: content short of its length", self.request_id)
                self.abort()
        if self.gone:
            return
        self.ended = True
        self._callbacks = None
        self._link.finished(self)

    def give(self, status: int, block: Block, body: bytes) -> None:
        """Give a whole answer: in one piece where nothing is out of the ordinary."""
        link = self._link
        if (
            self.started
            or self.gone
            or link.closing
            or not (self.keep_alive and self.complete and self.http11)
            or self.method == "HEAD"
            or status in _BODYLESS
            or len(body) > _JOIN_BYTES
        ):
            self.start(status, block, length=len(body))
            self.end(body)
            return
        self.started = self.ended = True
        self.bytes_out = len(body)
        self._callbacks = None
        link.transport.write(whole_answer(status, block, body, link.loop.time()))
        link.finished(self)

    def _fits(self, data: bytes) -> bool:
        """Take content off the declared length; cut the connection rather than send too much."""
        if self._framing == _LENGTH:
            self._left -= len(data)
            if self._left < 0:
                _log.error("request %s: content beyond its length", self.request_id)
                self.abort()
                return False
        return True

    def _send(self, data: bytes) -> None:
        """Send content as it stands, with the head if that is due."""
        head = self._head
        if self._framing == _NONE:
            data = b""
        else:
            self.bytes_out += len(data)
        if not head:
            self._link.transport.write(data)
            return
        self._head = b""
        if len(data) > _JOIN_BYTES:
            self._link.transport.writelines((head, data))
        else:
            self._link.transport.write(head + data)

    def _send_chunk(self, data: bytes, tail: bytes) -> None:
        """Send content as a chunk, or only `tail` when there is none."""
        head = self._head
        self._head = b""
        size = len(data)
        self.bytes_out += size
        if size > _JOIN_BYTES:
            lines = (b"%b%x\r\n" % (head, size), data, b"\r\n" + tail)
            self._link.transport.writelines(lines)
        elif size:
            self._link.transport.write(b"%b%x\r\n%b\r\n%b" % (head, size, data, tail))
        else:
            self._link.transport.write(head + tail)

    def abort(self) -> None:
        """Cut the connection, visibly short of the end."""
        if self.ended or self.gone:
            return
        self.gone = True
        self._head = b""
        self._callbacks = None
        self._link.cut(hard=self._framing == _UNTIL_CLOSE)

    def on_gone(self, callback: Callable[[], object]) -> None:
        """Call this once as soon as the client is gone."""
        if self.ended:
            return
        if self.gone:
            self._link.loop.call_soon(self._tell, callback)
        elif self._callbacks is None:
            self._callbacks = [callback]
        else:
            self._callbacks.append(callback)
