"""One HTTP/1.1 connection: drives llhttp, one answer at a time.

It decides what ends a message, and whether the socket may carry another one.
"""

from __future__ import annotations

import ssl
from math import inf
from typing import TYPE_CHECKING, Final, NoReturn, Protocol

from httptools import HttpParserError, HttpResponseParser

from gateway.core.errors import UpstreamError
from gateway.upstream.http1.answer import Http1Answer
from gateway.upstream.http1.head import LONG_HEAD, MAX_HEAD_BYTES, fault_of, header_of, is_framed
from gateway.upstream.http1.wire import READ_BYTES, Wire

if TYPE_CHECKING:
    import asyncio

    from gateway.upstream.spec import Timeouts

HIGH_WATER: Final = 256 * 1024 - READ_BYTES
"""Unread bytes above which the socket is not read any more: 256 KiB at most are held."""
JOIN_BELOW: Final = 16 * 1024
"""Bodies up to this size go out in one buffer with the head; copying them is cheaper than two buffers."""

_IDLE: Final = 0
_HEAD: Final = 1
_BODY: Final = 2
_DONE: Final = 3


_DEAF: Final = HttpResponseParser(object())
"""The parser of closed connections."""


class Owner(Protocol):
    """The pool a connection belongs to."""

    keep_alive_s: float

    def release(self, connection: Connection) -> None:
        """Take back a connection that can carry another request."""
        ...

    def closed(self, connection: Connection) -> None:
        """Give the slot of a closing connection to the next one who waits."""
        ...

    def gone(self, connection: Connection) -> None:
        """Forget a connection whose socket is closed."""
        ...


class Connection(Wire):
    """Carries one request after another; `start` begins one, the answer tells the rest."""

    __slots__ = (
        "_answer", "_big", "_deadline", "_earlier", "_fed", "_idle_s", "_interim", "_interims",
        "_keep", "_keep_alive_s", "_owner", "_parser", "_phase", "_quiet_bytes", "_refusal",
        "_surplus", "_uploading", "head_only", "resting", "reused",
    )  # fmt: skip

    def __init__(self, owner: Owner, loop: asyncio.AbstractEventLoop, buffer: bytearray) -> None:
        super().__init__(loop, buffer)
        self.head_only = False  # the request under way is a HEAD
        self.resting = False
        self.reused = False
        self._owner = owner
        self._parser = HttpResponseParser(self)
        self._answer: Http1Answer | None = None
        self._phase = _IDLE
        self._refusal = ""
        self._surplus = self._keep = self._interim = self._big = self._uploading = False
        self._fed = 0  # how much of the buffer llhttp is being fed
        self._earlier = bytearray()  # the part of the head that came before
        self._interims = 0
        self._quiet_bytes = 0  # what came since the head or the last data, and was neither
        self._keep_alive_s = owner.keep_alive_s
        self._deadline = inf
        self._idle_s = inf

    # ------------------------------------------------------------ requests

    def start(
        self, head: bytes, body: bytes | None, timeouts: Timeouts, deadline: float
    ) -> Http1Answer:
        """Send a request; a body of None is left to `upload`. The answer wakes when its head is here."""
        transport = self._transport
        if transport is None:
            raise RuntimeError("not connected")
        now = self.clock()
        if deadline <= now:
            self.head_only = False
            self._owner.release(self)
            raise UpstreamError("deadline_exceeded", phase="pool", sent=False)
        self._answer = answer = Http1Answer(self)
        self._phase = _HEAD
        self.resting = False
        self._deadline = deadline
        self._idle_s = timeouts.idle_s
        limit = now + timeouts.first_byte_s
        if deadline < limit:  # noqa: PLR1730  min() would cost more than the rest of this
            limit = deadline
        self._limit = limit
        if limit < self._armed:
            self.arm(limit)
        if body is None:
            self._big = True
            transport.write(head)
        elif len(body) <= JOIN_BELOW:
            self._big = False
            transport.write(head + body)
        else:
            self._big = True
            transport.writelines((head, body))
        return answer

    def begin_upload(self) -> None:
        """Count no limit but the deadline while our own side makes the next part."""
        self._uploading = True
        self._limit = self._deadline

    async def until_written(self) -> None:
        """Wait until the upstream has taken enough, within the idle limit."""
        self.limit_to(min(self.clock() + self._idle_s, self._deadline))
        await super().until_written()
        self._limit = self._deadline

    def end_upload(self, timeouts: Timeouts) -> None:
        """Count the first-byte limit from now: all is sent."""
        self._uploading = False
        self.limit_to(min(self.clock() + timeouts.first_byte_s, self._deadline))

    def hang_up(self) -> None:
        """Close at once (the answer is not wanted any more)."""
        self._answer = None
        self.close()

    def rest(self) -> None:
        """Wait in the pool for the next request."""
        self.reused = self.resting = True
        limit = self._limit = self.clock() + self._keep_alive_s
        if limit < self._armed:
            self.arm(limit)

    def close(self) -> None:
        """Close the socket at once and give the slot away; idempotent."""
        if not self.is_closed:
            self._phase = _IDLE
            self._parser = _DEAF  # breaks the cycle
            self.shut()
            self._owner.closed(self)

    # ------------------------------------------------------------ called by the loop

    def connection_lost(self, exc: Exception | None) -> None:
        """End what can go no further, and tell the pool."""
        super().connection_lost(exc)
        self._owner.gone(self)

    def buffer_updated(self, nbytes: int) -> None:
        """Feed the parser, then do what the new state asks for."""
        answer = self._answer
        if answer is None:
            self.close()  # nobody asked for it: what follows could not be told apart
            return
        buffered = answer.buffered
        self._fed = nbytes
        try:
            self._parser.feed_data(self._view[:nbytes])
        except HttpParserError as error:
            if self._phase != _DONE:
                self._refuse(self._refusal or f"{error} {error.__context__ or ''}")
                return
            self._surplus = True
        phase = self._phase
        if phase == _DONE:
            self._end()
        elif phase == _HEAD:
            self._earlier += self._view[:nbytes]
            if len(self._earlier) > MAX_HEAD_BYTES:
                self._refuse("the head is too large")
        elif answer.buffered != buffered:
            self._quiet_bytes = 0
            if answer.buffered > HIGH_WATER:
                self.pause()
            answer.arrived()
        else:
            self._quiet_bytes += nbytes
            if self._quiet_bytes > 2 * MAX_HEAD_BYTES:
                self._refuse("framing without data")
            answer.arrived()

    # ------------------------------------------------------------ called by the parser

    def on_message_begin(self) -> None:
        """Refuse a message that nobody asked for."""
        if self._phase != _HEAD:
            self._stop("bytes after the end of the message")

    def on_headers_complete(self) -> None:
        """Accept or refuse the head."""
        answer = self._answer
        if answer is None or self._phase != _HEAD:
            self._stop("bytes after the end of the message")
        status = self._parser.get_status_code()
        if status != 200 and self._is_interim(status):
            return
        buffer = self._buffer
        if self._earlier or self._interims or not buffer.startswith(b"HTTP/"):
            head = self._join_head()
        else:
            head = bytes(self._view[: buffer.index(b"\r\n\r\n", 0, self._fed) + 4])
        answer.head = head
        answer.low = low = head.lower()
        if b"-encoding:" in low or len(head) > LONG_HEAD or not self.reused:
            self._check(low)
        answer.status = status
        answer.touched = now = self.clock()
        limit = now + self._idle_s
        if self._deadline < limit:  # noqa: PLR1730  as above
            limit = self._deadline
        if limit < self._armed:
            self.arm(limit)
        if self.head_only:
            self._keep = self._parser.should_keep_alive()
            self._phase = _DONE
        else:
            self._phase = _BODY

    def on_body(self, body: bytes) -> None:
        """Keep a piece of the body for the reader."""
        answer = self._answer
        if self._phase != _BODY or answer is None:
            self._stop("a body where none can be")
        answer.chunks.append(body)
        answer.buffered += len(body)

    def on_message_complete(self) -> None:
        """Note the end; whatever else was fed decides whether the connection can be used again."""
        if self._interim:
            self._interim = False
        elif self._phase == _BODY:
            self._keep = self._parser.should_keep_alive()
            self._phase = _DONE

    # ------------------------------------------------------------ heads

    def _join_head(self) -> bytes:
        """Cut the head out of all that came since the request, behind the interim answers."""
        raw = bytes(self._earlier + self._view[: self._fed])
        self._earlier.clear()
        # The parser lets line ends pass before a status line.
        raw = raw.lstrip(b"\r\n")
        for _ in range(self._interims):
            raw = raw[raw.index(b"\r\n\r\n") + 4 :].lstrip(b"\r\n")
        self._interims = 0
        return raw[: raw.index(b"\r\n\r\n") + 4]

    def _is_interim(self, status: int) -> bool:
        if status < 100 or status == 101 or status > 599 or (300 <= status < 400 and status != 304):
            self._stop(f"status {status}")
        if status >= 200:
            return False
        self._interim = True
        self._interims += 1
        return True

    def _check(self, low: bytes) -> None:
        reason = fault_of(low)
        if reason:
            self._stop(reason)
        if not self.reused:
            self._heed_keep_alive(low)

    def _heed_keep_alive(self, low: bytes) -> None:
        _, _, seconds = (header_of(low, low, b"keep-alive") or b"").partition(b"timeout=")
        digits = seconds[:6].partition(b",")[0].strip()
        if digits.isdigit():
            self._keep_alive_s = min(self._owner.keep_alive_s, max(int(digits) - 1.0, 0.5))

    # ------------------------------------------------------------ ends

    def _end(self) -> None:
        answer, transport = self._answer, self._transport
        self._answer = None
        if answer is not None:
            answer.line = None
            answer.complete = answer.ended = True
            answer.wake()
        if (
            not self._keep
            or self._surplus
            or self._uploading
            or transport is None
            or (self._big and transport.get_write_buffer_size())
        ):
            self.close()
            return
        self._phase = _IDLE
        if self._quiet_bytes:
            self._quiet_bytes = 0
        if self.head_only:
            self.head_only = False
            self._parser = HttpResponseParser(self)  # the old one waits for a body
        if self._read_paused:
            self.drained()
        self._owner.release(self)

    def lost(self, exc: Exception | None) -> None:
        """End the message by the close, if it may end so; else it is cut."""
        answer = self._answer
        self._answer = None
        if answer is not None and exc is not None and not isinstance(exc, OSError):
            answer.crash = exc  # the loop closes a connection whose callback raised, and says why
        if answer is None:
            self.close()
        elif self._phase == _BODY and _is_orderly(exc) and not is_framed(answer.low):
            answer.finish(complete=False)
            self.close()
        elif self._phase == _BODY:
            self._fail(answer, "upstream_truncated", _reason(exc))
        else:
            # The write failed, or the upstream closed before it had all of the request: nothing was begun.
            stale = (
                self.reused
                and not self._uploading
                and not self._earlier
                and (isinstance(exc, BrokenPipeError) or (exc is None and self.is_untaken()))
            )
            self._fail(answer, "upstream_unavailable", _reason(exc), stale=stale)

    def _refuse(self, reason: str) -> None:
        answer = self._answer
        self._answer = None
        if answer is None:
            self.close()
        else:
            self._fail(answer, "upstream_invalid_response", reason)

    def _fail(self, answer: Http1Answer, code: str, detail: str, *, stale: bool = False) -> None:
        phase = "body" if self._phase == _BODY else "send" if self._uploading else "first_byte"
        answer.fail(code, phase, detail, stale=stale)
        self.close()

    def _stop(self, reason: str) -> NoReturn:
        self._refusal = reason
        raise _Refused

    # ------------------------------------------------------------ limits

    def due(self, now: float) -> float:
        """Return the limit of the present phase."""
        answer = self._answer
        if self._phase != _BODY or answer is None:
            return self._limit
        if answer.buffered:
            answer.touched = now  # its reader is late, not the upstream
        return min(self._deadline, answer.touched + self._idle_s)

    def expire(self, now: float) -> None:
        """End an answer that is late, or the rest in the pool."""
        answer = self._answer
        self._answer = None
        if answer is None:
            self.close()
        else:
            self._fail(
                answer, "deadline_exceeded" if now >= self._deadline else "upstream_timeout", ""
            )


class _Refused(Exception):
    """The parser must stop; `_refusal` says why."""


def _is_orderly(exc: Exception | None) -> bool:
    return exc is None or isinstance(exc, ssl.SSLError)


def _reason(exc: Exception | None) -> str:
    return "closed by the upstream" if exc is None else type(exc).__name__
