"""A mock upstream in two formats on uvloop: answers with bytes made before the first request.

The mode comes from the model name or the first path segment: anything with `paced` streams one
event per interval, anything with `hang` waits before it answers, the rest is answered at once.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import re
import signal
import socket
import sys
import time
from functools import partial
from typing import Final, cast

import httptools
import uvloop

from benchmarks import anthropic, payload

BACKLOG: Final = 4096
_MODEL: Final = re.compile(rb'"model"\s*:\s*"([^"]*)"')
_STREAM: Final = re.compile(rb'"stream"\s*:\s*true')
_END: Final = b"0\r\n\r\n"
_STREAM_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\n"
    b"date: Thu, 01 Jan 2026 00:00:00 GMT\r\n"
    b"content-type: text/event-stream; charset=utf-8\r\n"
    b"cache-control: no-cache\r\n"
    b"x-request-id: req_bench0123456789\r\n"
    b"openai-processing-ms: 1\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)


def _whole(body: bytes, status: bytes = b"200 OK") -> bytes:
    head = (
        b"HTTP/1.1 %b\r\n"
        b"date: Thu, 01 Jan 2026 00:00:00 GMT\r\n"
        b"content-type: application/json\r\n"
        b"x-request-id: req_bench0123456789\r\n"
        b"openai-processing-ms: 1\r\n"
        b"openai-version: 2020-10-01\r\n"
        b"content-length: %d\r\n\r\n"
    )
    return head % (status, len(body)) + body


_WHOAMI: Final = _whole(b'{"pid":%d}' % os.getpid())
_MODELS: Final = _whole(b'{"object":"list","data":[{"id":"bench","object":"model"}]}')
_NOT_FOUND: Final = _whole(b'{"error":{"message":"no such path"}}', b"404 Not Found")


class Format:
    """The bytes of one format of answers."""

    def __init__(
        self, answer: bytes, first: bytes, around: tuple[bytes, bytes], last: bytes
    ) -> None:
        before, after = around
        size = len(before) + payload.STAMP_DIGITS + len(after)
        self.answer = _whole(answer)
        self.first = payload.http_chunk(first)
        self.before = b"%x\r\n%b" % (size, before)
        self.after = after + b"\r\n"
        self.last = payload.http_chunk(last) + _END

    def content_chunk(self) -> bytes:
        """Return one event with the time of now."""
        return b"%b%019d%b" % (self.before, time.monotonic_ns(), self.after)


_CHAT: Final = Format(
    payload.answer_body(),
    payload.role_event(),
    payload.content_event_parts(),
    payload.last_events(),
)
_MESSAGES: Final = Format(
    anthropic.answer_body(),
    anthropic.first_events(),
    anthropic.content_event_parts(),
    anthropic.last_events(),
)


class Upstream(asyncio.Protocol):
    """One connection of a gateway to the mock."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, interval_s: float, hang_s: float, per_write: int
    ) -> None:
        self.loop = loop
        self.interval_s = interval_s
        self.hang_s = hang_s
        self.per_write = per_write
        self.parser = httptools.HttpRequestParser(self)
        self.transport: asyncio.Transport | None = None
        self.url = b""
        self.body: list[bytes] = []
        self.timer: asyncio.Handle | None = None
        self.form = _CHAT

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self.timer is not None:
            self.timer.cancel()
        del self.parser  # it points back here, and the collector is off

    def data_received(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            if self.transport is not None:
                self.transport.close()

    def on_url(self, url: bytes) -> None:
        self.url = url

    def on_body(self, body: bytes) -> None:
        self.body.append(body)

    def on_message_complete(self) -> None:
        path = self.url.split(b"?", 1)[0]
        body = self.body[0] if len(self.body) == 1 else b"".join(self.body)
        self.body = []
        if self.parser.get_method() != b"POST":
            self.write(_WHOAMI if path == b"/whoami" else _MODELS)
        elif path.endswith((b"/chat/completions", b"/messages")):
            self.form = _MESSAGES if path.endswith(b"/messages") else _CHAT
            self.complete(path, body)
        else:
            self.write(_NOT_FOUND)

    def complete(self, path: bytes, body: bytes) -> None:
        """Answer one chat completion in the mode its model or path asks for."""
        found = _MODEL.search(body)
        mode = path.split(b"/", 2)[1] + b" " + (found.group(1) if found else b"")
        start = partial(self.stream, paced=b"paced" in mode)
        answer = start if _STREAM.search(body) else partial(self.write, self.form.answer)
        if b"hang" in mode:
            self.timer = self.loop.call_later(self.hang_s, answer)
        else:
            answer()

    def write(self, data: bytes) -> None:
        if self.transport is not None:
            self.transport.write(data)

    def stream(self, *, paced: bool) -> None:
        """Send the head and the first event, then the contents paced or in a burst."""
        if paced:
            self.write(_STREAM_HEAD + self.form.first)
            self.next_paced(self.loop.time() + self.interval_s, 0)
        else:
            self.write(_STREAM_HEAD + self.form.first)
            self.next_burst(0)

    def next_paced(self, at: float, sent: int) -> None:
        self.timer = self.loop.call_at(at, self.send_paced, at, sent)

    def send_paced(self, at: float, sent: int) -> None:
        if sent == payload.CONTENT_EVENTS:
            self.write(self.form.last)
            return
        self.write(self.form.content_chunk())
        self.next_paced(at + self.interval_s, sent + 1)

    def next_burst(self, sent: int) -> None:
        """Write the contents a few events at a time, one write per turn of the loop."""
        if self.transport is None:
            return
        if sent >= payload.CONTENT_EVENTS:
            self.write(self.form.last)
            return
        count = min(self.per_write, payload.CONTENT_EVENTS - sent)
        self.write(self.form.content_chunk() * count)
        self.timer = self.loop.call_soon(self.next_burst, sent + count)


async def serve(port: int, interval_s: float, hang_s: float, per_write: int) -> None:
    """Serve until SIGTERM or SIGINT; print the bound port first."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        partial(Upstream, loop, interval_s, hang_s, per_write),
        "127.0.0.1",
        port,
        backlog=BACKLOG,
    )
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    print(f"mock {os.getpid()} {server.sockets[0].getsockname()[1]}", flush=True)
    await stopped.wait()
    server.close()


def main(arguments: list[str]) -> int:
    """Run the mock upstream."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks mock", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--interval-ms", type=float, default=10.0, help="pace of a paced stream")
    parser.add_argument("--hang-ms", type=float, default=2000.0, help="delay of a hanging model")
    parser.add_argument("--per-write", type=int, default=1, help="events per write of a burst")
    given = parser.parse_args(arguments)
    gc.disable()
    uvloop.run(serve(given.port, given.interval_ms / 1e3, given.hang_ms / 1e3, given.per_write))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
