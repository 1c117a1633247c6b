"""Reads a Responses stream, cut anywhere, into neutral events; `dialects.sides.StreamReader` says the rest."""

from gateway.core import codec
from gateway.core.answer import Event
from gateway.core.codec import as_object
from gateway.core.errors import UpstreamError
from gateway.dialects.base import ProviderError, StreamRules
from gateway.dialects.gathering import StateOfReader
from gateway.dialects.openai_errors import read_error
from gateway.dialects.responses.deltas import plain_delta
from gateway.dialects.responses.failures import error_of, failure_of
from gateway.dialects.responses.reading import EventReader
from gateway.dialects.responses.states import END_EVENTS, STATES
from gateway.dialects.sse import BOM, EventBuffer, parse_event, split_events
from gateway.dialects.strange import foreign, is_named

_BAD = (codec.JSONError, RecursionError)
_DONE = b"[DONE]"


class ResponsesReader(StateOfReader):
    """One stream of one provider."""

    __slots__ = (
        "_buffer",
        "_is_known",
        "_reader",
    )
    error: ProviderError | None

    def __init__(self, rules: StreamRules) -> None:
        super().__init__(rules)
        self._buffer = EventBuffer(rules.max_event_bytes, rules.room)
        self._is_known = False
        self._reader = EventReader(outside=rules.reasoning_outside)

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that are complete."""
        self.real = False
        block = self._buffer.take(data)
        if block:
            for event in split_events(block):
                plain = plain_delta(event)
                if plain is None or self._reader.ended or self.error is not None:
                    self._read(event)
                elif self._reader.say(plain):
                    self.real = True
                    self.frames += 1
                else:
                    self._read(event)
        return self._reader.take()

    def end(self, complete: bool) -> list[Event]:  # noqa: FBT001  one fact about the transport
        """Return the rest: a last event that lacks its blank line. Only the provider's own end is one (K04)."""
        event = self._buffer.rest().strip(b"\r\n")
        if event and not self._reader.ended and self.error is None:
            if parse_event(event)[1] is not None:
                self._read(event)
            elif event.lstrip()[:1] in {b"{", b"["} and b'"error"' in event:
                self.error = read_error(event, self._rules.secrets)
        if not self._reader.ended and self.error is None:
            raise UpstreamError("upstream_truncated", phase="body")
        return self._reader.take()

    def _read(self, event: bytes) -> None:
        if self.frames == 0:
            event = event.removeprefix(BOM)
        name, data = parse_event(event)
        data = (data or b"").strip()
        if data == _DONE or (not data and name != b"error"):
            return
        if self._reader.ended or self.error is not None:
            self.surplus += self._reader.ended
            return
        self.real = True
        self.frames += 1
        try:
            said = as_object(codec.decode(data))
        except _BAD:
            said = None
            self.broken += 1
        if said is None:
            if name == b"error" or b'"error"' in data:
                self.error = read_error(data, self._rules.secrets)
            return
        kind = said.get("type")
        if kind == "error" or name == b"error" or (kind is None and said.get("error")):
            self.error = error_of(said, self._rules.secrets)
        elif not self._is_known and not is_named(kind):
            raise foreign("no event of Responses")
        elif isinstance(kind, str):
            self._is_known = True
            self._follow(kind, said)

    def _follow(self, kind: str, said: dict[str, object]) -> None:
        end = END_EVENTS.get(kind)
        if end is None:
            self._reader.read(kind, said)
            return
        response = as_object(said.get("response")) or {}
        state = STATES.get(str(response.get("status")), end)
        if end.good and (state.good or not state.ended):
            self._reader.end(response)
            return
        self._reader.count(response)
        self.error = failure_of(response, self._rules.secrets)
