"""Over HTTP/2 a request goes out again only where the upstream says that it has not begun."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import RequestReceived, StreamEnded

from tests.support.outgoing import client, facts, failure, post, spec, whole

LOOPS = ("asyncio", "uvloop")


@dataclass
class Multiplexed:
    """An upstream that answers its requests in turn: with a body, or with an error code for the stream."""

    ends: Sequence[bytes | ErrorCodes]
    port: int = 0
    asked: int = 0
    lines: list["Line"] = field(default_factory=list["Line"])


class Line(asyncio.Protocol):
    """One connection to it."""

    def __init__(self, owner: Multiplexed) -> None:
        self._owner = owner
        self._http = H2Connection(H2Configuration(client_side=False))
        owner.lines.append(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._http.initiate_connection()
        self._flush()

    def data_received(self, data: bytes) -> None:
        for event in self._http.receive_data(data):
            if isinstance(event, RequestReceived):
                self._owner.asked += 1
            elif isinstance(event, StreamEnded):
                self._end(event.stream_id)
        self._flush()

    def _end(self, stream: int) -> None:
        end = self._owner.ends[min(self._owner.asked, len(self._owner.ends)) - 1]
        if isinstance(end, ErrorCodes):
            self._http.reset_stream(stream, end)
            return
        self._http.send_headers(stream, [(":status", "200"), ("content-length", str(len(end)))])
        self._http.send_data(stream, end, end_stream=True)

    def _flush(self) -> None:
        self.transport.write(self._http.data_to_send())


@asynccontextmanager
async def multiplexed(*ends: bytes | ErrorCodes) -> AsyncGenerator[Multiplexed]:
    made = Multiplexed(ends)
    server = await asyncio.get_running_loop().create_server(lambda: Line(made), "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        for line in made.lines:
            line.transport.abort()


@pytest.mark.fault("U-15")
async def test_a_refused_stream_is_asked_once_more() -> None:
    async with multiplexed(b"one", ErrorCodes.REFUSED_STREAM, b"two") as up, client() as out:
        to = out.endpoint(spec(f"http://127.0.0.1:{up.port}", "httpx", http2=True))
        assert await whole(to) == b"one"
        answer = await post(to)

        assert await answer.read_all(10) == b"two"
        assert answer.repeated
        assert up.asked == 3


@pytest.mark.fault("U-15")
async def test_a_stream_that_is_refused_twice_is_an_error() -> None:
    async with multiplexed(ErrorCodes.REFUSED_STREAM) as up, client() as out:
        to = out.endpoint(spec(f"http://127.0.0.1:{up.port}", "httpx", http2=True))

        assert (await failure(post(to))).code in {
            "upstream_unavailable",
            "upstream_invalid_response",
        }
        assert up.asked == 2


@pytest.mark.fault("U-16")
@pytest.mark.bug("K15")
@pytest.mark.parametrize(
    "code", [ErrorCodes.PROTOCOL_ERROR, ErrorCodes.INTERNAL_ERROR, ErrorCodes.CANCEL]
)
async def test_a_stream_that_may_have_begun_is_not_asked_again(code: ErrorCodes) -> None:
    async with multiplexed(b"one", code, b"two") as up, client() as out:
        to = out.endpoint(spec(f"http://127.0.0.1:{up.port}", "httpx", http2=True))
        assert await whole(to) == b"one"
        error = await failure(post(to))

        assert facts(error)[2]
        assert up.asked == 2
