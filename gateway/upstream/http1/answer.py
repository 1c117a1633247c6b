"""One answer of the fast transport: what has come and was not read yet, and how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from gateway.core.errors import UpstreamError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


class Line(Protocol):
    """The connection an answer comes in on, as far as the answer may use it."""

    def drained(self) -> None:
        """Tell that everything buffered was read."""
        ...

    def hang_up(self) -> None:
        """Close at once; the answer is not wanted any more."""
        ...


class Http1Answer:
    """See `gateway.upstream.client.Answer`. The connection lets go of it as soon as the message has ended."""

    __slots__ = (
        "buffered",
        "chunks",
        "clock",
        "complete",
        "ended",
        "error",
        "headers",
        "line",
        "loop",
        "repeated",
        "stale",
        "status",
        "touched",
        "waiter",
    )

    def __init__(
        self, line: Line, loop: asyncio.AbstractEventLoop, clock: Callable[[], float]
    ) -> None:
        self.line: Line | None = line
        self.loop = loop
        self.clock = clock
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.chunks: list[bytes] = []
        self.buffered = 0
        self.touched = 0.0
        self.waiter: asyncio.Future[None] | None = None
        self.error: UpstreamError | None = None
        self.complete = False
        self.ended = False
        self.repeated = False
        self.stale = False

    @property
    def content_type(self) -> bytes:
        value = self.header(b"content-type")
        return b"" if value is None else value.partition(b";")[0].strip().lower()

    def header(self, name: bytes) -> bytes | None:
        for key, value in self.headers:
            if key == name:
                return value
        return None

    def touch(self) -> None:
        self.touched = self.clock()

    def abort(self) -> None:
        line = self.line
        if line is not None:
            self.error = _aborted()
            line.hang_up()
        self.chunks.clear()
        self.buffered = 0
        self.ended = True

    async def read(self) -> bytes:
        chunks = self.chunks
        while not chunks:
            if self.ended:
                if self.error is not None:
                    raise self.error
                return b""
            await self.wait()
        data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        chunks.clear()
        self.buffered = 0
        line = self.line
        if line is not None:
            line.drained()
        return data

    async def read_all(self, limit: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        while data := await self.read():
            size += len(data)
            if size > limit:
                self.abort()
                raise UpstreamError(
                    "upstream_invalid_response", phase="body", detail=f"body above {limit} bytes"
                )
            parts.append(data)
            self.touched = self.clock()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def wait(self) -> None:
        """Wait for anything to happen; a cancelled wait closes the connection."""
        self.waiter = waiter = self.loop.create_future()
        try:
            await waiter
        except BaseException:
            self.waiter = None
            self.abort()
            raise

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

    def fail(self, error: UpstreamError, *, stale: bool = False) -> None:
        """Let go of the connection: the message is lost."""
        self.line = None
        self.error = error
        self.stale = stale
        self.ended = True
        self.wake()


def _aborted() -> UpstreamError:
    return UpstreamError("upstream_unavailable", phase="body", detail="aborted by its reader")
