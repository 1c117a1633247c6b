"""The same exchange on ASGI, so that handlers run under any ASGI server.

The server owns parsing, framing and idle connections there; this file keeps the rest.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, MutableMapping
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from gateway.core.errors import GatewayError, InputError
from gateway.core.ids import accepted, new_request_id
from gateway.server.exchange import BLANKS, Block, Handler, Headers, Render
from gateway.server.head import checked_lines, wants_close
from gateway.server.limits import ConnectionLimits
from gateway.server.request import check_single, split_target

_log = logging.getLogger("gateway.server")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
StartTask = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]


_WATCH_AFTER_S = 0.02

T = TypeVar("T")


class AnswerCutError(Exception):
    """Tells the ASGI server to cut the connection: the answer must not look complete."""


class _Rest(Generic[T]):
    """The rest of an awaitable that was begun outside of `await`."""

    def __init__(self, steps: Generator[Any, Any, T], pending: object) -> None:
        self._steps = steps
        self._pending = pending

    def __await__(self) -> Generator[Any, Any, T]:
        try:
            yield self._pending
        except BaseException as error:
            self._steps.throw(error)
            raise
        return (yield from self._steps)


class AsgiExchange:
    """An exchange over ASGI events.

    `write` sends at once; when the server makes it wait, `drain` sends the rest and what follows
    queues up. A lost client is noticed once the body was read and someone asked `on_gone`.
    """

    __slots__ = (
        "_begin_watch",
        "_bodyless",
        "_callbacks",
        "_complete",
        "_index",
        "_left",
        "_limits",
        "_loop",
        "_queue",
        "_receive",
        "_received",
        "_request_id",
        "_send",
        "_start_task",
        "_suspended",
        "_watcher",
        "aborted",
        "bytes_out",
        "client",
        "content_length",
        "ended",
        "gone",
        "has_body",
        "headers",
        "keep_alive",
        "method",
        "query",
        "raw_path",
        "received_at",
        "started",
        "task",
    )

    def __init__(
        self, asgi: tuple[Scope, Receive, Send], limits: ConnectionLimits, start_task: StartTask
    ) -> None:
        scope, self._receive, self._send = asgi
        self._start_task = start_task
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self.method: str = scope["method"]
        raw = scope.get("raw_path") or quote(scope["path"]).encode()
        query = scope["query_string"]
        self.headers: Headers = tuple(scope["headers"])
        self.keep_alive = True
        index = dict(self.headers)
        if len(index) != len(self.headers):
            index = dict(self.headers[::-1])  # of several the first counts
            check_single(self.headers)
        self._index = index
        self.raw_path, self.query = split_target(raw + b"?" + query if query else raw)
        peer = scope.get("client")
        self.client = str(peer[0]) if peer else ""
        self.received_at = self._loop.time()
        length = index.get(b"content-length")
        self.content_length = int(length) if length is not None else None
        self.has_body = bool(self.content_length) or b"transfer-encoding" in index
        self.task: asyncio.Task[None] | None = None
        self.started = False
        self.ended = False
        self.gone = False
        self.bytes_out = 0
        self.aborted = False
        self._request_id = ""
        self._received = 0
        self._complete = not self.has_body
        self._left: int | None = None
        self._bodyless = self.method == "HEAD"
        self._suspended: _Rest[None] | None = None
        self._queue: deque[Message] = deque()
        self._callbacks: list[Callable[[], object]] = []
        self._begin_watch: asyncio.TimerHandle | None = None
        self._watcher: asyncio.Task[None] | None = None

    # ------------------------------------------------------------ the request

    @property
    def request_id(self) -> str:
        """The caller's own id when it is harmless, else a new one."""
        if not self._request_id:
            own = self.header(b"x-request-id")
            harmless = own is not None and accepted(own)
            self._request_id = own.decode() if own is not None and harmless else new_request_id()
        return self._request_id

    def header(self, name: bytes) -> bytes | None:
        """Return the first header of this name, without the blanks behind it."""
        value = self._index.get(name)
        return value.rstrip(BLANKS) if value else value

    def sent_any(self, names: frozenset[bytes]) -> bool:
        """Tell whether any header of these names was sent."""
        return not names.isdisjoint(self._index)

    def at_hand(self, limit: int) -> bytes | None:
        """Return nothing: what has arrived is known when it was asked for."""
        del limit

    async def read_body(self, limit: int) -> bytes:
        """Return the whole body; raises InputError."""
        self._check_declared(limit)
        parts: list[bytes] = []
        since = self._loop.time()
        while not self._complete:
            parts.append(await self._next_part(since, limit))
        if self._callbacks:
            self._watch()
        return b"".join(parts)

    async def body_stream(self, limit: int) -> AsyncIterator[bytes]:
        """Yield the body as it arrives; raises InputError."""
        self._check_declared(limit)
        since = self._loop.time()
        while not self._complete:
            part = await self._next_part(since, limit)
            if part:
                taken = self._loop.time()
                yield part
                since += self._loop.time() - taken
        if self._callbacks:
            self._watch()

    def _check_declared(self, limit: int) -> None:
        if self.content_length is not None and self.content_length > limit:
            raise InputError("request_too_large")

    async def _next_part(self, since: float, limit: int) -> bytes:
        steps = self._receive().__await__()
        try:
            pending = next(steps)
        except StopIteration as done:  # what is there needs no timer
            message: Message = done.value
        else:
            message = await self._in_time(_Rest(steps, pending), since)
        if message["type"] == "http.disconnect":
            self._lose()
            raise InputError("client_gone")
        self._complete = not message.get("more_body", False)
        part: bytes = message.get("body", b"")
        self._received += len(part)
        if self._received > limit:
            raise InputError("request_too_large")
        return part

    async def _in_time(self, rest: _Rest[Message], since: float) -> Message:
        limits = self._limits
        due = since + limits.body_timeout_s + self._received / limits.min_body_bytes_per_s
        try:
            async with asyncio.timeout_at(due):
                return await rest
        except TimeoutError:
            raise InputError("request_timeout") from None

    # ------------------------------------------------------------ the client

    def on_gone(self, callback: Callable[[], object]) -> None:
        """Call this once as soon as the client is gone."""
        if self.ended or self.aborted:
            return
        if self.gone:
            self._loop.call_soon(self._tell, callback)
            return
        self._callbacks.append(callback)
        if self._complete:
            self._watch()

    def _watch(self) -> None:
        """Begin to watch in a moment: most answers are over by then, without the cost of a task."""
        if self._begin_watch is None:
            self._begin_watch = self._loop.call_later(_WATCH_AFTER_S, self._start_watcher)

    def _start_watcher(self) -> None:
        self._watcher = self._start_task(self._wait_gone())

    async def _wait_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._lose()

    def _lose(self) -> None:
        if self.gone or self.ended:
            return
        self.gone = True
        self._queue.clear()
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            self._loop.call_soon(self._tell, callback)

    def _tell(self, callback: Callable[[], object]) -> None:
        """Call back, unless the handler has come to its end meanwhile."""
        if not self.ended:
            callback()

    @property
    def cut_short(self) -> bool:
        """Whether the answer was begun and cannot be completed."""
        return self.aborted or (self.started and not self.ended and not self.gone)

    def close(self) -> None:
        """Stop watching the client."""
        if self._begin_watch is not None:
            self._begin_watch.cancel()
        if self._watcher is not None:
            self._watcher.cancel()

    # ------------------------------------------------------------ the answer

    @property
    def congested(self) -> bool:
        """Whether something written has not been taken by the server."""
        return self._suspended is not None

    def start(self, status: int, headers: Headers | Block, *, length: int | None) -> None:
        """Set the head of the answer."""
        if self.started:
            raise RuntimeError("the answer was started before")
        if isinstance(headers, Block):
            cut = (line.partition(b": ") for line in headers.split(b"\r\n")[:-1])
            fields = [(name, value) for name, _, value in cut]
        else:
            wants_close(headers)
            checked_lines(headers)
            fields = list(headers)
        if not self.keep_alive:
            fields.append((b"connection", b"close"))
        self.started = True
        if status in (204, 304):
            self._bodyless = True
        elif length is not None:
            fields.append((b"content-length", b"%d" % length))
        if not self._bodyless:
            self._left = length
        self._emit({"type": "http.response.start", "status": status, "headers": fields})

    def write(self, data: bytes) -> None:
        """Send content now; dropped when the client is gone."""
        if not self.started or self.ended:
            raise RuntimeError("content outside of an answer")
        if data and not self.gone and self._count(data) and not self._bodyless:
            self._emit({"type": "http.response.body", "body": data, "more_body": True})

    def _count(self, data: bytes) -> bool:
        if self._bodyless:
            return True
        self.bytes_out += len(data)
        if self._left is not None:
            self._left -= len(data)
            if self._left < 0:
                _log.error("request %s: the content is longer than its length", self.request_id)
                self.abort()
                return False
        return True

    def end(self, data: bytes = b"") -> None:
        """Send the last content and complete the answer."""
        if not self.started or self.ended:
            raise RuntimeError("an end outside of an answer")
        if not self.gone and self._count(data):
            if self._left:
                _log.error("request %s: the content ended before its length", self.request_id)
                self.abort()
                return
            body = b"" if self._bodyless else data
            self._emit({"type": "http.response.body", "body": body, "more_body": False})
        if not self.aborted:
            self.ended = True
            self._callbacks.clear()

    def give(self, status: int, block: Block, body: bytes) -> None:
        """Give a whole answer."""
        self.start(status, block, length=len(body))
        self.end(body)

    def abort(self) -> None:
        """Cut the connection, visibly short of the end."""
        if not self.ended and not self.gone:
            self.gone = True
            self.aborted = True
            self._callbacks.clear()
            self._queue.clear()

    def _emit(self, message: Message) -> None:
        """Send without waiting: most servers take a message at once."""
        if self._suspended is not None:
            self._queue.append(message)
            return
        steps = self._send(message).__await__()
        try:
            pending = next(steps)
        except StopIteration:
            return
        except OSError:
            self._lose()
            return
        self._suspended = _Rest(steps, pending)

    async def drain(self) -> None:
        """Wait until the server has taken what was written; cut who does not read."""
        try:
            async with asyncio.timeout(self._limits.write_stall_s):
                while self._suspended is not None:
                    rest = self._suspended
                    await rest
                    self._suspended = None
                    while self._queue and self._suspended is None:
                        self._emit(self._queue.popleft())
        except TimeoutError:
            self._suspended = None
            self._lose()
            self.aborted = True
        except OSError:
            self._suspended = None
            self._lose()


def asgi_app(handler: Handler, limits: ConnectionLimits, render: Render) -> AsgiApp:
    """Wrap a handler as an ASGI application; `render` writes the bodies of error answers."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
        elif scope["type"] == "http":
            await _answer(handler, limits, render, (scope, receive, send))

    return app


async def _live(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": message["type"] + ".complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def _answer(
    handler: Handler, limits: ConnectionLimits, render: Render, asgi: tuple[Scope, Receive, Send]
) -> None:
    send = asgi[2]
    async with asyncio.TaskGroup() as group:
        try:
            exchange = AsgiExchange(asgi, limits, group.create_task)
        except InputError as error:
            await _refuse(send, error, render, new_request_id())
            return
        try:
            await handler(exchange)
        finally:
            exchange.close()
            if not exchange.started and not exchange.gone:
                await _refuse(send, GatewayError("internal"), render, exchange.request_id)
    if exchange.congested and not exchange.aborted:
        await exchange.drain()
    if exchange.cut_short:
        raise AnswerCutError


async def _refuse(send: Send, error: GatewayError, render: Render, request_id: str) -> None:
    body = render(error, request_id)
    headers = [
        (b"content-type", b"application/json"),
        (b"x-request-id", request_id.encode()),
        (b"x-should-retry", b"false"),
        (b"content-length", b"%d" % len(body)),
    ]
    await send({"type": "http.response.start", "status": error.http, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
