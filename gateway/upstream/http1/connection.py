"""One HTTP/1.1 connection: an asyncio protocol that drives llhttp, one deadline timer, one answer at a time."""

from __future__ import annotations

import asyncio
import ssl
from math import inf
from typing import TYPE_CHECKING, Final, NoReturn, Protocol, cast

from httptools import HttpParserError, HttpResponseParser

from gateway.core.errors import UpstreamError
from gateway.upstream.http1.answer import Http1Answer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from gateway.upstream.spec import Timeouts

MAX_HEAD_BYTES: Final = 64 * 1024
MAX_HEADERS: Final = 128
HIGH_WATER: Final = 256 * 1024
"""Unread bytes above which the socket is not read any more."""
JOIN_BELOW: Final = 16 * 1024
"""Bodies up to this size go out in one buffer with the head; copying them is cheaper than two buffers."""
REPEAT_WITHIN_S: Final = 1.0
"""A reused connection that dies later than this after the request went out was not stale: work may have begun."""
_EARLY: Final = 0.001

_IDLE: Final = 0
_HEAD: Final = 1
_BODY: Final = 2
_DONE: Final = 3

_WATCHED = frozenset({b"content-length", b"transfer-encoding", b"content-encoding", b"keep-alive"})
_NO_BODY = frozenset({204, 304})


class Owner(Protocol):
    """The pool a connection belongs to."""

    keep_alive_s: float

    def release(self, connection: Connection) -> None:
        """Take back a connection that can carry another request."""
        ...

    def closed(self, connection: Connection) -> None:
        """Give the slot of a connection to someone else; the socket closes by itself."""
        ...

    def gone(self, connection: Connection) -> None:
        """Forget a connection whose socket is closed."""
        ...


class Connection(asyncio.Protocol):
    """Carries one request after another; `start` begins one, the answer tells the rest."""

    def __init__(self, owner: Owner, loop: asyncio.AbstractEventLoop) -> None:
        self._owner = owner
        self._loop = loop
        self._clock = loop.time
        self._transport: asyncio.Transport | None = None
        self._parser: HttpResponseParser | None = None
        self._answer: Http1Answer | None = None
        self._phase = _IDLE
        self._refusal = ""
        self._framed = self._interim = self._surplus = self._keep = False
        self._head_only = self._big = self._uploading = self._paused = False
        self._quiet_bytes = 0
        self._keep_alive_s = owner.keep_alive_s
        self._timer: asyncio.TimerHandle | None = None
        self._armed = inf
        self._limit = inf
        self._deadline = inf
        self._idle_s = inf
        self._sent_at = 0.0
        self._blocked: asyncio.Future[None] | None = None
        self._write_paused = False
        self.reused = False
        self.resting = False
        self.is_closed = False

    # ------------------------------------------------------------ requests

    def start(
        self,
        head: bytes,
        body: bytes | None,
        timeouts: Timeouts,
        deadline: float,
        *,
        head_only: bool,
    ) -> Http1Answer:
        """Send a request; `body` None leaves the upload to `upload`. The answer wakes when its head is here."""
        transport = self._transport
        assert transport is not None  # noqa: S101  only connected ones are handed out
        answer = Http1Answer(self, self._loop, self._clock)
        self._answer = answer
        self.resting = False
        self._phase = _HEAD
        self._framed = self._surplus = False
        self._head_only = head_only
        self._quiet_bytes = 0
        self._deadline = deadline
        self._idle_s = timeouts.idle_s
        self._sent_at = now = self._clock()
        limit = now + timeouts.first_byte_s
        self._limit = limit = deadline if deadline < limit else limit
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
        self._limit = self._deadline  # while our own side makes the next piece
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
        self._set_limit(min(self._clock() + timeouts.first_byte_s, self._deadline))

    async def _until_written(self) -> None:
        self._set_limit(min(self._clock() + self._idle_s, self._deadline))
        self._blocked = blocked = self._loop.create_future()
        await blocked
        self._limit = self._deadline

    def hang_up(self) -> None:
        """Close at once (the answer is not wanted any more)."""
        self._answer = None
        self.close()

    def drained(self) -> None:
        """Read on when reading was paused."""
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

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

    def abort(self) -> None:
        """Close at once and fail whatever is under way."""
        self._lost(None)

    def rest(self) -> None:
        """Wait in the pool for the next request."""
        self.reused = self.resting = True
        limit = self._limit = self._clock() + self._keep_alive_s
        if limit < self._armed:
            self._arm(limit)

    # ------------------------------------------------------------ asyncio protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Both loops hand plain and TLS transports that read and write; their common type does not say so.
        self._transport = cast("asyncio.Transport", transport)
        self._parser = HttpResponseParser(self)

    def data_received(self, data: bytes) -> None:
        parser = self._parser
        answer = self._answer
        if answer is None or parser is None:
            self.close()  # a byte that nobody asked for: whatever follows cannot be told apart
            return
        before = answer.buffered
        if self._phase == _HEAD:
            self._quiet_bytes += len(data)
        try:
            parser.feed_data(data)
        except HttpParserError as error:
            if self._phase != _DONE:
                self._refuse(self._refusal or str(error))
                return
            self._surplus = True
        phase = self._phase
        if phase == _DONE:
            self._end()
        elif phase == _BODY:
            if answer.buffered != before:
                self._quiet_bytes = 0
                if answer.buffered > HIGH_WATER and not self._paused and self._transport:
                    self._paused = True
                    self._transport.pause_reading()
                answer.wake()
            else:
                self._count_quiet(len(data))
                if answer.waiter is not None and answer.status:
                    answer.wake()
        elif self._quiet_bytes > MAX_HEAD_BYTES:
            self._refuse("the head is too large")

    def eof_received(self) -> bool | None:
        self._lost(None)
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost(exc)
        self._transport = None
        self._owner.gone(self)

    def pause_writing(self) -> None:
        self._write_paused = True

    def resume_writing(self) -> None:
        self._write_paused = False
        self._unblock()

    # ------------------------------------------------------------ httptools callbacks

    def on_message_begin(self) -> None:
        if self._phase != _HEAD:
            self._surplus = True
            self._stop("bytes after the end of the message")

    def on_header(self, name: bytes, value: bytes) -> None:
        answer = self._answer
        if self._phase != _HEAD or answer is None:
            return  # trailers are counted by size and dropped
        headers = answer.headers
        if len(headers) >= MAX_HEADERS:
            self._stop("too many headers")
        name = name.lower()
        headers.append((name, value))
        if name in _WATCHED:
            self._watch(name, value)

    def on_headers_complete(self) -> None:
        answer, parser = self._answer, self._parser
        if answer is None or parser is None:
            self._stop("no request")
            return
        status = parser.get_status_code()
        if status < 200:
            if status < 100 or status == 101:
                self._stop(f"status {status}")
            self._interim = True
            answer.headers.clear()
            self._framed = False
            return
        if status > 599 or 300 <= status < 400 and status != 304:
            self._stop(f"status {status}")
        if self._quiet_bytes > MAX_HEAD_BYTES:
            size = sum(len(name) + len(value) + 4 for name, value in answer.headers)
            if size > MAX_HEAD_BYTES:
                self._stop("the head is too large")
        self._quiet_bytes = 0
        answer.status = status
        if self._head_only or status in _NO_BODY:
            self._framed = True
        self._phase = _BODY
        answer.touched = now = self._clock()
        limit = now + self._idle_s
        if self._deadline < limit:
            limit = self._deadline
        if limit < self._armed:
            self._arm(limit)
        if self._head_only:
            self._keep = parser.should_keep_alive()
            self._phase = _DONE

    def on_body(self, body: bytes) -> None:
        answer = self._answer
        if self._phase != _BODY or answer is None:
            self._surplus = True
            self._stop("a body where none can be")
            return
        answer.chunks.append(body)
        answer.buffered += len(body)

    def on_message_complete(self) -> None:
        if self._interim:
            self._interim = False
        elif self._phase == _BODY and self._parser is not None:
            self._keep = self._parser.should_keep_alive()
            self._phase = _DONE

    # ------------------------------------------------------------ the end of a message

    def _end(self) -> None:
        answer = self._answer
        self._answer = None
        if answer is not None:
            answer.finish(complete=True)
        transport = self._transport
        if (
            not self._keep
            or self._surplus
            or self._uploading
            or self.is_closed
            or transport is None
            or (self._big and transport.get_write_buffer_size())
        ):
            self.close()
            return
        if self._head_only:
            self._parser = HttpResponseParser(self)  # the old one still waits for a body
        if self._paused:
            self._paused = False
            transport.resume_reading()
        self._phase = _IDLE
        self._owner.release(self)

    def _lost(self, exc: Exception | None) -> None:
        answer = self._answer
        if answer is None:
            self.close()
            return
        self._answer = None
        if self._phase == _BODY:
            if not self._framed and (exc is None or isinstance(exc, ssl.SSLError)):
                answer.finish(complete=False)
            else:
                answer.fail(UpstreamError("upstream_truncated", phase="body", detail=_reason(exc)))
        else:
            fresh_bytes = self._quiet_bytes == 0 and not self._uploading
            recent = self._clock() - self._sent_at <= REPEAT_WITHIN_S
            answer.fail(
                UpstreamError(
                    "upstream_unavailable", phase=self._phase_name(), detail=_reason(exc)
                ),
                stale=self.reused and fresh_bytes and recent,
            )
        self.close()

    def _refuse(self, reason: str) -> None:
        answer = self._answer
        self._answer = None
        if answer is not None:
            answer.fail(
                UpstreamError("upstream_invalid_response", phase=self._phase_name(), detail=reason)
            )
        self.close()

    def _phase_name(self) -> str:
        if self._phase == _BODY:
            return "body"
        return "send" if self._uploading else "first_byte"

    def _stop(self, reason: str) -> NoReturn:
        self._refusal = reason
        raise _Refused

    def _watch(self, name: bytes, value: bytes) -> None:
        if name == b"content-length":
            self._framed = True
        elif name == b"transfer-encoding":
            if value.strip().lower() != b"chunked" or self._framed:
                self._stop("a transfer encoding other than chunked")
            self._framed = True
        elif name == b"content-encoding":
            if value.strip().lower() not in {b"identity", b""}:
                self._stop("an encoded body, though identity was asked for")
        else:
            _, _, seconds = value.partition(b"timeout=")
            digits = seconds[:6].partition(b",")[0].strip()
            if digits.isdigit():
                self._keep_alive_s = min(self._owner.keep_alive_s, max(int(digits) - 1.0, 0.5))

    def _count_quiet(self, size: int) -> None:
        self._quiet_bytes += size
        if self._quiet_bytes > MAX_HEAD_BYTES:
            self._refuse("framing without data")

    # ------------------------------------------------------------ deadlines

    def _set_limit(self, at: float) -> None:
        self._limit = at
        if at < self._armed:
            self._arm(at)

    def _arm(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._armed = at
        self._timer = self._loop.call_at(at, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._armed = inf
        now = self._clock()
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
        if answer is not None:
            code = "deadline_exceeded" if now + _EARLY >= self._deadline else "upstream_timeout"
            answer.fail(UpstreamError(code, phase=self._phase_name()))
        self.close()

    def _unblock(self) -> None:
        blocked = self._blocked
        if blocked is not None:
            self._blocked = None
            if not blocked.done():
                blocked.set_result(None)


class _Refused(Exception):  # noqa: N818  stops the parser; never leaves this file
    """The parser must stop; `_refusal` says why."""


def _reason(exc: Exception | None) -> str:
    return "closed by the upstream" if exc is None else type(exc).__name__
