"""Reads a stream of generateContent: it has no terminator, and may be a bare JSON body instead (K01, K04)."""

from typing import cast

from gateway.core import codec
from gateway.core.answer import Event
from gateway.core.errors import UpstreamError
from gateway.dialects.base import ProviderError, StreamRules
from gateway.dialects.gemini.answers import Assembler
from gateway.dialects.gemini.errors import read_error
from gateway.dialects.gemini.wire import Response
from gateway.dialects.room import Share
from gateway.dialects.sse import BOM, EventBuffer, parse_event, split_events
from gateway.dialects.strange import foreign

decode_response = codec.Decoder(Response).decode
_DONE = b"[DONE]"


class GeminiReader:
    """Reads one stream; `dialects.sides.StreamReader` says the rest."""

    __slots__ = (
        "_answer", "_bare", "_buffer", "_is_known", "_secrets", "_share", "broken", "error", "frames", "real",
        "surplus",
    )  # fmt: skip

    def __init__(self, rules: StreamRules) -> None:
        self.error: ProviderError | None = None
        self.broken = 0
        self.surplus = 0
        self.frames = 0
        self.real = False
        self._answer = Assembler()
        self._share = Share(rules.max_event_bytes, rules.room)
        self._buffer = EventBuffer(rules.max_event_bytes, rules.room)
        self._secrets = rules.secrets
        self._is_known = False
        self._bare: bytearray | None = None

    def feed(self, data: bytes) -> list[Event]:
        """Return the events of all that is whole by now."""
        self.real = False
        if self._bare is not None:
            return self._keep(data)
        block = self._buffer.take(data)
        if not self.frames and not self.broken and self._is_bare(block):
            self._bare = bytearray()
            return self._keep(block + self._buffer.rest())
        events: list[Event] = []
        for event in split_events(block) if block else ():
            self._read(event, events)
        return events

    def end(self, complete: bool) -> list[Event]:  # noqa: FBT001  one fact about the transport
        """Return the rest: an answer is whole when its body ended by its framing and said why it ended (K04)."""
        events: list[Event] = []
        rest = bytes(self._bare) if self._bare is not None else self._buffer.rest()
        if rest.strip():
            if self._bare is None and not self._is_bare(rest):
                self._read(rest, events)
            else:
                self._read_bare(rest, events)
        if self.error is not None:
            return events
        if not complete or not self._answer.is_complete:
            raise UpstreamError(
                "upstream_truncated", phase="body", detail="the stream ended without its reason"
            )
        return events + self._answer.finish()

    def _keep(self, data: bytes) -> list[Event]:
        """Hold a bare body until its end."""
        held = cast("bytearray", self._bare)
        held += data
        self.real = bool(data.strip())
        self._share.weigh(held)
        return []

    @staticmethod
    def _is_bare(data: bytes) -> bool:
        return data.removeprefix(BOM).lstrip()[:1] in {b"{", b"["}

    def _read(self, event: bytes, events: list[Event]) -> None:
        data = parse_event(event.removeprefix(BOM))[1]
        if data is None or not data.strip():
            return
        if self.error is not None:
            self.surplus += 1
            return
        self.real = True
        if data.strip() == _DONE:  # proxies add it; the body's end is what counts
            return
        self.frames += 1
        self._read_response(data, events)

    def _read_response(self, data: bytes, events: list[Event]) -> None:
        try:
            response = decode_response(data)
        except (codec.JSONError, RecursionError, UnicodeDecodeError):
            self.broken += 1
            return
        if response.error:
            self.error = read_error(data, self._secrets)
            return
        if not (self._is_known or _is_answer(response) or data.strip() == b"{}"):
            raise foreign("no piece of generateContent")
        self._is_known = True
        events += self._answer.add(response)

    def _read_bare(self, body: bytes, events: list[Event]) -> None:
        """Read a body that ignored `alt=sse`: one object, or a list of pieces."""
        try:
            pieces = codec.Decoder(list[codec.Raw]).decode(body)
        except codec.JSONError:
            pieces = [codec.Raw(body)]
        for piece in pieces:
            if self.error is None:
                self.frames += 1
                self._read_response(bytes(piece), events)


def _is_answer(response: Response) -> bool:
    """Tell whether a first piece is one of this format: all others leave its members empty."""
    return any(
        value is not None
        for value in (
            response.candidates,
            response.prompt_feedback,
            response.usage_metadata,
            response.response_id,
            response.model_version,
        )
    )
