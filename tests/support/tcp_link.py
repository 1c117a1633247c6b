"""A wire to a server that can be frozen, cut, or cut in the moment of a reply."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

_CHUNK = 65_536


class Link:
    """Passes bytes between clients and one server, on a port of its own."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._writers: set[asyncio.StreamWriter] = set()
        self._flows = asyncio.Event()
        self._flows.set()
        self._last_word = b""
        self.port = 0
        self.cuts = 0

    def freeze(self) -> None:
        """Pass nothing on, and close nothing."""
        self._flows.clear()

    def thaw(self) -> None:
        """Pass on what has gathered."""
        self._flows.set()

    def cut(self) -> None:
        """Close every connection."""
        for writer in self._writers:
            writer.transport.abort()

    def cut_reply_to(self, word: bytes) -> None:
        """Pass the next request that holds the word to the server, and cut when its reply comes."""
        self._last_word = word

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass the bytes of one client."""
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, far_writer}
        marked = asyncio.Event()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass(reader, far_writer, marked, is_request=True))
                group.create_task(self._pass(far_reader, writer, marked, is_request=False))
        finally:
            self._writers -= {writer, far_writer}
            for each in (writer, far_writer):
                each.transport.abort()

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        marked: asyncio.Event,
        *,
        is_request: bool,
    ) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(_CHUNK):
                await self._flows.wait()
                if is_request and self._last_word and self._last_word in data:
                    self._last_word = b""
                    marked.set()
                if not is_request and marked.is_set():
                    self.cuts += 1
                    break
                writer.write(data)
                await writer.drain()
        with suppress(ConnectionError):
            writer.close()


@asynccontextmanager
async def linked(port: int) -> AsyncGenerator[Link]:
    """Give a wire to a local port."""
    link = Link(port)
    server = await asyncio.start_server(link.serve, "127.0.0.1", 0)
    link.port = server.sockets[0].getsockname()[1]
    try:
        yield link
    finally:
        server.close()
        link.thaw()
        link.cut()
        await server.wait_closed()
