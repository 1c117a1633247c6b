"""Reads a provider's chat stream, cut anywhere, into events; complete only with the provider's own end (K04)."""

from typing import Any, cast

from gateway.core import codec
from gateway.core.answer import Began, Counted, Ended, Event, Finished
from gateway.core.errors import UpstreamError
from gateway.core.message import Citation
from gateway.core.usage import Usage
from gateway.dialects.base import ProviderError, StreamRules
from gateway.dialects.chat.answers_in import (
    KEPT,
    failure_in,
    has_failed,
    number_in,
    text_in,
    unusable,
    usage_in,
)
from gateway.dialects.chat.citations import sources_of
from gateway.dialects.chat.stream_choice import StreamChoice
from gateway.dialects.gathering import Gathering
from gateway.dialects.openai_errors import read_error
from gateway.dialects.openai_usage import newest
from gateway.dialects.sse import BOM, EventBuffer, parse_event, split_events
from gateway.dialects.strange import foreign, is_chunk

_DONE = b"[DONE]"
_BAD = (codec.JSONError, RecursionError)


class _Words(codec.Struct, gc=False, forbid_unknown_fields=True):
    content: str


class _Saying(codec.Struct, gc=False):
    delta: _Words
    index: int = 0
    finish_reason: None = None
    logprobs: None = None


class _Plain(codec.Struct, gc=False):
    """A chunk that says more of texts and nothing else: most of them, and read much faster than the others."""

    choices: list[_Saying]
    usage: None = None
    error: None = None
    x_groq: None = None
    citations: None = None
    search_results: None = None


_decode_plain = codec.Decoder(_Plain).decode


class ChatReader(Gathering):
    """One stream; `gateway.dialects.sides.StreamReader` says the rest.

    Reasons for the end and what depends on them are told when the end itself was seen: an answer that is cut off,
    or ends in an error, never looks finished. A failure found in the bytes is raised with the call that follows,
    so that what came before it is not lost, however the bytes were cut.
    """

    __slots__ = (
        "_began",
        "_buffer",
        "_choices",
        "_done",
        "_extra",
        "_failure",
        "_filtered",
        "_seen",
        "_sources",
        "_usage",
    )
    error: ProviderError | None

    def __init__(self, rules: StreamRules) -> None:
        super().__init__(rules)
        self._buffer = EventBuffer(rules.max_event_bytes, rules.room)
        self._choices: dict[int, StreamChoice] = {}
        self._usage: Usage | None = None
        self._sources: tuple[Citation, ...] = ()
        self._extra: dict[str, Any] = {}
        self._began = False
        self._filtered = False
        self._seen = False
        self._done = False
        self._failure: UpstreamError | None = None

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that are complete."""
        if (
            self._began
            and not self._buffer.held
            and data[-2:] == b"\n\n"
            and self._read_plain(data)
        ):
            return self._taken()
        self.real = False
        self._raise_failure()
        if self._done or self.error is not None:
            self.surplus += self._done and data.count(b"data:")
            return []
        block = self._buffer.take(data)
        if block:
            self._read_block(split_events(block))
        return self._taken()

    def end(self, complete: bool) -> list[Event]:  # noqa: FBT001  one fact about the transport
        """Return the rest after the body's end."""
        self.real = False
        self._raise_failure()
        if self._done or self.error is not None:
            return []
        self._read_rest(self._buffer.rest().strip(b"\r\n"))
        self._raise_failure()
        if self._done or self.error is not None:
            return self._taken()
        ended = bool(self._choices) and all(each.native for each in self._choices.values())
        if complete and not self._rules.done_required and ended:
            self._end_all()
            self._raise_failure()
            return self._taken()
        raise UpstreamError("upstream_truncated", phase="body")

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _read_block(self, events: list[bytes]) -> None:
        for event in events:
            if self._began and self._read_plain(event):
                continue
            name, data = parse_event(event)
            if data is None and name != b"error":
                data = self._after_mark(event)
            if self._done:
                self.surplus += data is not None
            elif self.error is None and self._failure is None:
                self._read_event(name, (data or b"").strip())

    def _read_plain(self, event: bytes) -> bool:
        """Read an event that holds words alone; tell whether it was one."""
        if self._done or self.error is not None or self._failure is not None:
            return False
        if event[:5] != b"data:":
            return False
        try:
            said = _decode_plain(event[5:]).choices
        except _BAD:
            return False
        for each in said:
            if each.index not in self._choices:
                return False
        for each in said:
            self._choices[each.index].say(each.delta.content)
        self.frames += 1
        self.real = True
        return True

    def _after_mark(self, event: bytes) -> bytes | None:
        """Return the data of a first event that begins with a byte order mark."""
        return parse_event(event[len(BOM) :])[1] if event.startswith(BOM) else None

    def _read_event(self, name: bytes, data: bytes) -> None:
        if not data and name != b"error":
            return
        self.real = True
        try:
            if data == _DONE:
                self._end_all()
                return
            try:
                chunk = codec.as_object(codec.decode(data)) if data else None
            except _BAD:
                chunk = None
            self._read_chunk(chunk, data, failed=name == b"error")
        except UpstreamError as failure:
            self._failure = failure

    def _read_chunk(self, chunk: dict[str, Any] | None, data: bytes, *, failed: bool) -> None:
        self.frames += 1
        if chunk is None:
            self.broken += not failed
            if failed or b'"error"' in data:
                self.error = read_error(data, self._rules.secrets)
            return
        failed = failed or _is_error(chunk)
        choices = chunk.get("choices")
        if not self._seen:
            self._seen = failed or is_chunk(chunk)
            if not self._seen:
                raise foreign("no chunk of chat completions")
        items = cast("list[object]", choices) if isinstance(choices, list) else []
        if not self._began and (items or chunk.get("usage")):
            self._began = True
            self._out.append(
                Began(text_in(chunk, "id"), text_in(chunk, "model"), number_in(chunk, "created"))
            )
        for item in items:
            fields = codec.as_object(item)
            if fields is not None:
                self._choice(fields).read(fields)
                if has_failed(fields):
                    self.error = failure_in(fields, self._rules.secrets)
        self._note(chunk)
        if failed:
            self.error = read_error(data, self._rules.secrets)

    def _choice(self, fields: dict[str, Any]) -> StreamChoice:
        index = fields.get("index")
        if not isinstance(index, int) or isinstance(index, bool):
            index = 0
        choice = self._choices.get(index)
        if choice is None:
            choice = self._choices[index] = StreamChoice(index, self._out)
        return choice

    def _note(self, chunk: dict[str, Any]) -> None:
        """Keep what a chunk says beside its choices: counts, sources, what is filtered."""
        if chunk.get("usage") is not None or "x_groq" in chunk:
            usage = newest(self._usage, usage_in(chunk, outside=self._rules.reasoning_outside))
            if usage is not None and usage != self._usage:
                self._usage = usage
                if self._began:
                    self._out.append(Counted(usage))
        if "citations" in chunk or "search_results" in chunk:
            found = sources_of(chunk.get("search_results"), chunk.get("citations"))
            self._sources = found or self._sources
        self._filtered = self._filtered or bool(chunk.get("prompt_filter_results"))
        for name in KEPT:
            if text_in(chunk, name):
                self._extra[name] = chunk[name]

    def _end_all(self) -> None:
        """Tell the end of every choice and of the answer."""
        if not self._seen:
            raise unusable("the stream holds nothing but its end", "body")
        self._done = True
        if not self._began:
            self._began = True
            self._out.append(Began())
            if self._usage is not None:
                self._out.append(Counted(self._usage))
        for index in sorted(self._choices):
            self._choices[index].end(() if index else self._sources)
        if not self._choices:
            finish = "content_filter" if self._filtered else "stop"
            self._out.append(Finished(0, finish, finish if self._filtered else ""))
        self._out.append(Ended(self._extra))

    def _read_rest(self, rest: bytes) -> None:
        """Read a last event that lacks its blank line; half an event says nothing."""
        if not rest:
            return
        name, data = parse_event(rest)
        if data is None:
            # An error answer under the event stream's name: the bare body, no frame around it (Gemini).
            if rest.lstrip()[:1] in {b"{", b"["} and b'"error"' in rest:
                self.error = read_error(rest, self._rules.secrets)
            return
        data = data.strip()
        if data != _DONE:
            try:
                codec.decode(data)
            except _BAD:
                return
        self._read_event(name, data)


def _is_error(chunk: dict[str, Any]) -> bool:
    """Tell whether a chunk is an error: as such, or words in the place of an answer (vLLM, Mistral)."""
    if chunk.get("error"):
        return True
    if chunk.get("choices") is not None or chunk.get("usage") is not None:
        return False
    return isinstance(chunk.get("message"), str) or isinstance(chunk.get("detail"), str | list)
