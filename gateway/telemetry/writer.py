"""Writes lines to a descriptor from a thread of its own, so that a stuck pipe or a full disk never
holds up a request. Memory is bounded: what does not fit is counted as lost (L-9).
"""

import atexit
import errno
import os
import select
import threading
from collections import deque

from gateway.core.clock import monotonic

_FLUSH_BYTES = 65_536
_FLUSH_S = 0.1
_RETRY_S = 0.25
_CLOSE_S = 2.0
_LINE_FEED = ord("\n")
_PASSING = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENOBUFS, errno.ENOMEM})


class LineWriter:
    """Lines in, whole lines out. `write` costs an append; any thread may call it."""

    def __init__(self, fd: int, *, limit_bytes: int = 8 << 20, close_s: float = _CLOSE_S) -> None:
        self._fd = fd
        self._limit = limit_bytes
        self._close_s = close_s
        self._lines: deque[bytes] = deque()
        self._accepted = 0
        self._done = 0
        self._mark = _FLUSH_BYTES
        self._refused = 0
        self._failed = 0
        self._torn = False
        self._gave_up = False
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def lost(self) -> int:
        """Return how many lines were not written, so far."""
        return self._refused + self._failed + (len(self._lines) if self._gave_up else 0)

    def write(self, line: bytes) -> None:
        """Queue one line, without its line feed."""
        self._lines.append(line)
        self._accepted += len(line) + 1
        if self._accepted - self._done >= self._mark:
            self._over_mark()

    def start(self) -> None:
        """Start the thread; until then lines only queue up."""
        if self._thread is None and not self._closing.is_set():
            self._thread = threading.Thread(target=self._run, name="log-writer", daemon=True)
            self._thread.start()
            atexit.register(self.close)

    def close(self) -> None:
        """Write what is queued, for at most `close_s` seconds, and stop."""
        self.start()
        thread, self._thread = self._thread, None
        if thread is None or self._closing.is_set():
            return
        atexit.unregister(self.close)
        self._closing.set()
        self._wake.set()
        thread.join(self._close_s)
        if thread.is_alive():
            self._gave_up = True

    def _over_mark(self) -> None:
        if self._accepted - self._done > self._limit:
            try:
                dropped = self._lines.pop()
            except IndexError:
                return
            self._accepted -= len(dropped) + 1
            self._refused += 1
        elif not self._wake.is_set():
            self._wake.set()

    def _run(self) -> None:
        while not self._closing.is_set():
            self._wake.wait(_FLUSH_S)
            self._wake.clear()
            self._drain()
        self._drain()

    def _drain(self) -> None:
        lines = self._lines
        batch: list[bytes] = []
        while lines and not self._gave_up:
            size = 0
            batch.clear()
            while lines and size < _FLUSH_BYTES:
                batch.append(lines.popleft())
                size += len(batch[-1]) + 1
            self._failed += self._put(batch)
            self._done += size
        if not lines:
            self._done = self._accepted

    def _put(self, batch: list[bytes]) -> int:
        """Write a batch; return how many of its lines were lost."""
        # A line that was cut by a full disk must not swallow the next one.
        lead = b"\n" if self._torn else b""
        data = memoryview(lead + b"\n".join(batch) + b"\n")
        sent = self._send(data)
        rest = bytes(data[sent:])
        if sent:
            self._torn = bool(rest) and data[sent - 1] != _LINE_FEED
        return min(rest.count(b"\n"), len(batch))

    def _send(self, data: memoryview) -> int:
        """Write until done or hopeless; return how many bytes went out."""
        sent = 0
        give_up_at = 0.0
        while sent < len(data):
            closing = self._closing.is_set()
            try:
                sent += os.write(self._fd, data[sent:])
                continue
            except BlockingIOError:
                # Someone else who shares the descriptor made it non-blocking.
                self._wait_writable()
            except OSError as error:
                if closing or error.errno not in _PASSING:
                    break
                self._closing.wait(_RETRY_S)
            if closing:
                give_up_at = give_up_at or monotonic() + self._close_s / 2
                if monotonic() >= give_up_at:
                    break
        return sent

    def _wait_writable(self) -> None:
        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        poll.poll(_RETRY_S * 1000)
