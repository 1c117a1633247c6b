"""Answers without a neutral form, kept as what they hold: vectors, and texts of the older endpoint.

Their questions are found by the same request alone: another order of words has another vector, and another
continuation.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

from gateway.core import clock, codec
from gateway.core.answer import Answer, Collector, Ended, Event
from gateway.core.call import Call
from gateway.core.errors import UpstreamError
from gateway.core.reply import BeforeEnd, Whole
from gateway.core.usage import Usage
from gateway.dialects.base import ProviderError
from gateway.dialects.sse import frame, parse_event, split_events
from gateway.middleware.semantic_cache import stored
from gateway.middleware.semantic_cache.replay import EVENTS, JSON, cut

ENDPOINTS: Final = frozenset({"embeddings", "completions"})
_ORIGIN = "openai_chat"
_OWN = frozenset({"id", "created", "usage"})
"""What belongs to one request."""
_ENDS = frozenset({"length", "content_filter"})
_DONE = b"[DONE]"


def read(body: bytes) -> Answer:
    """Read an answer; raises UpstreamError `upstream_invalid_response` for what is no object."""
    try:
        fields = codec.as_object(codec.decode(body))
    except (codec.JSONError, UnicodeDecodeError, RecursionError):
        fields = None
    if fields is None:
        raise UpstreamError("upstream_invalid_response", phase="answer", detail="no object")
    return _answer(fields)


def _answer(fields: Mapping[str, Any]) -> Answer:
    model = fields.get("model")
    kept = {name: value for name, value in fields.items() if name not in _OWN}
    return Answer(_ORIGIN, "", model if isinstance(model, str) else "", (), stored.ZERO, 0, kept)


def refuses(endpoint: str, answer: Answer) -> str:
    """Say why an answer is not kept, "" where it is."""
    if answer.extra.get("error"):
        return "not_text"
    if endpoint == "embeddings":
        rows = _rows(answer, "data")
        return "" if rows and all(row.get("embedding") for row in rows) else "empty"
    choices = _rows(answer, "choices")
    for choice in choices:
        end = choice.get("finish_reason")
        if end != "stop":
            return end if end in _ENDS else "other"
        if not isinstance(choice.get("text"), str) or not choice["text"]:
            return "empty"
    return "" if choices else "empty"


def length(answer: Answer) -> int:
    """Return how many characters of text an answer holds."""
    texts = (choice.get("text") for choice in _rows(answer, "choices"))
    return sum(len(text) for text in texts if isinstance(text, str))


def said(call: Call) -> str:
    """Return the text that a request brings to be continued."""
    given: Any = call.get("prompt")
    texts = cast("list[object]", given) if isinstance(given, list) else [given]
    return "\n".join(text for text in texts if isinstance(text, str))


def whole(call: Call, answer: Answer) -> Whole:
    """Write a kept answer in one piece: with an id of its own, and usage zero."""
    return Whole(200, JSON, codec.encode({**_head(call), **answer.extra, "usage": _usage(call)}))


def streamed(call: Call, answer: Answer) -> Iterator[bytes]:
    """Yield a kept answer as the events of a stream, texts in pieces."""
    once = {name: value for name, value in answer.extra.items() if name != "choices"}
    head = {**_head(call), **once}
    for place, choice in enumerate(_rows(answer, "choices")):
        index = choice.get("index", place)
        text = str(choice.get("text", ""))
        # Weights of tokens belong to the text beside them.
        parts = [text] if choice.get("logprobs") else list(cut(text))
        for part in parts:
            piece = {**choice, "index": index, "text": part, "finish_reason": None}
            yield _event({**head, "choices": [piece]})
        last = {"index": index, "text": "", "logprobs": None}
        end = {**last, "finish_reason": choice.get("finish_reason")}
        yield _event({**head, "choices": [end]})
    options = codec.as_object(call.get("stream_options")) or {}
    if options.get("include_usage") is True:
        yield _event({**head, "choices": [], "usage": _usage(call)})
    yield frame(_DONE)


class Replayed:
    """A kept answer as a stream, without pauses."""

    __slots__ = ("_hooks", "_parts", "finished", "headers", "length", "status", "usage")

    def __init__(self, call: Call, answer: Answer) -> None:
        self.status = 200
        self.headers = EVENTS
        self.length: int | None = None
        self.finished = False
        self.usage: Usage | None = stored.ZERO
        self._parts = streamed(call, answer)
        self._hooks: list[BeforeEnd] = []

    def before_end(self, hook: BeforeEnd) -> None:
        """Have a hook called before the last bytes go out."""
        self._hooks.append(hook)

    async def next(self) -> bytes:
        """Return all of it."""
        data = b"".join(self._parts)
        self.finished = True
        for hook in self._hooks:
            await hook()
        return data

    async def close(self) -> None:
        """Hold nothing."""


class Reader:
    """Reads a stream of the older endpoint; at its end comes the whole of it (see `sides.StreamReader`)."""

    def __init__(self) -> None:
        self.error: ProviderError | None = None
        self.broken = 0
        self.surplus = 0
        self.frames = 0
        self.real = False
        self._head: dict[str, Any] = {}
        self._choices: dict[int, dict[str, Any]] = {}

    def feed(self, data: bytes) -> list[Event]:
        """Take whole events."""
        out: list[Event] = []
        for event in split_events(data):
            payload = parse_event(event)[1]
            if payload is None:
                continue
            self.frames += 1
            if payload.strip() == _DONE:
                rows = [self._choices[index] for index in sorted(self._choices)]
                out.append(Ended(_answer({**self._head, "choices": rows}).extra))
                continue
            try:
                self._take(codec.as_object(codec.decode(payload)))
            except (codec.JSONError, UnicodeDecodeError, RecursionError):
                self.broken += 1
        return out

    def end(self, complete: bool) -> list[Event]:  # noqa: FBT001  the port says so
        """Return nothing: without its own terminator a stream is not complete."""
        del complete
        return []

    def _take(self, chunk: Mapping[str, Any] | None) -> None:
        if chunk is None or chunk.get("error"):
            self.broken += 1
            return
        self._head.update({name: value for name, value in chunk.items() if name != "choices"})
        listed = chunk.get("choices")
        for each in cast("list[object]", listed) if isinstance(listed, list) else ():
            choice = codec.as_object(each) or {}
            index = choice.get("index", 0)
            if choice.get("logprobs") or not isinstance(index, int):
                self.broken += 1  # what stands beside pieces of text is not put together
                return
            own = self._choices.setdefault(index, {"text": ""})
            text = choice.get("text")
            own.update({name: value for name, value in choice.items() if name != "text"})
            own["text"] += text if isinstance(text, str) else ""


class BodyCollector(Collector):
    """Puts events together where the last of them brings the answer."""

    def __init__(self) -> None:
        super().__init__(_ORIGIN)
        self._extra: Mapping[str, Any] = {}

    def add(self, events: Iterable[Event]) -> None:
        """Take the next events."""
        for event in events:
            if isinstance(event, Ended):
                self._extra = event.extra
            super().add((event,))

    def answer(self) -> Answer:
        """Return the whole answer."""
        return _answer(self._extra)


def _rows(answer: Answer, name: str) -> list[dict[str, Any]]:
    listed = answer.extra.get(name)
    rows = cast("list[object]", listed) if isinstance(listed, list) else []
    return [dict(codec.as_object(row) or {}) for row in rows]


def _head(call: Call) -> dict[str, Any]:
    if call.run.endpoint == "embeddings":
        return {}
    return {"id": f"cmpl-{call.run.request_id}", "created": int(clock.wall())}


def _usage(call: Call) -> dict[str, int]:
    own = {} if call.run.endpoint == "embeddings" else {"completion_tokens": 0}
    return {"prompt_tokens": 0, **own, "total_tokens": 0}


def _event(chunk: Mapping[str, Any]) -> bytes:
    return frame(codec.encode(chunk))
