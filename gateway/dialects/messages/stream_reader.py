"""Reads a Messages stream of server-sent events, cut anywhere."""

from gateway.core.answer import Event
from gateway.core.errors import UpstreamError
from gateway.dialects.base import ProviderError, StreamRules
from gateway.dialects.messages.errors import read_error
from gateway.dialects.messages.event_reader import EventReader
from gateway.dialects.messages.events import DELTA_DATA, DELTA_HEAD
from gateway.dialects.sse import BOM, EventBuffer, parse_event, split_events


class MessagesReader:
    """The reader of Messages streams; `gateway.dialects.sides.StreamReader` says the rest."""

    __slots__ = ("_buffer", "_reader", "_secrets", "broken", "error", "frames", "real", "surplus")

    def __init__(self, rules: StreamRules) -> None:
        self.error: ProviderError | None = None
        self.broken = 0
        self.surplus = 0
        self.frames = 0
        self.real = False
        self._secrets = rules.secrets
        self._buffer = EventBuffer(rules.max_event_bytes, rules.room)
        self._reader = EventReader(rules.secrets)

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that are complete."""
        self.real = False
        if self.error is not None:
            return []
        reader = self._reader
        if (
            data.startswith(DELTA_HEAD)
            and data.find(b"\n\n") == len(data) - 2
            and not (self._buffer.held or reader.done)
        ):
            self.frames += 1
            told = reader.take(data[DELTA_DATA:-2])
            self.real, self.error, self.broken = reader.real, reader.error, reader.broken
            return told
        block = self._buffer.take(data)
        return [told for frame in split_events(block) for told in self._take(frame)]

    def _take(self, frame: bytes) -> list[Event]:
        name, data = parse_event(frame.removeprefix(BOM))
        data = (data or b"").strip()
        if self.error is not None or (not data and name != b"error") or data == b"[DONE]":
            return []
        if self._reader.done:
            self.surplus += 1
            return []
        self.frames += 1
        if name == b"error":
            self.real = True
            self.error = read_error(data, self._secrets)
            return []
        told = self._reader.take(data)
        self.real = self.real or self._reader.real
        self.error = self._reader.error
        self.broken = self._reader.broken
        return told

    def end(self, complete: bool) -> list[Event]:  # noqa: FBT001  one fact about the transport
        """Return the rest after the body's end: a last event may lack its blank line."""
        self.real = False
        rest = self._buffer.rest().strip(b"\r\n")
        told: list[Event] = []
        if rest and self.error is None and not self._reader.done:
            if parse_event(rest)[1] is None and rest.lstrip()[:1] in {b"{", b"["}:
                if b'"error"' in rest:
                    self.error = read_error(rest, self._secrets)
            else:
                told = self._take(rest)
        if self._reader.done or self.error is not None:
            return told
        raise UpstreamError("upstream_truncated", phase="body")
