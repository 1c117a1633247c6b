"""One HTTP/1.1 connection: an asyncio protocol around llhttp with one deadline timer and one answer at a time.
It decides what ends a message, and whether the socket may carry another one.
"""

from __future__ import annotations

import asyncio
import ssl
from math import inf
from typing import TYPE_CHECKING, Final, NoReturn, Protocol, cast

from httptools import HttpParserError, HttpResponseParser

from gateway.core.errors import UpstreamError
from gateway.upstream.http1.answer import Http1Answer
from gateway.upstream.http1.head import header_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from gateway.upstream.spec import Timeouts

MAX_HEAD_BYTES: Final = 64 * 1024
MAX_HEADERS: Final = 128
READ_BYTES: Final = 64 * 1024
"""How much one read of the socket takes at most."""
HIGH_WATER: Final = 256 * 1024 - READ_BYTES
"""Unread bytes above which the socket is not read any more: 256 KiB at most are held."""
JOIN_BELOW: Final = 16 * 1024
"""Bodies up to this size go out in one buffer with the head; copying them is cheaper than two buffers."""
REPEAT_WITHIN_S: Final = 1.0
"""A reused connection that dies later than this after the request was not stale: work may have begun."""
_EARLY: Final = 0.001

_IDLE: Final = 0
_HEAD: Final = 1
_BODY: Final = 2
_DONE: Final = 3


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


class Connection(asyncio.BufferedProtocol):
    """Carries one request after another; `start` begins one, the answer tells the rest."""

    __slots__ = (
        "_answer",
        "_armed",
        "_big",
        "_blocked",
        "_buffer",
        "_fed",
        "_view",
        "_deadline",
        "_earlier",
        "_head_only",
        "_idle_s",
        "_interim",
        "_interims",
        "_keep",
        "_keep_alive_s",
        "_limit",
        "_owner",
        "_parser",
        "_phase",
        "_quiet_bytes",
        "_read_paused",
        "_refusal",
        "_sent_at",
        "_surplus",
        "_timer",
        "_transport",
        "_uploading",
        "_write_paused",
        "clock",
        "is_closed",
        "loop",
        "resting",
        "reused",
    )

    def __init__(self, owner: Owner, loop: asyncio.AbstractEventLoop, buffer: bytearray) -> None:
        self.loop = loop
        self.clock = loop.time
        self.reused = False
        self.resting = False
        self.is_closed = False
        self._owner = owner
        self._transport: asyncio.Transport | None = None
        self._parser: HttpResponseParser | None = None
        self._answer: Http1Answer | None = None
        self._phase = _IDLE
        self._refusal = ""
        self._surplus = self._keep = self._interim = False
        self._head_only = self._big = self._uploading = False
        self._read_paused = self._write_paused = False
        self._buffer = buffer
        self._view = memoryview(buffer)
        self._fed = 0  # how much of the buffer llhttp is being fed
        self._earlier = bytearray()  # the part of the head that came before
        self._interims = 0
        self._quiet_bytes = 0  # what came since the head or the last data, and was neither
        self._keep_alive_s = owner.keep_alive_s
        self._timer: asyncio.TimerHandle | None = None
        self._armed = inf  # when the timer fires; it stays armed across requests
        self._limit = inf
        self._deadline = inf
        self._idle_s = inf
        self._sent_at = 0.0
        self._blocked: asyncio.Future[None] | None = None

    # ------------------------------------------------------------ requests

    def start(
        self,
        head: bytes,
        body: bytes | None,
        timeouts: Timeouts,
        deadline: float,
        *,
        head_only: bool = False,
    ) -> Http1Answer:
        """Send a request; a body of None is left to `upload`. The answer wakes when its head is here."""
        transport = self._transport
        if transport is None:
            raise RuntimeError("not connected")
        self._answer = answer = Http1Answer(self)
        self._phase = _HEAD
        self.resting = False
        self._head_only = head_only
        self._deadline = deadline
        self._idle_s = timeouts.idle_s
        self._sent_at = now = self.clock()
        limit = now + timeouts.first_byte_s
        if deadline < limit:
            limit = deadline
        self._limit = limit
        if limit < self._armed:
            self._arm(limit)
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

    async def upload(
        self, answer: Http1Answer, body: AsyncIterator[bytes], timeouts: Timeouts
    ) -> None:
        """Send the body as chunks, as fast as the upstream takes them; an early answer ends it."""
        self._uploading = True
        self._limit = self._deadline  # the next piece is made on our side
        async for piece in body:
            transport = self._transport
            if answer.status or answer.ended or transport is None:
                return
            if piece:
                transport.writelines((b"%x\r\n" % len(piece), piece, b"\r\n"))
            if self._write_paused:
                await self._until_written()
        if answer.status or answer.ended or self._transport is None:
            return
        self._transport.write(b"0\r\n\r\n")
        self._uploading = False
        self._set_limit(min(self.clock() + timeouts.first_byte_s, self._deadline))

    def hang_up(self) -> None:
        """Close at once (the answer is not wanted any more)."""
        self._answer = None
        self.close()

    def drained(self) -> None:
        """Read on when reading was paused."""
        if self._read_paused and self._transport is not None:
            self._read_paused = False
            self._transport.resume_reading()

    def rest(self) -> None:
        """Wait in the pool for the next request."""
        self.reused = self.resting = True
        limit = self._limit = self.clock() + self._keep_alive_s
        if limit < self._armed:
            self._arm(limit)

    def abort(self) -> None:
        """Close at once and fail whatever is under way."""
        self._lost(None)

    def close(self) -> None:
        """Close the socket at once and give the slot away; idempotent."""
        if self.is_closed:
            return
        self.is_closed = True
        self._phase = _IDLE
        self._parser = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is not None:
            self._transport.abort()
        self._unblock()
        self._owner.closed(self)

    # ------------------------------------------------------------ called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin with a fresh parser."""
        # Both loops hand out transports that read and write; the common type does not say so.
        self._transport = cast("asyncio.Transport", transport)
        self._parser = HttpResponseParser(self)
        if self.is_closed:
            self._transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where to put the bytes; all connections share it, `buffer_updated` follows at once."""
        return (
            self._view
        )  # not the bytearray: asyncio's TLS takes slices of it, which must not be copies

    def buffer_updated(self, nbytes: int) -> None:
        """Feed the parser, then do what the new state asks for."""
        parser, answer = self._parser, self._answer
        if answer is None or parser is None:
            self.close()  # nobody asked for it: what follows could not be told apart
            return
        buffered = answer.buffered
        self._fed = nbytes
        try:
            parser.feed_data(self._view[:nbytes])
        except HttpParserError as error:
            if self._phase != _DONE:
                self._refuse(self._refusal or str(error))
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
                self._pause()
            answer.wake()
        else:
            self._quiet_bytes += nbytes
            if self._quiet_bytes > 2 * MAX_HEAD_BYTES:
                self._refuse("framing without data")
            answer.wake()

    def eof_received(self) -> None:
        """End the message by the close, if it may end so."""
        self._lost(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the message by the close, if it may end so."""
        self._lost(exc)
        self._transport = None
        self._owner.gone(self)

    def pause_writing(self) -> None:
        """Hold the upload."""
        self._write_paused = True

    def resume_writing(self) -> None:
        """Go on with the upload."""
        self._write_paused = False
        self._unblock()

    # ------------------------------------------------------------ called by the parser

    def on_message_begin(self) -> None:
        """Refuse a message that nobody asked for."""
        if self._phase != _HEAD:
            self._stop("bytes after the end of the message")

    def on_headers_complete(self) -> None:
        """Accept or refuse the head."""
        answer, parser = self._answer, self._parser
        if answer is None or parser is None or self._phase != _HEAD:
            self._stop("bytes after the end of the message")
        status = parser.get_status_code()
        if status < 200:
            if status < 100 or status == 101:
                self._stop(f"status {status}")
            self._interim = True
            self._interims += 1
            return
        if status > 599 or (300 <= status < 400 and status != 304):
            self._stop(f"status {status}")
        if self._earlier or self._interims:
            head = self._join_head()
        else:
            head = bytes(self._view[: self._buffer.index(b"\r\n\r\n", 0, self._fed) + 4])
        answer.head = head
        if len(head) > 4 * MAX_HEADERS or not self.reused or b"-encoding:" in head.lower():
            self._check(head)
        answer.status = status
        answer.touched = now = self.clock()
        limit = now + self._idle_s
        if self._deadline < limit:
            limit = self._deadline
        if limit < self._armed:
            self._arm(limit)
        if self._head_only:
            self._keep = parser.should_keep_alive()
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
        elif self._phase == _BODY and self._parser is not None:
            self._keep = self._parser.should_keep_alive()
            self._phase = _DONE

    # ------------------------------------------------------------ heads

    def _join_head(self) -> bytes:
        """Cut the head out of all that came since the request, behind the interim answers."""
        raw = bytes(self._earlier + self._view[: self._fed])
        self._earlier.clear()
        start = 0
        for _ in range(self._interims):
            start = raw.index(b"\r\n\r\n", start) + 4
            while raw.startswith(b"\r\n", start):
                start += 2
        self._interims = 0
        return raw[start : raw.index(b"\r\n\r\n", start) + 4]

    def _check(self, head: bytes) -> None:
        if len(head) > MAX_HEAD_BYTES or head.count(b"\r\n") - 2 > MAX_HEADERS:
            self._stop("the head is too large")
        encoding = header_of(head, b"content-encoding")
        if encoding and encoding.lower() != b"identity":
            self._stop("an encoded body, though identity was asked for")
        transfer = header_of(head, b"transfer-encoding")
        if transfer is not None and transfer.lower() != b"chunked":
            self._stop("a transfer encoding other than chunked")
        if not self.reused:
            self._heed_keep_alive(head)

    def _heed_keep_alive(self, head: bytes) -> None:
        _, _, seconds = (header_of(head, b"keep-alive") or b"").partition(b"timeout=")
        digits = seconds[:6].partition(b",")[0].strip()
        if digits.isdigit():
            self._keep_alive_s = min(self._owner.keep_alive_s, max(int(digits) - 1.0, 0.5))

    # ------------------------------------------------------------ ends

    def _end(self) -> None:
        answer, transport = self._answer, self._transport
        self._answer = None
        if answer is not None:
            answer.finish(complete=True)
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
        if self._head_only:
            self._parser = HttpResponseParser(self)  # the old one waits for a body
        if self._read_paused:
            self.drained()
        self._owner.release(self)

    def _lost(self, exc: Exception | None) -> None:
        answer = self._answer
        self._answer = None
        if answer is None:
            self.close()
        elif self._phase == _BODY and _is_orderly(exc) and not _is_framed(answer.head):
            answer.finish(complete=False)
            self.close()
        elif self._phase == _BODY:
            self._fail(answer, "upstream_truncated", _reason(exc))
        else:
            stale = (
                self.reused
                and not self._uploading
                and not self._earlier
                and self.clock() - self._sent_at <= REPEAT_WITHIN_S
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
        if self._phase == _BODY:
            phase = "body"
        else:
            phase = "send" if self._uploading else "first_byte"
        answer.fail(UpstreamError(code, phase=phase, detail=detail), stale=stale)
        self.close()

    def _stop(self, reason: str) -> NoReturn:
        self._refusal = reason
        raise _Refused

    # ------------------------------------------------------------ flow and deadlines

    def _pause(self) -> None:
        if not self._read_paused and self._transport is not None:
            self._read_paused = True
            self._transport.pause_reading()

    async def _until_written(self) -> None:
        self._set_limit(min(self.clock() + self._idle_s, self._deadline))
        self._blocked = blocked = self.loop.create_future()
        await blocked
        self._limit = self._deadline

    def _unblock(self) -> None:
        blocked = self._blocked
        if blocked is not None:
            self._blocked = None
            if not blocked.done():
                blocked.set_result(None)

    def _set_limit(self, at: float) -> None:
        self._limit = at
        if at < self._armed:
            self._arm(at)

    def _arm(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._armed = at
        self._timer = self.loop.call_at(at, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._armed = inf
        now = self.clock()
        answer = self._answer
        limit = self._limit
        if self._phase == _BODY and answer is not None:
            if answer.buffered:
                answer.touched = now  # its reader is late, not the upstream
            limit = min(self._deadline, answer.touched + self._idle_s)
        if limit > now + _EARLY:
            self._arm(limit)
            return
        self._answer = None
        if answer is None:
            self.close()
        else:
            late = now + _EARLY >= self._deadline
            self._fail(answer, "deadline_exceeded" if late else "upstream_timeout", "")


class _Refused(Exception):  # noqa: N818  stops the parser and never leaves this file
    """The parser must stop; `_refusal` says why."""


def _is_orderly(exc: Exception | None) -> bool:
    return exc is None or isinstance(exc, ssl.SSLError)


def _is_framed(head: bytes) -> bool:
    return any(
        header_of(head, name) is not None for name in (b"content-length", b"transfer-encoding")
    )


def _reason(exc: Exception | None) -> str:
    return "closed by the upstream" if exc is None else type(exc).__name__
