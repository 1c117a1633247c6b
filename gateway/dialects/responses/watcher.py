"""Watches a Responses stream going by; the bytes stay as they came.

Plain deltas are known by one typed decode; whatever that refuses is taken apart.
"""

from collections.abc import Sequence
from typing import Any

from gateway.core import codec
from gateway.core.codec import as_object
from gateway.core.errors import UpstreamError
from gateway.core.usage import Usage
from gateway.dialects.base import ProviderError, StreamRules
from gateway.dialects.openai_errors import read_error
from gateway.dialects.openai_usage import usage_of
from gateway.dialects.passing import PassingWatcher
from gateway.dialects.responses.deltas import Plain, plain_delta
from gateway.dialects.responses.failures import error_of, failure_of
from gateway.dialects.responses.script import Script, Unfinished
from gateway.dialects.responses.states import END_EVENTS, STATES
from gateway.dialects.sse import parse_event
from gateway.dialects.strange import foreign, is_named

_BLANK = b"\n\n"
_DONE = b"[DONE]"
_BAD = (codec.JSONError, RecursionError)
_BEFORE_CONTENT = frozenset(
    {
        "response.created",
        "response.in_progress",
        "response.queued",
        "response.content_part.added",
        "response.reasoning_summary_part.added",
    }
)
_EMPTY_ITEMS = frozenset({"message", "reasoning"})


class StreamWatcher(PassingWatcher):
    """The watcher of Responses streams; `gateway.dialects.base.Watcher` says the rest.

    It keeps what the open item has said so far, so that a stream can be ended at any place with whole events.
    """

    __slots__ = ("_script",)
    error: ProviderError | None
    usage: Usage | None

    def __init__(self, rules: StreamRules) -> None:
        super().__init__(rules)
        self._script = Script({})

    @property
    def open_choices(self) -> Sequence[int]:
        """Return the one choice while it is open, with what is needed to end it."""
        return Unfinished(self._script, ended=self.done)

    def feed(self, data: bytes) -> bytes:
        """Return what may go to the client now: whole events only."""
        if self._quick and data.endswith(_BLANK):
            plain = plain_delta(data)
            if plain is not None:
                self._note(plain)
                return data
        return self._feed_slowly(data)

    def _note(self, plain: Plain) -> None:
        self.events += 1
        self.real = True
        self._script.number = plain.sequence_number + 1
        self._script.texts.append(plain.delta)

    def _count_surplus(self, data: bytes) -> int:
        """Return how many events these bytes hold behind the end; OpenAI's `[DONE]` is none."""
        return data.count(b"data:") - data.count(_DONE)

    def _pass(self, event: bytes) -> bytes:
        """Return what the client gets of one whole event."""
        if self.error is not None:
            return b""
        event = self._without_mark(event)
        plain = plain_delta(event) if self.begun and not self.done else None
        if plain is not None:
            self._note(plain)
            return event
        name, data = parse_event(event)
        if self.done:
            self.surplus += data is not None and data.strip() != _DONE
            return b""
        if data is None and name != b"error":
            self._require_event(event)
            return event if self._started else b""
        return self._pass_data(event, name, (data or b"").strip())

    def _pass_data(self, event: bytes, name: bytes, data: bytes) -> bytes:
        if name != b"error" and (not data or data == _DONE):
            # No JSON client survives an empty frame, and OpenAI's stop at `[DONE]`, which is no end here.
            return b""
        self.real = True
        try:
            said = as_object(codec.decode(data))
        except _BAD:
            said = None
            self.broken += 1
        if said is None:
            if name == b"error" or b'"error"' in data:
                self.error = read_error(data, self._rules.secrets)
                return b""
            if not self._started:
                raise foreign("no JSON")
            event = self._without_secrets(event)
        elif not self._follow(said, name):
            return b""
        self.events += 1
        self._started = True
        return event

    def _follow(self, said: dict[str, Any], name: bytes) -> bool:
        """Take in what an event says; return whether the client gets it."""
        kind = said.get("type")
        if kind == "error" or name == b"error" or (kind is None and said.get("error")):
            self.error = error_of(said, self._rules.secrets)
            return False
        if not self._started and not is_named(kind):
            raise foreign("no event of Responses")
        end = END_EVENTS.get(kind) if isinstance(kind, str) else None
        if end is None:
            self._script.observe(said)
            self.begun = self.begun or _is_content(said)
            return True
        self.begun = True
        response = as_object(said.get("response")) or {}
        self.usage = usage_of(response.get("usage"), outside=self._rules.reasoning_outside)
        state = STATES.get(str(response.get("status")), end)
        if not (end.good and (state.good or not state.ended)):
            self.error = failure_of(response, self._rules.secrets)
            return False
        self.done = True
        return True

    def end(self, complete: bool) -> bytes:  # noqa: FBT001  one fact about the transport
        """Return the rest: a last event that lacks its blank line. Only the provider's own end is one (K04)."""
        if self.done or self.error is not None:
            return b""
        out = self._pass_rest(self._buffer.rest())
        if self.done or self.error is not None:
            return out
        raise UpstreamError("upstream_truncated", phase="body")

    def _is_whole(self, data: bytes) -> bool:
        try:
            codec.decode(data)
        except _BAD:
            return False
        return True


def _is_content(said: dict[str, Any]) -> bool:
    """Tell whether an event is more than a beginning."""
    kind = said.get("type")
    if kind == "response.output_item.added":
        item = as_object(said.get("item")) or {}
        return item.get("type") not in _EMPTY_ITEMS
    return kind not in _BEFORE_CONTENT
