"""Writes replies to the caller: whole, or as a stream with back-pressure and signs of life."""

import asyncio
from collections.abc import Callable

from gateway.core.call import Run
from gateway.core.errors import GatewayError
from gateway.core.reply import Stream
from gateway.engine.stream import EventStream
from gateway.server.exchange import Block, Exchange

LARGE_BYTES = 256 << 10
_PIECE_BYTES = 64 << 10


class Pinger:
    """Writes a comment into a stream that has been silent for too long; begins the answer if need be (K06).

    `headers` makes those of the answer, which are only known then. One lazy timer per stream: the relay only notes
    when it wrote.
    """

    __slots__ = ("_exchange", "_headers", "_interval_s", "_loop", "_ping", "_timer", "quiet_since")

    def __init__(
        self, exchange: Exchange, headers: Callable[[], Block], ping: bytes, interval_s: float
    ) -> None:
        self._exchange = exchange
        self._headers = headers
        self._ping = ping
        self._interval_s = interval_s
        self._loop = asyncio.get_running_loop()
        self.quiet_since = self._loop.time()
        self._timer = self._loop.call_later(interval_s, self._check)

    def _check(self) -> None:
        exchange = self._exchange
        if exchange.gone or exchange.ended:
            return
        now = self._loop.time()
        due = self.quiet_since + self._interval_s
        if due <= now:
            if not exchange.started:
                exchange.start(200, self._headers(), length=None)
            if not exchange.congested:
                exchange.write(self._ping)
            self.quiet_since = now
            due = now + self._interval_s
        self._timer = self._loop.call_at(due, self._check)

    def stop(self) -> None:
        """Stop; nothing is written after this."""
        self._timer.cancel()


async def write_large(exchange: Exchange, body: bytes, run: Run) -> bytes:
    """Write a large body as its reader takes it, so that the answer is not over before; return the last piece.

    When the deadline passes meanwhile the answer is cut: what was written ends anywhere.
    """
    at = 0
    while len(body) - at > _PIECE_BYTES:
        exchange.write(body[at : at + _PIECE_BYTES])
        at += _PIECE_BYTES
        if exchange.congested and not await _taken(exchange, run.deadline):
            exchange.abort()
            raise _too_slow(run)
    return body[at:]


async def relay_stream(exchange: Exchange, stream: Stream, pinger: Pinger | None, run: Run) -> None:
    """Write a stream to its end. The head has been started.

    Raises what `stream.next` raises, and GatewayError `deadline_exceeded` for a client that reads too slowly.
    """
    loop = asyncio.get_running_loop()

    def write(data: bytes) -> bool:
        exchange.write(data)
        if pinger is not None:
            pinger.quiet_since = loop.time()
        return not exchange.congested

    flowing = stream if isinstance(stream, EventStream) else None
    while True:
        data = await stream.next()
        if stream.finished:
            exchange.end(data)
            return
        if not write(data) and not await _taken(exchange, run.deadline):
            raise _too_slow(run)
        if flowing is not None:
            await flowing.flow(write)
            if exchange.congested and not await _taken(exchange, run.deadline):
                raise _too_slow(run)


async def _taken(exchange: Exchange, deadline: float) -> bool:
    """Wait until the client has caught up; False when the deadline was first."""
    try:
        async with asyncio.timeout_at(deadline):
            await exchange.drain()
    except TimeoutError:
        return False
    return True


def _too_slow(run: Run) -> GatewayError:
    run.code = "deadline_exceeded"  # the call to the provider ends for the same reason
    return GatewayError(run.code, detail="the client reads too slowly")
