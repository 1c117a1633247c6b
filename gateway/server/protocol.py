"""The guarded inbound edge: parses requests strictly, and starts one task for each.

Given to uvicorn as its HTTP protocol class. Refuses what two readers could understand differently.
"""

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Any, cast

import httptools

from gateway.core.errors import GatewayError, InputError
from gateway.core.ids import accepted, new_request_id
from gateway.server.connection import BODY, DRAIN, HEAD, IDLE, Connection
from gateway.server.direct import DirectExchange
from gateway.server.head import refusal
from gateway.server.request import METHODS, check_head, check_single, head_size, split_target

if TYPE_CHECKING:
    from uvicorn.config import Config
    from uvicorn.server import ServerState

    from gateway.server.exchange import Application

_log = logging.getLogger("gateway.server")


class GuardedProtocol(Connection):
    """One connection; requests are served one after the other, a pipelined one in its turn."""

    __slots__ = (
        "_body_bytes",
        "_error",
        "_fed",
        "_fresh",
        "_handler",
        "_head_bytes",
        "_headers",
        "_parser",
        "_parsing",
        "_queue",
        "_render",
        "_server_state",
        "_tasks",
        "_url",
    )

    def __init__(
        self,
        config: "Config",
        server_state: "ServerState",
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        application = cast("Application", config.app)
        super().__init__(application.limits, _loop or asyncio.get_running_loop(), server_state)
        self._handler = application.handler
        self._render = application.render
        self._server_state = server_state
        self._tasks = server_state.tasks
        self._parser: Any = httptools.HttpRequestParser(self)
        # the message that arrives
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._fed = (
            0  # size of the piece in the parser, 0 after the end of a head or a message in it
        )
        self._head_bytes = 0  # bytes in earlier pieces of a head, or between data of a body
        self._body_bytes = 0  # bytes of the body at the last piece that held some
        self._parsing: DirectExchange | None = None
        # the requests that have arrived
        self._fresh: DirectExchange | None = None
        self._queue: deque[DirectExchange] = deque()
        self._error: GatewayError | None = None  # answered after the requests that came before it

    # ------------------------------------------------------------ parsing

    def data_received(self, data: bytes) -> None:
        """Parse a piece of the connection's bytes, and begin what is complete."""
        if self._phase == DRAIN or self._error is not None:
            self.discard(len(data))
            return
        self._fed = len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._reject(self._reason(error))
            return
        fresh = self._fresh
        if fresh is not None:
            self._fresh = None
            self._begin(fresh)
            self._phase = IDLE
            if self._parsing is None:
                return
        self._after_part()

    def on_url(self, url: bytes) -> None:
        """Collect the request target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a header."""
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Check a head as a whole, and make its exchange; raises InputError."""
        headers = self._headers
        target = self._url
        limits = self._limits
        if len(target) > limits.max_target_bytes:
            raise InputError("target_too_long")
        if len(headers) > limits.max_headers or (
            (self._head_bytes + self._fed > limits.max_header_bytes or self._current is not None)
            and head_size(headers) > limits.max_header_bytes
        ):
            raise InputError("headers_too_large")
        method = METHODS.get(self._parser.get_method())
        if method is None:
            raise InputError("invalid_http", "This method is not known here.")
        index = dict(headers)
        if len(index) != len(headers):
            index = dict(headers[::-1])  # of several the first counts
            check_single(headers)
        exchange = DirectExchange(self, method, split_target(target), headers, index)
        check_head(exchange, self._parser, index)
        if self._current is None:
            self._current = self._fresh = exchange
        elif len(self._queue) < limits.max_pipelined:
            self._queue.append(exchange)
        else:
            raise InputError("invalid_http", "Too many requests were sent without waiting.")
        self._parsing = exchange
        self._headers = []
        self._url = b""
        self._fed = 0
        self._head_bytes = 0
        self._body_bytes = 0

    def on_body(self, body: bytes) -> None:
        """Hand a piece of the body to its exchange; stop reading when nobody takes it."""
        exchange = self._parsing
        if exchange is not None:
            exchange.feed(body)
            if exchange.buffered > exchange.hold_above:
                self._pause_reading()

    def on_message_complete(self) -> None:
        """Complete a request."""
        exchange = self._parsing
        if self._headers:
            raise InputError("invalid_http", "Trailers are not accepted.")
        self._parsing = None
        self._fed = 0
        self._head_bytes = 0
        if self._read_paused_at:
            self._resume_reading()
        if exchange is not None:
            exchange.finish_body()
        if self._read_paused_at:
            # Whoever takes this body has no reason to ask for more of it.
            self._resume_reading()

    def _after_part(self) -> None:
        """Time and bound a message that has not arrived in one piece."""
        limits = self._limits
        parsing = self._parsing
        if parsing is not None:
            waits = parsing.expects and not parsing.received
            if parsing is self._current and self._phase != BODY and not waits:
                self._begin_body()
            if parsing.received > self._body_bytes:
                self._body_bytes = parsing.received
                self._head_bytes = 0
            else:
                self._head_bytes += self._fed
                if self._head_bytes > limits.max_header_bytes:
                    self._reject(InputError("invalid_http", "The chunks hold too little."))
            return
        self._head_bytes += self._fed
        if len(self._url) > limits.max_target_bytes:
            self._refuse_in_turn(InputError("target_too_long"))
        elif (
            len(self._headers) > limits.max_headers
            or self._head_bytes > limits.max_header_bytes + limits.max_target_bytes
        ):
            self._refuse_in_turn(InputError("headers_too_large"))
        elif self._current is not None:
            self._phase = IDLE
        elif self._phase != HEAD:
            self._arm(HEAD, limits.head_timeout_s)

    def _has_begun(self) -> bool:
        return self._head_bytes > 0

    def _reason(self, error: Exception) -> GatewayError:
        """Return what a callback raised, or what a parser error means."""
        reason = error.__context__
        if isinstance(reason, GatewayError):
            return reason
        if reason is not None:
            _log.error("a request could not be parsed", exc_info=reason)
        return InputError("invalid_http")

    def _reject(self, refused: GatewayError) -> None:
        """Deal with bytes that are no HTTP: what came before is served, what follows is not."""
        broken, self._parsing = self._parsing, None
        if broken is not None:
            self._headers = []  # trailers; the head has its own list
        fresh, self._fresh = self._fresh, None
        if broken is not None and broken is fresh:
            self._current = None
        elif broken is not None and broken is self._current:
            broken.fail_body(refused.code)
            self._error = refused
            return
        elif self._queue and self._queue[-1] is broken:
            self._queue.pop()
        self._refuse_in_turn(refused)
        if fresh is not None and fresh is not broken:
            self._begin(fresh)

    def _refuse_in_turn(self, error: GatewayError) -> None:
        if self._current is None:
            self.refuse(error)
        else:
            self._error = error

    def refuse(self, error: GatewayError) -> None:
        """Answer for the edge itself, and close."""
        own = next((value for name, value in self._headers if name == b"x-request-id"), b"")
        request_id = own.decode() if accepted(own) else new_request_id()
        bodyless = self._url != b"" and self._parser.get_method() == b"HEAD"
        self.transport.write(refusal(error, request_id, self._render, bodyless=bodyless))
        self.drain_and_close()

    # ------------------------------------------------------------ serving

    def _begin(self, exchange: DirectExchange) -> None:
        task = self.loop.create_task(self._serve(exchange))
        exchange.task = task
        self._tasks.add(task)

    async def _serve(self, exchange: DirectExchange) -> None:
        try:
            await self._handler(exchange)
        finally:
            task, exchange.task = exchange.task, None
            if task is not None:
                self._tasks.discard(task)
            if not exchange.ended and not exchange.gone:
                self._give_up(exchange)

    def _give_up(self, exchange: DirectExchange) -> None:
        """End what a handler has left open."""
        if exchange.started:
            exchange.abort()
            return
        error = GatewayError("internal")
        body = self._render(error, exchange.request_id)
        own = (b"x-request-id", exchange.request_id.encode())
        headers = ((b"content-type", b"application/json"), own, (b"x-should-retry", b"false"))
        exchange.start(error.http, headers, length=len(body))
        exchange.end(body)

    def finished(self, exchange: DirectExchange) -> None:
        """Go on after an answer: the next request, an error in turn, rest, or the end."""
        self._server_state.total_requests += 1
        self._current = None
        if not exchange.complete:
            self.drain_and_close()
        elif not exchange.keep_alive:
            self.close()
        elif self._queue:
            self._current = following = self._queue.popleft()
            self.closing = self.closing or (self._half_open and not self._queue)
            if following is self._parsing:
                self._begin_body()
            self._begin(following)
        elif self._error is not None:
            self.refuse(self._error)
        elif self.closing or self._half_open:
            self.close()
        elif self._head_bytes:
            self._arm(HEAD, self._limits.head_timeout_s)
        else:
            self._arm(IDLE, self._limits.keep_alive_s)

    def eof_received(self) -> bool:
        """Decide what the end of the client's sending means."""
        if self._queue and self._queue[-1] is self._parsing:
            self._queue.pop()
        keep_open = super().eof_received()
        self.closing = self._half_open and not self._queue
        return keep_open

    def close_idle(self) -> None:
        """Close if answers were given and nothing has come since, not even into the kernel."""
        if self._current is None and self._phase == IDLE and not self.waits_unread():
            self.transport.close()

    def shutdown(self) -> None:
        """Serve what runs, nothing more; called by uvicorn when the server stops."""
        self.closing = True
        self._queue.clear()
        if self._current is None and self._phase != DRAIN:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of everything."""
        super().connection_lost(exc)
        self._parser = None
        self._parsing = self._fresh = None
        self._queue.clear()
