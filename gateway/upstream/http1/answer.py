"""One answer of the fast transport: what has come and was not read yet, and how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from gateway.core.errors import UpstreamError
from gateway.upstream.http1.head import header_of, headers_of

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from gateway.upstream.spec import Headers


class Line(Protocol):
    """The connection an answer comes in on, as far as the answer may use it."""

    clock: Callable[[], float]
    loop: asyncio.AbstractEventLoop

    def drained(self) -> None:
        """Tell that everything buffered was read."""
        ...

    def hang_up(self) -> None:
        """Close at once; the answer is not wanted any more."""
        ...


class Http1Answer:
    """See `gateway.upstream.client.Answer`. The connection lets go of it when the message has ended."""

    __slots__ = (
        "_take",
        "buffered",
        "chunks",
        "complete",
        "crash",
        "ended",
        "fault",
        "head",
        "line",
        "low",
        "repeated",
        "stale",
        "status",
        "touched",
        "waiter",
    )

    def __init__(self, line: Line) -> None:
        self.line: Line | None = line
        self.chunks: list[bytes] = []
        self.head = self.low = b""
        self.status = 0
        self.buffered = 0
        self.touched = 0.0
        self.waiter: asyncio.Future[None] | None = None
        self._take: Callable[[], bool] | None = None
        self.fault: tuple[str, str, str] | None = None  # code, phase, detail
        self.crash: Exception | None = None  # raised by `take` of `flow`: our own fault
        self.complete = False
        self.ended = False
        self.repeated = False
        self.stale = False

    @property
    def headers(self) -> Headers:
        """The headers in order, names in lower case."""
        return headers_of(self.head)

    @property
    def content_type(self) -> bytes:
        """The media type in lower case without parameters; empty when absent."""
        low = self.low
        start = low.find(b"\r\ncontent-type:")
        if start < 0:
            return b""
        return low[start + 15 : low.index(b"\r\n", start + 15)].partition(b";")[0].strip()

    def header(self, name: bytes) -> bytes | None:
        """Return the first header of this lower-case name."""
        return header_of(self.head, self.low, name)

    def touch(self) -> None:
        """Count the idle limit from now."""
        line = self.line
        if line is not None:
            self.touched = line.clock()

    def abort(self) -> None:
        """Close the connection now; no effect after the end, or twice."""
        line = self.line
        if line is not None:
            self.line = None
            self.fault = ("upstream_unavailable", "body", "aborted")
            line.hang_up()
        self.chunks.clear()
        self.buffered = 0
        self.ended = True
        self.wake()

    async def read(self) -> bytes:
        """Return all bytes that have come, at least one; empty at the end."""
        chunks = self.chunks
        while not chunks:
            if self.ended:
                self.check()
                return b""
            await self.wait()
        data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        chunks.clear()
        self.buffered = 0
        line = self.line
        if line is not None:
            line.drained()
        return data

    @property
    def pending(self) -> list[bytes]:
        """What has come and was not read; for `take` of `flow`."""
        return self.chunks

    async def flow(self, take: Callable[[], bool]) -> None:
        """Have `take` called for whatever comes, as it comes, until it returns False or the message ends."""
        if self.chunks or self.ended:
            return
        self._take = take
        try:
            await self.wait()
        finally:
            self._take = None

    def at_hand(self, limit: int) -> bytes | None:
        """Return the whole rest if it is here and not above `limit` bytes, else None."""
        if not self.ended or len(self.chunks) != 1 or self.fault is not None:
            return None
        data = self.chunks[0]
        if len(data) > limit:
            return None
        self.chunks.clear()
        return data

    async def read_all(self, limit: int) -> bytes:
        """Return the whole rest; UpstreamError upstream_invalid_response above `limit` bytes."""
        data = self.at_hand(limit)
        if data is not None:
            return data
        parts: list[bytes] = []
        size = 0
        while not self.ended or self.chunks:
            data = await self.read()
            size += len(data)
            if size > limit:
                self.abort()
                raise UpstreamError(
                    "upstream_invalid_response", phase="body", detail=f"body above {limit} bytes"
                )
            parts.append(data)
            self.touch()
        self.check()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def wait(self) -> None:
        """Wait for anything to happen; a cancelled wait closes the connection."""
        line = self.line
        if line is None:
            return
        self.waiter = waiter = line.loop.create_future()
        try:
            await waiter
        except BaseException:
            self.waiter = None
            self.abort()
            raise

    def arrived(self) -> None:
        """Pass on what has come where that is wished, else wake the one who waits."""
        take = self._take
        if take is None:
            self.wake()
        elif self.chunks:
            goes_on = take()
            if not self.chunks:
                self.buffered = 0
                line = self.line
                if line is not None:
                    line.drained()
            if not goes_on:
                self._take = None  # at once: more may come before whoever waits has its turn
                self.wake()

    def wake(self) -> None:
        """Wake the one who waits."""
        waiter = self.waiter
        if waiter is not None:
            self.waiter = None
            if not waiter.done():
                waiter.set_result(None)

    def finish(self, *, complete: bool) -> None:
        """Let go of the connection: the message has ended."""
        self.line = None
        self.complete = complete
        self.ended = True
        self.wake()

    def fail(self, code: str, phase: str, detail: str, *, stale: bool = False) -> None:
        """Let go of the connection: the message is lost."""
        self.line = None
        self.fault = (code, phase, detail)
        self.stale = stale
        self.ended = True
        self.wake()

    def check(self) -> None:
        """Raise the UpstreamError that ended the message, or what our own side of it raised."""
        if self.crash is not None:
            raise self.crash
        if self.fault is not None:
            code, phase, detail = self.fault
            # Made here: kept, it would hold on to the frames it was raised in, and they to it.
            raise UpstreamError(code, phase=phase, detail=detail)
