"""The transport side of an inbound connection: caps, deadlines, flow control, orderly ends.

One lazy timer per connection: phases only write a deadline, and the timer looks when it fires.
"""

import asyncio
import fcntl
import logging
import socket
import struct
import termios
from abc import ABC, abstractmethod
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from gateway.core.errors import GatewayError, InputError, OverloadError
from gateway.server.head import CONTINUE

if TYPE_CHECKING:
    from uvicorn.server import ServerState

    from gateway.server.direct import DirectExchange
    from gateway.server.limits import ConnectionLimits

_log = logging.getLogger("gateway.server")

IDLE, HEAD, BODY, DRAIN = range(4)
_STALL_BYTES = 4096  # a client that takes less than this per stall limit does not read
_FLOOD_FACTOR = 4
_POLITE = 64  # so many connections too many are told why they are closed
_FIRST_LOOK_S = 0.02
_LAST_LOOK_S = 1.0
_RESET = struct.pack("ii", 1, 0)


class Census:
    """Open connections of one listener, in all and by address."""

    def __init__(self) -> None:
        self.total = 0
        self.by_address: dict[str, int] = {}

    def enter(self, address: str) -> None:
        """Count a connection."""
        self.total += 1
        self.by_address[address] = self.by_address.get(address, 0) + 1

    def leave(self, address: str) -> None:
        """Forget a connection."""
        self.total -= 1
        left = self.by_address[address] - 1
        if left:
            self.by_address[address] = left
        else:
            del self.by_address[address]

    def surplus(self, address: str, limits: "ConnectionLimits") -> int:
        """Return by how many connections there are too many; not above 0 when there is room."""
        return max(
            self.total - limits.max_connections,
            self.by_address[address] - limits.max_connections_per_address,
        )


_census: "WeakKeyDictionary[ServerState, Census]" = WeakKeyDictionary()


class Connection(asyncio.Protocol, ABC):
    """What of a connection does not depend on how requests are parsed."""

    __slots__ = (
        "_body_since",
        "_census",
        "_connections",
        "_current",
        "_drained",
        "_half_open",
        "_limits",
        "_phase",
        "_read_deadline",
        "_read_paused_at",
        "_stalled_at",
        "_timer",
        "_timer_at",
        "_writable",
        "_write_deadline",
        "client",
        "closing",
        "loop",
        "transport",
        "write_paused",
    )

    transport: asyncio.Transport

    def __init__(
        self,
        limits: "ConnectionLimits",
        loop: asyncio.AbstractEventLoop,
        server_state: "ServerState",
    ) -> None:
        self._limits = limits
        self.loop = loop
        self.client = ""
        self.closing = False  # nothing is served after the requests that have arrived
        self.write_paused = False
        self._half_open = False
        self._connections = cast("set[Any]", server_state.connections)
        self._census = _census.setdefault(server_state, Census())
        self._current: DirectExchange | None = None
        self._writable: asyncio.Future[None] | None = None
        self._read_paused_at = 0.0
        self._phase = HEAD
        self._read_deadline = inf
        self._write_deadline = inf
        self._stalled_at = 0
        self._drained = 0
        self._body_since = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = inf

    # ------------------------------------------------------------ begin and end

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count and arm a new connection; turn it away when there are too many."""
        self.transport = cast("asyncio.Transport", transport)
        peer: object = transport.get_extra_info("peername")
        if isinstance(peer, tuple) and peer:
            self.client = str(cast("tuple[object, ...]", peer)[0])
            handle = transport.get_extra_info("socket")
            with suppress(OSError):  # the client is gone already
                handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connections.add(self)
        self._census.enter(self.client)
        self.transport.set_write_buffer_limits(high=self._limits.high_water)
        surplus = self._census.surplus(self.client, self._limits)
        if surplus > _POLITE:
            self.transport.abort()
        elif surplus > 0:
            self.refuse(OverloadError("overloaded"))
        else:
            self._arm(HEAD, self._limits.head_timeout_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the running request, and let go of everything."""
        self._connections.discard(self)
        self._census.leave(self.client)
        self._lose()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _lose(self) -> None:
        """Tell the running request that its client is gone."""
        current, self._current = self._current, None
        self.write_paused = False
        self._wake_writer()
        if current is not None:
            current.lose()

    @abstractmethod
    def refuse(self, error: GatewayError) -> None:
        """Answer for the edge itself, and close."""

    def close(self) -> None:
        """Close once everything written is sent; a client that does not take it is cut."""
        transport = self.transport
        transport.close()
        if transport.get_write_buffer_size():
            self._stalled_at = transport.get_write_buffer_size()
            self._set_write_deadline()

    def cut(self, *, hard: bool) -> None:
        """Close without a proper end of the answer; `hard` resets the connection."""
        self._current = None
        if hard:
            handle = self.transport.get_extra_info("socket")
            handle.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self.transport.abort()
        else:
            self.close()

    def drain_and_close(self) -> None:
        """End our side, and read on for a while: else a reset would eat the answer."""
        transport = self.transport
        if transport.is_closing():
            return
        self._resume_reading()
        if transport.can_write_eof():
            with suppress(OSError):  # the client is gone already
                transport.write_eof()
        self._arm(DRAIN, self._limits.drain_s)

    def discard(self, size: int) -> None:
        """Count bytes that nobody wants; cut when there are too many."""
        self._drained += size
        if self._drained > self._limits.drain_bytes:
            self._lose()
            self.transport.abort()

    # ------------------------------------------------------------ half-closed clients

    def eof_received(self) -> bool:
        """Decide what the end of the client's sending means: gone, or only done with asking."""
        current = self._current
        if (
            self._phase == DRAIN
            or current is None
            or not current.complete
            or not self._probe(current)
        ):
            self._lose()
            return False
        self._half_open = True
        self.loop.call_later(_FIRST_LOOK_S, self._look, _FIRST_LOOK_S)
        return True

    def _probe(self, current: "DirectExchange") -> bool:
        """Send a harmless byte: a client that has closed answers with a reset, a reader does not.

        Before the answer an interim response, in a stream a leading zero of the next chunk's size.
        """
        if not current.http11 or self.transport.get_extra_info("sslcontext") is not None:
            return False
        if not current.started:
            self.transport.write(CONTINUE)
            return True
        return current.probe()

    def _look(self, delay: float) -> None:
        if self._current is not None and not self.transport.is_closing() and not self._was_reset():
            delay = min(delay * 2, _LAST_LOOK_S)
            self.loop.call_later(delay, self._look, delay)

    def _was_reset(self) -> bool:
        """Tell whether the client has reset the connection, which nobody is told who does not read."""
        handle = self.transport.get_extra_info("socket")
        if not handle.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            return False
        self._lose()
        self.transport.abort()
        return True

    def waits_unread(self) -> bool:
        """Tell whether the kernel holds bytes of the client that nobody has read."""
        handle = self.transport.get_extra_info("socket")
        size = bytearray(4)
        with suppress(OSError):  # the client is gone already
            fcntl.ioctl(handle.fileno(), termios.FIONREAD, size)
        return any(size)

    # ------------------------------------------------------------ flow control

    def pause_writing(self) -> None:
        """Note that the client reads too slowly."""
        self.write_paused = True
        self._stalled_at = self.transport.get_write_buffer_size()
        self._set_write_deadline()

    def resume_writing(self) -> None:
        """Note that the client has caught up."""
        self.write_paused = False
        self._write_deadline = inf
        self._wake_writer()

    def _wake_writer(self) -> None:
        writable, self._writable = self._writable, None
        if writable is not None and not writable.done():
            writable.set_result(None)

    async def writable(self) -> None:
        """Wait until the transport takes more, or is lost."""
        if self.write_paused:
            self._writable = self.loop.create_future()
            await self._writable

    def flood(self) -> bool:
        """Tell whether more is buffered than any handler that waits could have written."""
        return self.transport.get_write_buffer_size() > self._limits.high_water * _FLOOD_FACTOR

    def want_body(self, exchange: "DirectExchange") -> None:
        """Let the body come: answer an expectation, and read on."""
        if exchange.expects:
            exchange.expects = False
            self.transport.write(CONTINUE)
            self._begin_body()
        self._resume_reading()

    def _pause_reading(self) -> None:
        if not self._read_paused_at:
            self._read_paused_at = now = self.loop.time()
            self.transport.pause_reading()
            if now + _LAST_LOOK_S < self._timer_at:
                self._set_timer(now + _LAST_LOOK_S)

    def _resume_reading(self) -> None:
        if self._read_paused_at:
            self._body_since += self.loop.time() - self._read_paused_at
            self._read_paused_at = 0.0
            self.transport.resume_reading()

    # ------------------------------------------------------------ deadlines

    def _arm(self, phase: int, seconds: float) -> None:
        self._phase = phase
        self._read_deadline = due = self.loop.time() + seconds
        if due < self._timer_at:
            self._set_timer(due)

    def _begin_body(self) -> None:
        self._body_since = self.loop.time()
        self._arm(BODY, self._limits.body_timeout_s)

    def _set_write_deadline(self) -> None:
        self._write_deadline = due = self.loop.time() + self._limits.write_stall_s
        if due < self._timer_at:
            self._set_timer(due)

    def _set_timer(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_at(due, self._tick)
        self._timer_at = due

    def _tick(self) -> None:
        self._timer = None
        self._timer_at = inf
        now = self.loop.time()
        if self._write_deadline <= now and not self._still_reads(now):
            _log.info("a client that does not read was cut")
            self._lose()
            self.transport.abort()
            return
        if self._read_paused_at and self._was_reset():
            return
        due = self._read_due(now)
        if due <= now:
            self._expire()
            return
        due = min(due, self._write_deadline)
        if due < inf:
            self._set_timer(due)

    def _read_due(self, now: float) -> float:
        current = self._current
        if self._read_paused_at:
            return now + _LAST_LOOK_S
        if self._phase == BODY:
            limits = self._limits
            received = 0 if current is None else current.received
            return self._body_since + limits.body_timeout_s + received / limits.min_body_bytes_per_s
        if self._phase == IDLE and current is not None:
            return inf
        return self._read_deadline

    def _still_reads(self, now: float) -> bool:
        size = self.transport.get_write_buffer_size()
        if self._stalled_at - size < _STALL_BYTES:
            return False
        self._stalled_at = size
        self._write_deadline = now + self._limits.write_stall_s
        return True

    def _expire(self) -> None:
        """Act on a read deadline that has passed."""
        current = self._current
        phase, self._phase = self._phase, IDLE
        if phase == BODY and current is not None:
            current.fail_body("request_timeout")
        elif phase == HEAD and self._has_begun():
            self.refuse(InputError("request_timeout"))
        else:
            self.close()

    @abstractmethod
    def _has_begun(self) -> bool:
        """Tell whether a part of a head has arrived."""
