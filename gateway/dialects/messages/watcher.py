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
from gateway.dialects.passing import PassingWatcher
from gateway.dialects.sse import parse_event
from gateway.dialects.strange import foreign

FINISHED = -1
"""Stands among the open blocks once the end of the message was told, so that it is not told twice."""
_BLANK = b"\n\n"
_EMPTY_AT_FIRST = ("text", "thinking")
_KINDS = frozenset(
    {
        "content_block_delta",
        "content_block_start",
        "content_block_stop",
        "message_delta",
        "message_start",
        "message_stop",
    }
)
"""What a stream may begin with; a ping and an error are no beginning."""
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


class MessagesWatcher(PassingWatcher):
    """The watcher of Messages streams; `gateway.dialects.base.Watcher` says the rest.

    Pings pass and count for nothing. `open_choices` are the blocks that are open, and `FINISHED`.
    """

    __slots__ = ("_counts", "_open")
    error: ProviderError | None
    usage: Usage | None

    def __init__(self, rules: StreamRules) -> None:
        super().__init__(rules)
        self._counts = Counts()
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

    def _count_plain(self, block: bytes) -> int:
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
        event = self._without_mark(event)
        name, data = parse_event(event)
        if self.done:
            self.surplus += data is not None
            return b""
        lead = self._lead(event)
        if data is None and name != b"error":
            self._require_event(event)
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
            self.error = self._error_of(data)
            return lead if self._started else b""
        if not self._started and not (isinstance(kind, str) and kind in _KINDS):
            raise foreign("no event of Messages")
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

    def end(self, complete: bool) -> bytes:  # noqa: FBT001  one fact about the transport
        """Return the rest: a last event may lack its blank line; without `message_stop` the stream was cut."""
        if self.done or self.error is not None:
            return b""
        out = self._pass_rest(self._buffer.rest())
        if self.done or self.error is not None:
            return out
        raise UpstreamError("upstream_truncated", phase="body")

    def _error_of(self, data: bytes) -> ProviderError:
        return read_error(data, self._rules.secrets)

    def _is_whole(self, data: bytes) -> bool:
        try:
            _event(data)
        except BROKEN:
            return False
        return True
