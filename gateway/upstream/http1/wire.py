"""The socket's side of a connection: flow control both ways, and one lazily checked deadline timer.

The timer stays armed across requests. A limit that moves away costs nothing: when the timer fires too
early it looks again.
"""

from __future__ import annotations

import asyncio
import fcntl
import termios
from abc import ABC, abstractmethod
from math import inf
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from collections.abc import Sequence

READ_BYTES: Final = 64 * 1024
"""How much one read of the socket takes at most."""
_EARLY_S: Final = 0.001


class Wire(asyncio.BufferedProtocol, ABC):
    """A connected socket with a limit; `due`, `lost` and `buffer_updated` belong to the subclass."""

    __slots__ = (
        "_armed", "_blocked", "_buffer", "_limit", "_read_paused", "_timer", "_transport", "_view",
        "_write_paused", "clock", "is_closed", "loop",
    )  # fmt: skip

    def __init__(self, loop: asyncio.AbstractEventLoop, buffer: bytearray) -> None:
        self.loop = loop
        self.clock = loop.time
        self.is_closed = False
        self._transport: asyncio.Transport | None = None
        self._buffer = buffer
        self._view = memoryview(buffer)
        self._read_paused = self._write_paused = False
        self._blocked: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._armed = inf  # when the timer fires
        self._limit = inf

    @abstractmethod
    def due(self, now: float) -> float:
        """Return the limit that holds now."""

    @abstractmethod
    def expire(self, now: float) -> None:
        """End what has lasted too long."""

    @abstractmethod
    def lost(self, exc: Exception | None) -> None:
        """End what can go no further: the upstream closed or reset the connection."""

    # ------------------------------------------------------------ called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        # Both loops hand out transports that read and write; the common type does not say so.
        made = cast("asyncio.Transport", transport)
        if self.is_closed:
            made.abort()
        else:
            self._transport = made

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where to put the bytes; all connections share it, `buffer_updated` follows at once."""
        # Not the bytearray: asyncio's TLS takes slices of it, and those must not be copies.
        return self._view

    def eof_received(self) -> None:
        """End what can go no further."""
        self.lost(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """End what can go no further."""
        self.lost(exc)
        self._transport = None

    def pause_writing(self) -> None:
        """Hold an upload."""
        self._write_paused = True

    def resume_writing(self) -> None:
        """Go on with an upload."""
        self._write_paused = False
        self._unblock()

    # ------------------------------------------------------------ flow

    def is_untaken(self) -> bool:
        """Tell whether the other side surely lacks a part of what was sent: not all of it is confirmed."""
        transport = self._transport
        sock = transport.get_extra_info("socket") if transport is not None else None
        if transport is None or sock is None:
            return False
        size = bytearray(4)
        try:
            fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, size)
        except (OSError, ValueError):
            return False  # not told here: it may have been taken
        return any(size) or transport.get_write_buffer_size() > 0

    def write(self, pieces: Sequence[bytes]) -> bool:
        """Send; False when more should wait for `until_written`."""
        if self._transport is not None:
            self._transport.writelines(pieces)
        return not self._write_paused

    async def until_written(self) -> None:
        """Wait until the upstream has taken enough, or the connection has ended."""
        self._blocked = blocked = self.loop.create_future()
        await blocked

    def drained(self) -> None:
        """Read on when reading was paused."""
        if self._read_paused and self._transport is not None:
            self._read_paused = False
            self._transport.resume_reading()

    def pause(self) -> None:
        """Read no more until `drained`."""
        if not self._read_paused and self._transport is not None:
            self._read_paused = True
            self._transport.pause_reading()

    def shut(self) -> None:
        """Close the socket at once; idempotent."""
        self.is_closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        # Let go at once: the loop does not tell the end of a connection whose making was given up.
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()
        self._unblock()

    def _unblock(self) -> None:
        blocked = self._blocked
        if blocked is not None:
            self._blocked = None
            if not blocked.done():
                blocked.set_result(None)

    # ------------------------------------------------------------ the limit

    def limit_to(self, at: float) -> None:
        """Set the time at which `expire` is called, unless the limit has moved by then."""
        self._limit = at
        if at < self._armed:
            self.arm(at)

    def arm(self, at: float) -> None:
        """Look at the limit not later than this."""
        if self._timer is not None:
            self._timer.cancel()
        self._armed = at
        self._timer = self.loop.call_at(at, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._armed = inf
        now = self.clock() + _EARLY_S
        limit = self.due(now)
        if limit > now:
            self.arm(limit)
        else:
            self.expire(now)
