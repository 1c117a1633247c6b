"""Reads Cohere's event stream, cut anywhere; `message-end` is its end, whether or not `[DONE]` follows."""

from typing import Any

from gateway.core import codec
from gateway.core.answer import (
    Began,
    Cited,
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
from gateway.core.message import Opaque, Text, Thinking, ToolCall
from gateway.dialects.base import ProviderError, StreamRules
from gateway.dialects.cohere.answers import (
    FAILURES,
    billed,
    citation,
    failure,
    finish_of,
    objects,
    weights,
)
from gateway.dialects.cohere.counts import usage_of
from gateway.dialects.gathering import Gathering
from gateway.dialects.openai_errors import read_error
from gateway.dialects.sse import BOM, EventBuffer, parse_event, split_events
from gateway.dialects.strange import foreign
from gateway.dialects.unknown import unknown

_DONE = b"[DONE]"
_SILENT = frozenset({"message-start", "citation-end", "debug"})
"""Events that hold nothing of the answer."""
_KINDS = _SILENT | {
    "citation-start",
    "content-delta",
    "content-end",
    "content-start",
    "message-end",
    "tool-call-delta",
    "tool-call-end",
    "tool-call-start",
    "tool-plan-delta",
}
"""What a stream may begin with."""
_BAD = (codec.JSONError, RecursionError, UnicodeDecodeError)


class _Function(codec.Struct, gc=False):
    name: str | None = None
    arguments: str | None = None


class _Call(codec.Struct, gc=False):
    id: str | None = None
    function: _Function | None = None


class _Content(codec.Struct, gc=False):
    type: str | None = None
    text: str | None = None
    thinking: str | None = None


class _Message(codec.Struct):
    content: _Content | list[Any] | None = None
    tool_plan: str | None = None
    tool_calls: _Call | list[_Call] | None = None
    citations: Any = None


class _Delta(codec.Struct):
    message: _Message | None = None
    finish_reason: str | None = None
    usage: Any = None
    error: Any = None


class _Frame(codec.Struct):
    type: str | None = None
    id: str | None = None
    index: int | None = None
    delta: _Delta | None = None
    logprobs: Any = None
    message: Any = None
    error: Any = None
    event_type: Any = None


_decode = codec.Decoder(_Frame).decode
_NOTHING = _Delta()
_NO_MESSAGE = _Message()
_Key = tuple[str, int]
_PLAN: _Key = ("plan", 0)


class CohereReader(Gathering):
    """The reader of one stream; `gateway.dialects.sides.StreamReader` says the rest."""

    __slots__ = (
        "_at",
        "_began",
        "_buffer",
        "_calls",
        "_ended",
        "_first",
        "_open",
        "_text",
        "_unknown",
    )
    error: ProviderError | None

    def __init__(self, rules: StreamRules) -> None:
        super().__init__(rules)
        self._buffer = EventBuffer(rules.max_event_bytes, rules.room)
        self._first = True
        self._began = False
        self._ended = False
        self._at = 0
        self._open: dict[_Key, int] = {}
        self._text: int | None = None
        self._calls: dict[int, list[str]] = {}
        self._unknown: list[str | None] = []

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that are complete."""
        self.real = False
        block = self._buffer.take(data)
        for event in split_events(block) if block else ():
            self._take(event)
        return self._taken()

    def end(self, complete: bool) -> list[Event]:  # noqa: FBT001  one fact about the transport
        """Return the rest; `message-end` must have been seen."""
        rest = self._buffer.rest().strip(b"\r\n")
        if rest:
            self._take(rest)
        if self.error is None and not self._ended:
            raise UpstreamError("upstream_truncated", phase="body")
        return self._taken()

    def _take(self, event: bytes) -> None:
        if self._first:
            event = event.removeprefix(BOM)
        name, data = parse_event(event)
        if data is None and name != b"error":
            data = _bare(event)
        data = data.strip() if data else b""
        if not data or data == _DONE:
            return
        self.real = True
        self._first = False
        if self._ended or self.error is not None:
            self.surplus += 1
            return
        self.frames += 1
        try:
            frame = _decode(data)
        except _BAD:
            self._take_broken(name, data)
            return
        if name == b"error" or _is_error(frame):
            self.error = read_error(data, self._rules.secrets)
        elif frame.type is None:
            self.broken += 1
        else:
            self._read(frame)

    def _take_broken(self, name: bytes, data: bytes) -> None:
        if name == b"error":
            self.error = read_error(data, self._rules.secrets)
        else:
            self.broken += 1

    def _read(self, frame: _Frame) -> None:
        delta = frame.delta or _NOTHING
        message = delta.message or _NO_MESSAGE
        if not self._began:
            if frame.type not in _KINDS:
                raise foreign("no event of Cohere")
            self._began = True
            self._out.append(Began(frame.id or ""))
        key = frame.index or 0
        match frame.type:
            case "content-start" | "content-delta":
                self._content(frame, ("content", key), message.content)
            case "content-end":
                # A citation of the text may follow its end: it stays open until something else begins.
                if self._open.get(("content", key)) != self._text:
                    self._close(("content", key))
            case "tool-plan-delta":
                self._plan(message.tool_plan or "")
            case "tool-call-start" | "tool-call-delta":
                self._call(frame, ("call", key), message.tool_calls)
            case "tool-call-end":
                self._close(("call", key))
            case "citation-start":
                self._cite(message.citations)
            case "message-end":
                self._end(delta)
            case kind if kind not in _SILENT:
                self._tell_unknown(kind)
            case _:
                pass

    def _tell_unknown(self, kind: str | None) -> None:
        """Tell a part that is not known here, once for each kind."""
        if kind in self._unknown:
            return
        self._unknown.append(kind)
        self._begin((f"unknown {kind}", 0), unknown(kind))
        self._close_all()

    def _content(self, frame: _Frame, key: _Key, content: _Content | list[Any] | None) -> None:
        said = content if isinstance(content, _Content) else _Content()
        if said.type not in {None, "text", "thinking"}:
            self._tell_unknown(said.type)
            return
        thinks = said.type == "thinking" or (said.type is None and said.thinking is not None)
        text = (said.thinking if thinks else said.text) or ""
        if frame.type == "content-start" or (text and key not in self._open):
            self._begin(key, Thinking(text) if thinks else Text(text))
        elif text:
            self._out.append(Delta(0, self._open[key], text))
        weighed = codec.as_object(frame.logprobs)
        if weighed is not None:
            self._out.append(Weighed(0, (weights(weighed),)))

    def _plan(self, text: str) -> None:
        if _PLAN not in self._open:
            self._begin(_PLAN, Text(text))
        elif text:
            self._out.append(Delta(0, self._open[_PLAN], text))

    def _call(self, frame: _Frame, key: _Key, calls: _Call | list[_Call] | None) -> None:
        call = next(iter(calls), None) if isinstance(calls, list) else calls
        call = call or _Call()
        function = call.function or _Function()
        text = function.arguments or ""
        if frame.type == "tool-call-start":
            self._begin(key, ToolCall(call.id or "", function.name or "", text))
            self._calls[self._open[key]] = [text]
        elif key not in self._open:
            raise UpstreamError(
                "upstream_invalid_response",
                phase="body",
                detail="a fragment belongs to no tool call",
            )
        elif text:
            self._calls[self._open[key]].append(text)
            self._out.append(Delta(0, self._open[key], text))

    def _cite(self, said: object) -> None:
        if self._text is not None:
            self._out += (Cited(0, self._text, citation(cited)) for cited in objects(said))

    def _begin(self, key: _Key, part: Text | Thinking | ToolCall | Opaque) -> None:
        """Open a part; only calls may overlap."""
        if isinstance(part, ToolCall):
            self._close(key)
            for other in [other for other in self._open if other[0] != "call"]:
                self._close(other)
        else:
            self._close_all()
        at = self._at
        self._at += 1
        self._open[key] = at
        self._text = at if isinstance(part, Text) else None
        self._out.append(PartBegan(0, at, part))

    def _close(self, key: _Key) -> None:
        at = self._open.pop(key, None)
        if at is not None:
            self._out.append(PartEnded(0, at))

    def _close_all(self) -> None:
        for key in list(self._open):
            self._close(key)

    def _end(self, delta: _Delta) -> None:
        usage = usage_of(delta.usage)
        native = delta.finish_reason or ""
        self._close_all()
        if native in FAILURES or delta.error:
            if usage is not None:
                self._out.append(Counted(usage))
            self.error = failure(native, delta.error, self._rules.secrets)
            return
        calls = ["".join(texts) for texts in self._calls.values()]
        self._out.append(Finished(0, finish_of(native, calls), native))
        if usage is not None:
            self._out.append(Counted(usage))
        self._out.append(Ended(billed(delta.usage)))
        self._ended = True


def _is_error(frame: _Frame) -> bool:
    """Tell whether a frame is an error: words without a type, or an event of version 1, which was not asked for."""
    if frame.type is None:
        words = frame.message if isinstance(frame.message, str) else None
        return any(said is not None for said in (words, frame.error, frame.event_type))
    return frame.type in {"error", "stream-error"}


def _bare(event: bytes) -> bytes | None:
    """Return JSON that stands there without a frame: an error's body, or the first of version 1's JSON lines."""
    said = event.strip()
    if said[:1] != b"{":
        return None
    first = said.splitlines()[0].rstrip()
    return first if first[-1:] == b"}" else said
