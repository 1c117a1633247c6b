"""The OpenAI dialect: chat, completions, embeddings and their neighbours, between a client and a provider alike."""

from collections.abc import Sequence
from typing import Any, cast

from gateway.core import codec
from gateway.core.errors import GatewayError, UpstreamError
from gateway.core.reply import Headers, Whole
from gateway.core.usage import Usage
from gateway.dialects.base import (
    AnswerIsError,
    ProviderError,
    Redactor,
    StreamRules,
    unredacted,
)
from gateway.dialects.openai_errors import (
    as_stream,
    read_error,
    render_error,
    render_provider_error,
)
from gateway.dialects.openai_stream import StreamWatcher
from gateway.dialects.openai_synth import compose, cut_short, synthesise
from gateway.dialects.openai_usage import Counts, usage_from, usage_of
from gateway.dialects.plain_errors import PlainErrors

_JSON: Headers = ((b"content-type", b"application/json"),)
_WITH_FINISH = frozenset({"chat", "completions"})
_BAD = (codec.JSONError, RecursionError, UnicodeDecodeError)


class _Good(codec.Struct):
    """An answer as it should be; what is not goes through `_Any`."""

    usage: Counts | None = None
    error: None = None


class _Object(codec.Struct):
    """Any object; what is in it is not looked at."""


class _GoodChoices(_Good, kw_only=True):
    choices: list[_Object]


class _GoodData(_Good, kw_only=True):
    data: list[codec.Raw]


class _Any(codec.Struct):
    usage: Any = None
    error: Any = None
    choices: Any = None
    data: Any = None
    results: Any = None
    prompt_filter_results: Any = None


_decode_any = codec.Decoder(_Any | list[codec.Raw]).decode
_GOOD = {
    "chat": codec.Decoder(_GoodChoices).decode,
    "completions": codec.Decoder(_GoodChoices).decode,
    "embeddings": codec.Decoder(_GoodData).decode,
}
_NEEDED = {
    "chat": "choices",
    "completions": "choices",
    "embeddings": "data",
    "moderations": "results",
}


class OpenAIChat(PlainErrors):
    """Chat completions and the endpoints that share their envelope."""

    name = "openai_chat"
    ping = b": ping\n\n"

    def render_error(self, error: GatewayError, request_id: str) -> bytes:
        """Return the JSON body of a plain error answer."""
        return render_error(error, request_id)

    def render_stream_error(self, error: GatewayError, request_id: str) -> bytes:
        """Return the frame that ends a stream honestly: no `[DONE]` after it."""
        return as_stream(render_error(error, request_id))

    def render_provider_error(
        self, said: ProviderError, error: GatewayError, request_id: str
    ) -> bytes:
        """Return what the provider said in OpenAI's envelope."""
        return render_provider_error(said, error, self.name)

    def render_provider_stream_error(
        self, said: ProviderError, error: GatewayError, request_id: str
    ) -> bytes:
        """Return the frame that ends a stream with what the provider said."""
        return as_stream(self.render_provider_error(said, error, request_id))

    def read_answer(
        self,
        endpoint: str,
        body: bytes,
        secrets: Redactor = unredacted,
        *,
        reasoning_outside: bool = False,
    ) -> Usage | None:
        """Check a whole success answer and return its usage."""
        if not body.isascii():
            _require_utf8(body)
        decode = _GOOD.get(endpoint)
        if decode is not None:
            try:
                answer = decode(body)
            except _BAD:
                return _read_slowly(endpoint, body, secrets, outside=reasoning_outside)
            if isinstance(answer, _GoodData) or answer.choices:
                return usage_from(answer.usage, outside=reasoning_outside)
        return _read_slowly(endpoint, body, secrets, outside=reasoning_outside)

    def watch(self, endpoint: str, rules: StreamRules) -> StreamWatcher:
        """Return a watcher for one stream."""
        return StreamWatcher(rules, finishes=endpoint in _WITH_FINISH)

    def cut_short(self, endpoint: str, began: bytes, choices: Sequence[int], why: str) -> bytes:
        """Return the end of a stream that is ended before its time."""
        return cut_short(endpoint, began, choices, why)

    def synthesise(self, endpoint: str, body: bytes, include_usage: bool) -> bytes:  # noqa: FBT001
        """Return a whole answer as a valid stream."""
        return synthesise(endpoint, body, include_usage=include_usage)

    def answer(self, endpoint: str, model: str, text: str, request_id: str) -> Whole:
        """Return a whole answer of this text that no provider was asked for."""
        return Whole(200, _JSON, compose(endpoint, model, text, request_id))


def _require_utf8(body: bytes) -> None:
    try:
        body.decode()
    except UnicodeDecodeError:
        raise _unusable("not UTF-8") from None


def _read_slowly(endpoint: str, body: bytes, secrets: Redactor, *, outside: bool) -> Usage | None:
    """Read an answer that is odd in some way: usage of the wrong type is ignored, an error is told."""
    try:
        answer = _decode_any(body)
    except _BAD as bad:
        raise _unusable(str(bad)) from None
    if isinstance(answer, list):
        if endpoint in _NEEDED:
            raise _unusable("no object")
        return None
    needed = _NEEDED.get(endpoint)
    result = getattr(answer, needed) if needed is not None else None
    if answer.error and not result:
        raise AnswerIsError(read_error(body, secrets))
    if needed is not None:
        _require_result(needed, result, filtered=bool(answer.prompt_filter_results))
    return usage_of(answer.usage, outside=outside)


def _require_result(needed: str, result: object, *, filtered: bool) -> None:
    if not isinstance(result, list):
        raise _unusable(f"no {needed}")
    items = cast("list[object]", result)
    if needed == "choices" and not items and not filtered:
        raise _unusable("no choices")
    if needed == "choices" and not all(isinstance(item, dict) for item in items):
        raise _unusable("a choice is no object")


def _unusable(detail: str) -> UpstreamError:
    return UpstreamError("upstream_invalid_response", phase="answer", detail=detail)
