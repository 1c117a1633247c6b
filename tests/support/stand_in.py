"""A provider's stand-in on a thread of its own: notes what it is sent, answers as a function says."""

import select
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from tests.support.gateway import wait_for

_BLOCK = 65536


@dataclass
class Seen:
    """One request as it comes; names of headers in lower case. `left_at` is when the caller hung up."""

    method: str
    path: str
    query: str
    headers: list[tuple[str, str]]
    parts: list[bytes] = field(default_factory=list[bytes])
    complete: bool = False
    left_at: float | None = None
    _socket: Any = None

    @property
    def body(self) -> bytes:
        """What has come of the body."""
        return b"".join(self.parts)

    def header(self, name: str) -> str | None:
        """Return the first header of this name."""
        return next((value for own, value in self.headers if own == name), None)

    def wait_left(self, within_s: float) -> bool:
        """Wait until the caller hangs up; tell whether it did."""
        readable, _, _ = select.select([self._socket], [], [], within_s)
        if not readable:
            return False
        try:
            gone = self._socket.recv(1, socket.MSG_PEEK) == b""
        except OSError:
            gone = True
        if gone and self.left_at is None:
            self.left_at = time.monotonic()
        return gone


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer; a body in pieces is sent in chunks, and cut where it is not `whole`."""

    body: bytes | Iterable[bytes] = b""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),)
    whole: bool = True


Answer = Callable[[Seen], Reply]


@dataclass
class StandIn:
    """A running stand-in. `url` has no path."""

    url: str
    seen: list[Seen] = field(default_factory=list[Seen])

    @property
    def last(self) -> Seen:
        """The latest request."""
        return self.seen[-1]

    def with_mark(self, mark: str) -> Seen:
        """Return the request whose body holds this mark, once it has come."""

        def probe() -> Seen | None:
            return next(
                (one for one in self.seen if one.complete and mark.encode() in one.body), None
            )

        return wait_for(probe, what=f"a request with {mark}")


@contextmanager
def stand_in(answer: Answer) -> Generator[StandIn]:
    """Answer every request as `answer` says, until the block ends."""
    standing = StandIn("")

    def respond(handler: _Handler) -> None:
        handler.handle_one(standing, answer)

    methods = {f"do_{method}": respond for method in ("GET", "POST", "DELETE", "HEAD")}
    Handler = type("Handler", (_Handler,), methods)  # noqa: N806  a class
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    standing.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield standing
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the library's name
        """Say nothing."""

    def handle_one(self, standing: StandIn, answer: Answer) -> None:
        """Note one request and answer it."""
        target = urlsplit(self.path)
        headers = [(name.lower(), value) for name, value in self.headers.items()]
        seen = Seen(self.command, target.path, target.query, headers)
        seen._socket = self.connection
        standing.seen.append(seen)
        try:
            self._read_body(seen)
            self._send(answer(seen))
        except OSError:
            if seen.left_at is None:
                seen.left_at = time.monotonic()
            self.close_connection = True

    def _read_body(self, seen: Seen) -> None:
        """Read the body as it comes, so that a test can look on."""
        if seen.header("transfer-encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                self._read_exactly(seen, size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            self._read_exactly(seen, int(seen.header("content-length") or "0"))
        seen.complete = True

    def _read_exactly(self, seen: Seen, size: int) -> None:
        while size:
            data = self.rfile.read1(min(size, _BLOCK))
            if not data:
                raise ConnectionError
            seen.parts.append(data)
            size -= len(data)

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        for name, value in reply.headers:
            self.send_header(name, value)
        if isinstance(reply.body, bytes):
            self.send_header("content-length", str(len(reply.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(reply.body if reply.whole else reply.body[:-1])
        else:
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            self.wfile.flush()
            for piece in reply.body:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                self.wfile.flush()
            if reply.whole:
                self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()
        if not reply.whole:
            self.close_connection = True
