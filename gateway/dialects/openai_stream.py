"""Watches an OpenAI-style event stream going by; the bytes stay as they came.

One typed decode of an event costs less than searching it for the few things that matter, and it is
exact: the types admit nothing but a plain chunk, and only what they refuse is taken apart.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from gateway.core import codec
from gateway.core.errors import UpstreamError
from gateway.core.usage import Usage
from gateway.dialects.base import ProviderError, StreamRules
from gateway.dialects.openai_errors import read_error
from gateway.dialects.openai_parts import has_parts, without_parts
from gateway.dialects.openai_usage import newest, usage_of
from gateway.dialects.passing import PassingWatcher
from gateway.dialects.sse import frame, parse_event
from gateway.dialects.strange import foreign, is_chunk

_DONE = b"[DONE]"
_DONE_EVENT = b"data: [DONE]\n\n"
_BLANK = b"\n\n"
_NEXT_EVENT = b"\n\ndata:"
_BAD = (codec.JSONError, RecursionError)


class _Plain(codec.Struct, gc=False):
    """A chunk that holds nothing to look at."""

    usage: None = None
    error: None = None
    x_groq: None = None
    message: None = None
    detail: None = None


class _OpenChoice(codec.Struct, gc=False):
    index: Literal[0] = 0
    finish_reason: None = None


class _PlainAndOpen(_Plain, gc=False):
    """A plain chunk of a stream with one choice that has not finished."""

    choices: list[_OpenChoice] | None = None


class _TextDelta(codec.Struct, gc=False):
    content: str | None = None


class _TextChoice(codec.Struct, gc=False):
    delta: _TextDelta | None = None


class _PlainTexts(_Plain, gc=False):
    """A plain chunk whose contents are texts, not lists of parts."""

    choices: list[_TextChoice] | None = None


class _OpenTextChoice(_OpenChoice, gc=False):
    delta: _TextDelta | None = None


class _PlainOpenTexts(_Plain, gc=False):
    choices: list[_OpenTextChoice] | None = None


class _Chunk(codec.Struct):
    usage: Any = None
    error: Any = None
    x_groq: Any = None
    choices: Any = None
    message: Any = None
    detail: Any = None

    def is_error(self) -> bool:
        """Return whether it is an error: as such, or words in the place of an answer (vLLM, Mistral)."""
        if self.error:
            return True
        told = isinstance(self.message, str) or isinstance(self.detail, str | list)
        return told and self.choices is None and self.usage is None


_decode = codec.Decoder(_Chunk).decode
_decode_plain = codec.Decoder(_Plain).decode
_decode_plain_and_open = codec.Decoder(_PlainAndOpen).decode
_decode_plain_texts = codec.Decoder(_PlainTexts).decode
_decode_plain_open_texts = codec.Decoder(_PlainOpenTexts).decode


class StreamWatcher(PassingWatcher):
    """The watcher of chat and completions streams; `gateway.dialects.base.Watcher` says the rest.

    `finishes`: the stream ends with finish reasons and `[DONE]`; others end with their message.
    """

    __slots__ = ("_finished", "_finishes", "_open", "_plain")
    error: ProviderError | None
    usage: Usage | None

    def __init__(self, rules: StreamRules, *, finishes: bool = True) -> None:
        super().__init__(rules)
        self.begun = not finishes
        self._finishes = finishes
        counts_finishes = finishes and not rules.done_required
        self._plain = _decode_plain_and_open if counts_finishes else _decode_plain
        if rules.content_lists:
            self._plain = _decode_plain_open_texts if counts_finishes else _decode_plain_texts
        self._open: set[int] = {0}
        self._finished: set[int] = set()

    def feed(self, data: bytes) -> bytes:
        """Return what may go to the client now: whole events only."""
        if self._quick:
            try:
                self._plain(data[5:])
            except _BAD:
                return self._feed_slowly(data)
            if data[-2:] == _BLANK:
                self.events += 1
                self.real = True
                return data
        return self._feed_slowly(data)

    def _count_plain(self, block: bytes) -> int:
        """Return how many events a block of plain data events holds; 0 when it holds anything else."""
        if not block.startswith(b"data:"):
            return 0
        parts = block[5:].split(_NEXT_EVENT)
        try:
            for part in parts:
                self._plain(part)
        except _BAD:
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
        if data is None and name != b"error":
            self._require_event(event)
            # Clients read what is no comment as an empty frame: a ping by name, an id, a time to wait.
            return event if self._started and _is_comment(event) else self._lead(event)
        return self._pass_data(event, name, (data or b"").strip())

    def _pass_data(self, event: bytes, name: bytes, data: bytes) -> bytes:
        lead = self._lead(event)
        if not data and name != b"error":
            # No JSON client survives an empty frame; it says no more than a comment.
            return lead
        self.real = True
        if data == _DONE:
            return self._finish(event)
        try:
            chunk = _decode(data)
        except _BAD:
            chunk = None
            self.broken += 1
        if name == b"error" or (chunk.is_error() if chunk is not None else b'"error"' in data):
            return lead + self._fail(data, chunk)
        if not self._started and self._finishes and not _is_chunk(chunk, data):
            raise foreign("no chunk of chat completions")
        if chunk is None or (chunk.choices is None and chunk.usage is None):
            event = self._without_secrets(event)
        if chunk is not None:
            self._note_choices(chunk.choices)
            if self._note_usage(chunk) and self._rules.hide_usage and not chunk.choices:
                return lead
        self.events += 1
        self._started = True
        if self._rules.content_lists and chunk is not None and has_parts(chunk.choices):
            return lead + frame(without_parts(data))
        return event

    def _finish(self, event: bytes) -> bytes:
        if not self._started:
            raise UpstreamError(
                "upstream_invalid_response",
                phase="body",
                detail="the stream holds nothing but its end",
            )
        self.done = True
        return event if b"data: [DONE]" in event or b"data:[DONE]" in event else _DONE_EVENT

    def _fail(self, data: bytes, chunk: _Chunk | None) -> bytes:
        """Take an error out of the stream; what the same chunk says besides is not lost (OpenRouter)."""
        if chunk is not None:
            self._note_usage(chunk)
        self.error = read_error(data, self._rules.secrets)
        if not self._started:
            return b""
        content = _without_error(data) if chunk is not None else b""
        self.events += bool(content)
        return content

    def _note_usage(self, chunk: _Chunk) -> bool:
        """Keep the newest counts; tell whether the chunk has a usage object of its own."""
        own = codec.as_object(chunk.usage)
        if own is not None:
            outside = self._rules.reasoning_outside
            self.usage = newest(self.usage, usage_of(own, outside=outside))
        elif chunk.x_groq is not None:
            inner = codec.as_object(chunk.x_groq) or {}
            self.usage = newest(self.usage, usage_of(inner.get("usage")))
        return own is not None

    def _note_choices(self, choices: object) -> None:
        if not isinstance(choices, list):
            return
        for choice in map(codec.as_object, cast("list[object]", choices)):
            if choice is not None:
                index = choice.get("index", 0)
                ended = choice.get("finish_reason") is not None
                if not self.begun:
                    self.begun = ended or _says(choice)
                (self._finished if ended else self._open).add(
                    index if isinstance(index, int) else 0
                )

    def end(self, complete: bool) -> bytes:  # noqa: FBT001  one fact about the transport
        """Return the rest: a last event that lacks its blank line, a terminator that the provider does not send."""
        if self.done or self.error is not None:
            return b""
        rest = self._buffer.rest()
        out = self._pass_rest(rest) or (rest if self._started and not rest.strip(b"\r\n") else b"")
        if self.done or self.error is not None:
            return out
        if complete and self._started and not self._finishes:
            self.done = True
            return out
        if complete and not self._rules.done_required and self._all_finished():
            self.done = True
            return out + _DONE_EVENT
        raise UpstreamError("upstream_truncated", phase="body")

    def _is_whole(self, data: bytes) -> bool:
        if data.strip() == _DONE:
            return True
        try:
            _decode(data)
        except _BAD:
            return False
        return True

    @property
    def open_choices(self) -> Sequence[int]:
        """Return the choices that have begun and not finished."""
        return sorted(self._open - self._finished)

    def _all_finished(self) -> bool:
        return bool(self._finished) and self._open <= self._finished


_TEXTS = ("content", "refusal", "reasoning", "reasoning_content", "reasoning_details", "tool_calls")


_CONTENT = (*_TEXTS, "audio", "function_call", "images", "annotations")


def _says(choice: Mapping[str, Any]) -> bool:
    """Tell whether a choice of a chunk holds content."""
    delta = codec.as_object(choice.get("delta")) or {}
    return bool(choice.get("text")) or any(delta.get(name) for name in _CONTENT)


def _is_chunk(chunk: _Chunk | None, data: bytes) -> bool:
    """Tell whether a first event is one of this format, which events of all others are not."""
    if chunk is None:
        return False
    try:
        return isinstance(chunk.choices, list) or is_chunk(codec.as_object(codec.decode(data)))
    except _BAD:
        return False


def _is_comment(event: bytes) -> bool:
    """Tell whether an event holds comments alone."""
    return all(not line or line.startswith(b":") for line in event.splitlines())


def _without_error(data: bytes) -> bytes:
    """Return a chunk without its error and without finish reasons as an event, or nothing if no content is left."""
    try:
        chunk = codec.as_object(codec.decode(data)) or {}
    except _BAD:
        return b""
    choices = chunk.get("choices")
    if not isinstance(choices, list):
        return b""
    said = False
    for choice in cast("list[object]", choices):
        fields = codec.as_object(choice)
        if fields is None:
            return b""
        said = said or _says(fields)
        fields["finish_reason"] = None
        fields.pop("native_finish_reason", None)
        fields.pop("error", None)
    if not said:
        return b""
    for name in ("error", "user_id", "usage"):
        chunk.pop(name, None)
    return b"data: " + codec.encode(chunk) + b"\n\n"
