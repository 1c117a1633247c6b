"""Reads Ollama's JSON lines, cut anywhere; the line that says `done` is the end."""

from gateway.core.answer import (
    Began,
    Counted,
    Delta,
    Ended,
    Event,
    Finished,
    PartBegan,
    PartEnded,
    Weighed,
)
from gateway.core.errors import UpstreamError
from gateway.core.message import Part, Text, Thinking
from gateway.dialects.base import ProviderError, StreamRules
from gateway.dialects.gathering import Gathering
from gateway.dialects.lines import LineBuffer
from gateway.dialects.ollama.answers import (
    BAD,
    Line,
    Said,
    call_of,
    created_of,
    decode,
    finish_of,
    usage_of,
    weights,
)
from gateway.dialects.openai_errors import read_error
from gateway.dialects.unknown import unknown


class OllamaReader(Gathering):
    """The reader of one stream; `gateway.dialects.sides.StreamReader` says the rest."""

    __slots__ = (
        "_at",
        "_began",
        "_buffer",
        "_called",
        "_ended",
        "_open",
    )
    error: ProviderError | None

    def __init__(self, rules: StreamRules) -> None:
        super().__init__(rules)
        self._buffer = LineBuffer(rules.max_event_bytes, rules.room)
        self._began = False
        self._ended = False
        self._called = False
        self._at = 0
        self._open: type[Part] | None = None

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that are complete."""
        self.real = False
        for line in self._buffer.take(data):
            self._take(line)
        return self._taken()

    def end(self, complete: bool) -> list[Event]:  # noqa: FBT001  one fact about the transport
        """Return the rest; a line that says `done` must have been seen."""
        rest = self._buffer.rest()
        if rest:
            self._take(rest)
        if self.error is None and not self._ended:
            raise UpstreamError("upstream_truncated", phase="body")
        return self._taken()

    def _take(self, data: bytes) -> None:
        self.real = True
        if self._ended or self.error is not None:
            self.surplus += 1
            return
        self.frames += 1
        try:
            line = decode(data)
        except BAD:
            self.broken += 1
            return
        if line.error:
            self.error = read_error(data, self._rules.secrets)
            return
        self._read(line)

    def _read(self, line: Line) -> None:
        if not self._began:
            self._began = True
            self._out.append(Began("", line.model, created_of(line.created_at)))
        if line.message is not None:
            self._say(line.message)
        if line.logprobs:
            self._out.append(Weighed(0, weights(line.logprobs)))
        if line.done:
            self._end(line)

    def _say(self, said: Said) -> None:
        if said.thinking:
            self._add(Thinking(said.thinking))
        if said.content:
            self._add(Text(said.content))
        if said.images:
            self._whole(unknown("images"))
        for call in said.tool_calls or ():
            self._called = True
            self._whole(call_of(call))

    def _whole(self, part: Part) -> None:
        self._close()
        self._out += (PartBegan(0, self._at, part), PartEnded(0, self._at))
        self._at += 1

    def _add(self, part: Text | Thinking) -> None:
        if self._open is type(part):
            self._out.append(Delta(0, self._at, part.text))
            return
        self._close()
        self._open = type(part)
        self._out.append(PartBegan(0, self._at, part))

    def _close(self) -> None:
        if self._open is not None:
            self._out.append(PartEnded(0, self._at))
            self._open = None
            self._at += 1

    def _end(self, line: Line) -> None:
        self._close()
        native = line.done_reason or ""
        self._out.append(Finished(0, finish_of(native, called=self._called), native))
        usage = usage_of(line)
        if usage is not None:
            self._out.append(Counted(usage))
        self._out.append(Ended())
        self._ended = True
