"""Client connections of the load generator: one request at a time each, with little work."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from typing import Final, cast

import httptools

from benchmarks import payload

_LENGTH: Final = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)", re.IGNORECASE)
_OK: Final = b"HTTP/1.1 200"


class Connection(asyncio.Protocol):
    """A keep-alive connection that reports each finished exchange to `done`."""

    def __init__(self, request: bytes, done: Callable[[Connection, bool], None]) -> None:
        self.request = request
        self.done = done
        self.transport: asyncio.Transport | None = None
        self.busy = False
        self.sent_at = 0.0
        self.latency_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self.busy:
            self.finish(ok=False)

    @property
    def is_open(self) -> bool:
        """Say whether another request may be sent here."""
        return self.transport is not None and not self.transport.is_closing()

    def send(self) -> None:
        """Send the request; the answer's end calls `done`."""
        self.busy = True
        self.reset()
        self.sent_at = time.monotonic()
        if self.transport is not None:
            self.transport.write(self.request)
        else:
            self.finish(ok=False)

    def reset(self) -> None:
        """Forget the last answer."""

    def finish(self, *, ok: bool) -> None:
        """Report the exchange."""
        self.busy = False
        self.latency_s = time.monotonic() - self.sent_at
        self.done(self, ok)

    def close(self) -> None:
        """Close without a report."""
        self.busy = False
        if self.transport is not None:
            self.transport.abort()


class Plain(Connection):
    """Reads whole answers by content-length, or by the parser where there is none."""

    def __init__(self, request: bytes, done: Callable[[Connection, bool], None]) -> None:
        super().__init__(request, done)
        self.missing = 0
        self.head = b""
        self.status_ok = False
        self.parser: httptools.HttpResponseParser | None = None

    def reset(self) -> None:
        self.missing = 0
        self.head = b""
        self.parser = None

    def data_received(self, data: bytes) -> None:
        if self.parser is not None:
            self.feed(data)
        elif self.missing:
            self.missing -= len(data)
            if self.missing <= 0:
                self.finish(ok=self.status_ok)
        else:
            self.read_head(self.head + data if self.head else data)

    def read_head(self, data: bytes) -> None:
        """Find where the answer ends."""
        at = data.find(b"\r\n\r\n")
        if at < 0:
            self.head = data
            return
        self.status_ok = data.startswith(_OK)
        found = _LENGTH.search(data, 0, at)
        if found is None:
            self.parser = httptools.HttpResponseParser(self)
            self.feed(data)
            return
        self.missing = at + 4 + int(found.group(1)) - len(data)
        if self.missing <= 0:
            self.finish(ok=self.status_ok)

    def feed(self, data: bytes) -> None:
        if self.parser is not None:
            self.parser.feed_data(data)

    def on_message_complete(self) -> None:
        self.finish(ok=self.status_ok)


class Stream(Connection):
    """Reads event streams: time to the first event, and transit of each stamped one."""

    def __init__(
        self,
        request: bytes,
        done: Callable[[Connection, bool], None],
        transits: list[float] | None = None,
    ) -> None:
        super().__init__(request, done)
        self.parser = httptools.HttpResponseParser(self)
        self.transits = transits
        self.first_s: float | None = None
        self.received = 0
        self.tail = b""
        self.ended = False

    def reset(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.first_s = None
        self.received = 0
        self.tail = b""
        self.ended = False

    def connection_lost(self, exc: Exception | None) -> None:
        # A body may end with its connection; then the last event decides.
        self.transport = None
        if self.busy:
            self.finish(ok=self.ended)

    def data_received(self, data: bytes) -> None:
        now_ns = time.monotonic_ns()
        if self.transits is not None:
            for stamp in payload.STAMP.findall(data):
                self.transits.append((now_ns - int(stamp)) * 1e-9)
        self.parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        if self.first_s is None:
            self.first_s = time.monotonic() - self.sent_at
        # An event may be cut anywhere: what was seen last time is seen again, not counted again.
        text = self.tail + body
        self.received += text.count(b"data:") - self.tail.count(b"data:")
        self.tail = text[-16:]
        if self.tail.rstrip().endswith(b"[DONE]"):
            self.ended = True

    def on_message_complete(self) -> None:
        self.finish(ok=self.ended and self.status_ok)

    @property
    def status_ok(self) -> bool:
        """Say whether the stream was answered with 200."""
        return self.parser.get_status_code() == 200
