"""Watches a Messages stream going by; whole events pass as they came.

One typed decode of an event costs less than searching it for the few things that matter: the type admits nothing
but a plain delta, and only what it refuses is taken apart.
"""

from collections.abc import Sequence
from typing import Any, Literal

from gateway.core import codec
from gateway.core.errors import UpstreamError
from gateway.core.usage import Usage
from gateway.dialects.base import ProviderError, StreamRules
from gateway.dialects.messages.errors import read_error
from gateway.dialects.messages.events import BROKEN, DELTA_DATA, DELTA_HEAD
from gateway.dialects.messages.usage import Counts
from gateway.dialects.sse import BOM, EventBuffer, parse_event, split_events

FINISHED = -1
"""Stands among the open blocks once the end of the message was told, so that it is not told twice."""
_BLANK = b"\n\n"
_EMPTY_AT_FIRST = ("text", "thinking")
_NEXT = _BLANK + DELTA_HEAD[:-1]


class _Delta(codec.Struct, gc=False):
    """A plain delta: nothing in it is looked at."""

    type: Literal["content_block_delta"]
    error: None = None


class _Event(codec.Struct):
    type: Any = None
    index: Any = None
    message: Any = None
    content_block: Any = None
    delta: Any = None
    usage: Any = None
    error: Any = None


_delta = codec.Decoder(_Delta).decode
_event = codec.Decoder(_Event).decode


class MessagesWatcher:
    """The watcher of Messages streams; `gateway.dialects.base.Watcher` says the rest.

    Pings pass and count for nothing. `open_choices` are the blocks that are open, and `FINISHED`.
    """

    __slots__ = (
        "_buffer",
        "_counts",
        "_open",
        "_quick",
        "_rules",
        "_started",
        "begun",
        "broken",
        "done",
        "error",
        "events",
        "real",
        "surplus",
        "usage",
    )

    def __init__(self, rules: StreamRules) -> None:
        self.usage: Usage | None = None
        self.done = False
        self.begun = False
        self.events = 0
        self.broken = 0
        self.surplus = 0
        self.error: ProviderError | None = None
        self.real = False
        self._rules = rules
        self._buffer = EventBuffer(rules.max_event_bytes, rules.room)
        self._counts = Counts()
        self._started = False
        self._quick = False
        self._open: list[int] = []

    @property
    def open_choices(self) -> Sequence[int]:
        """Return the blocks that have begun and not ended."""
        return tuple(self._open)

    def feed(self, data: bytes) -> bytes:
        """Return what may go to the client now: whole events only."""
        if self._quick and data.startswith(DELTA_HEAD):
            try:
                _delta(data[DELTA_DATA:])
            except BROKEN:
                return self._feed_slowly(data)
            if data[-2:] == _BLANK:
                self.events += 1
                self.real = True
                return data
        return self._feed_slowly(data)

    def _feed_slowly(self, data: bytes) -> bytes:
        self.real = False
        if self.done or self.error is not None:
            self.surplus += self.done and data.count(b"data:")
            return b""
        block = self._buffer.take(data)
        if block and self.begun:
            count = self._count_plain(block)
            if count:
                self.events += count
                self.real = True
                self._quick = not self._buffer.held
                return block
        out = [self._pass(event) for event in split_events(block)] if block else []
        self._quick = self.begun and not (self.done or self.error or self._buffer.held)
        return b"".join(out)

    @staticmethod
    def _count_plain(block: bytes) -> int:
        """Return how many events a block of plain deltas holds; 0 when it holds anything else."""
        if not block.startswith(DELTA_HEAD):
            return 0
        parts = block[DELTA_DATA:].split(_NEXT)
        try:
            for part in parts:
                _delta(part)
        except BROKEN:
            return 0
        return len(parts)

    def _pass(self, event: bytes) -> bytes:
        """Return what the client gets of one whole event."""
        if self.error is not None:
            return b""
        if not self._started and event.startswith(BOM):
            event = event[len(BOM) :]
        name, data = parse_event(event)
        if self.done:
            self.surplus += data is not None
            return b""
        lead = event[: len(event) - len(event.lstrip(b"\r\n"))] if self._started else b""
        if data is None and name != b"error":
            return event if self._started else b""
        data = (data or b"").strip()
        if (not data or data == b"[DONE]") and name != b"error":
            return lead  # neither is an event of this format, and no client survives it
        return self._pass_data(event, name, data, lead)

    def _pass_data(self, event: bytes, name: bytes, data: bytes, lead: bytes) -> bytes:
        try:
            told = _event(data)
        except BROKEN:
            told = _Event(type=name.decode("ascii", "replace"), error=b'"error"' in data)
            self.broken += 1
            event = self._without_secrets(event)
        kind = told.type or name.decode("ascii", "replace")
        if kind == "ping":
            return event if self._started else b""
        self.real = True
        if kind == "error" or name == b"error" or told.error:
            self.error = read_error(data, self._rules.secrets)
            return lead if self._started else b""
        if kind == "message_stop":
            self._finish()
        elif not self._note(kind, told):
            event = self._without_secrets(event)
        self.events += 1
        self._started = True
        return event

    def _note(self, kind: str, told: _Event) -> bool:
        """Keep what an event tells; returns whether its kind is known."""
        match kind:
            case "content_block_delta":
                self.begun = True
            case "message_start":
                self._count((codec.as_object(told.message) or {}).get("usage"))
            case "content_block_start":
                block = codec.as_object(told.content_block) or {}
                self.begun = self.begun or block.get("type") not in _EMPTY_AT_FIRST
                if isinstance(told.index, int):
                    self._open.append(told.index)
            case "content_block_stop":
                if told.index in self._open:
                    self._open.remove(told.index)
            case "message_delta":
                self.begun = True
                self._count(told.usage)
                if (codec.as_object(told.delta) or {}).get("stop_reason") is not None:
                    self._open.append(FINISHED)
            case _:
                return False
        return True

    def _count(self, usage: object) -> None:
        self._counts.take(usage)
        self.usage = self._counts.total()

    def _finish(self) -> None:
        if not self._started:
            raise UpstreamError(
                "upstream_invalid_response",
                phase="body",
                detail="the stream holds nothing but its end",
            )
        self.done = True

    def _without_secrets(self, event: bytes) -> bytes:
        """Return an event that may be no answer, and so the words of an error, without known secrets."""
        text = event.decode("utf-8", "surrogateescape")
        clean = self._rules.secrets(text)
        return event if clean == text else clean.encode("utf-8", "surrogateescape")

    def end(self, complete: bool) -> bytes:  # noqa: FBT001  one fact about the transport
        """Return the rest: a last event may lack its blank line; without `message_stop` the stream was cut."""
        if self.done or self.error is not None:
            return b""
        out = self._pass_rest(self._buffer.rest())
        if self.done or self.error is not None:
            return out
        raise UpstreamError("upstream_truncated", phase="body")

    def _pass_rest(self, rest: bytes) -> bytes:
        event = rest.strip(b"\r\n")
        if not event:
            return b""
        _, data = parse_event(event)
        if data is None:
            self._read_bare(event)
            return b""
        try:
            _event(data)
        except BROKEN:
            return b""
        lead = rest[: len(rest) - len(rest.lstrip(b"\r\n"))]
        return self._pass(lead + event + b"\n\n")

    def _read_bare(self, body: bytes) -> None:
        """Notice an error answer under the event stream's name: the bare body, no frame around it."""
        if body.lstrip()[:1] in {b"{", b"["} and b'"error"' in body:
            self.error = read_error(body, self._rules.secrets)
