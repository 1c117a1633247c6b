"""What all watchers of relayed event streams share: framing, the state that they tell, and odd ends."""

from abc import ABC, abstractmethod

from gateway.core.usage import Usage
from gateway.dialects.base import ProviderError, StreamRules
from gateway.dialects.openai_errors import read_error
from gateway.dialects.sse import BOM, EventBuffer, holds_field, parse_event, split_events
from gateway.dialects.strange import foreign


class PassingWatcher(ABC):
    """A stream on its way; `gateway.dialects.base.Watcher` says the rest.

    A format says what one whole event becomes (`_pass`), whether a last one that lacks its blank line is whole
    (`_is_whole`), and may know blocks that pass as they are (`_count_plain`). `_quick`: the next bytes may be such
    a block, and nothing is held.
    """

    __slots__ = (
        "_buffer",
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
        self.events: int = 0
        self.broken: int = 0
        self.surplus: int = 0
        self.error: ProviderError | None = None
        self.real = False
        self._rules = rules
        self._buffer = EventBuffer(rules.max_event_bytes, rules.room)
        self._started = False
        self._quick = False

    @abstractmethod
    def _pass(self, event: bytes) -> bytes:
        """Return what the client gets of one whole event."""

    @abstractmethod
    def _is_whole(self, data: bytes) -> bool:
        """Tell whether the data of a last event is all there."""

    def _error_of(self, data: bytes) -> ProviderError:
        """Return what an error says."""
        return read_error(data, self._rules.secrets)

    def _count_plain(self, block: bytes) -> int:
        """Return how many events a block of plain events holds; 0 when it holds anything else."""
        return 0

    def _count_surplus(self, data: bytes) -> int:
        """Return how many events these bytes hold behind the end."""
        return data.count(b"data:")

    def _feed_slowly(self, data: bytes) -> bytes:
        self.real = False
        if self.done or self.error is not None:
            self.surplus += self._count_surplus(data) if self.done else 0
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

    def _without_mark(self, event: bytes) -> bytes:
        """Return an event without the byte order mark that the first may begin with."""
        if not self._started and event.startswith(BOM):
            return event[len(BOM) :]
        return event

    def _lead(self, event: bytes) -> bytes:
        """Return the blank lines that an event begins with, once the client got something."""
        return event[: len(event) - len(event.lstrip(b"\r\n"))] if self._started else b""

    def _without_secrets(self, event: bytes) -> bytes:
        """Return an event that is no answer, and so may be the words of an error, without known secrets."""
        text = event.decode("utf-8", "surrogateescape")
        clean = self._rules.secrets(text)
        return event if clean == text else clean.encode("utf-8", "surrogateescape")

    def _pass_rest(self, rest: bytes) -> bytes:
        """Return what the client gets of a last event that lacks its blank line; half an event says nothing."""
        event = rest.strip(b"\r\n")
        if not event:
            return b""
        _, data = parse_event(event)
        if data is None:
            self._read_bare(event)
            if self.error is None:
                self._require_event(event)
            return b""
        if not self._is_whole(data):
            return b""
        lead = rest[: len(rest) - len(rest.lstrip(b"\r\n"))]
        return self._pass(lead + event + b"\n\n")

    def _require_event(self, event: bytes) -> None:
        """Refuse a body that is no stream of events, a page or bare JSON, before anything of it went out."""
        if not self._started and not holds_field(event):
            raise foreign("no events")

    def _read_bare(self, body: bytes) -> None:
        """Notice an error answer under the event stream's name: the bare body, no frame around it."""
        if body.lstrip()[:1] in {b"{", b"["} and b'"error"' in body:
            self.error = self._error_of(body)
