"""A provider that takes its time: an answer comes after as many milliseconds as the request's `user` says."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

from tests.support.faulty import DONE, FINISH, GOOD, event, events_of
from tests.support.scripted_upstream import LAST_CHUNK, STREAM_HEAD, chunk, ok

_EVENTS = 10
_WORDS = [event(f"word {number}") for number in range(_EVENTS)]
WHOLE = events_of(b"".join((*_WORDS, FINISH, DONE)))
"""The events of a whole stream."""


class _Slow(asyncio.Protocol):
    """One connection; a stream is spread over the time."""

    def __init__(self) -> None:
        self._seen = b""
        self._answering: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._seen += data
        _, marker, after = self._seen.partition(b'"user":"')
        if marker and self._seen.endswith(b"}"):
            took_s = int(after.partition(b'"')[0]) / 1000
            pieces = _stream() if b'"stream":true' in self._seen else [ok(GOOD)]
            self._seen = b""
            self._answering = asyncio.ensure_future(self._answer(pieces, took_s))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answering is not None:
            self._answering.cancel()

    async def _answer(self, pieces: list[bytes], took_s: float) -> None:
        for piece in pieces:
            await asyncio.sleep(took_s / len(pieces))
            self._transport.write(piece)


def _stream() -> list[bytes]:
    first, *rest = [chunk(each) for each in (*_WORDS, FINISH + DONE)]
    return [STREAM_HEAD + first, *rest[:-1], rest[-1] + LAST_CHUNK]


@asynccontextmanager
async def provider() -> AsyncGenerator[int]:
    """Serve it until the block ends; yields its port."""
    server = await asyncio.get_running_loop().create_server(_Slow, "127.0.0.1", 0, backlog=2048)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
