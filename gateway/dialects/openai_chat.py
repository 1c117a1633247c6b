"""The OpenAI dialect: chat, completions, embeddings and their neighbours, between a client and a provider alike."""

from typing import Any, cast

from gateway.core import codec
from gateway.core.errors import GatewayError, UpstreamError
from gateway.core.usage import Usage
from gateway.dialects.base import (
    AnswerIsErrorError,
    ProviderError,
    Redactor,
    StreamRules,
    unredacted,
)
from gateway.dialects.openai_classes import error_class
from gateway.dialects.openai_errors import (
    as_stream,
    read_error,
    render_error,
    render_provider_error,
)
from gateway.dialects.openai_stream import StreamWatcher
from gateway.dialects.openai_synth import synthesise
from gateway.dialects.openai_usage import usage_of

_WITH_FINISH = frozenset({"chat", "completions"})
_BAD = (codec.JSONError, RecursionError, UnicodeDecodeError)


class _Answer(codec.Struct):
    usage: Any = None
    error: Any = None


class _Choices(_Answer):
    choices: list[codec.Raw] | None = None
    prompt_filter_results: Any = None


class _Data(_Answer):
    data: list[codec.Raw] | None = None


class _Results(_Answer):
    results: list[codec.Raw] | None = None


_decode_any = codec.Decoder(_Answer | list[codec.Raw]).decode
_decode_choices = codec.Decoder(_Choices).decode
_decode_data = codec.Decoder(_Data).decode
_decode_results = codec.Decoder(_Results).decode


class OpenAIChat:
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
    ) -> bytes:  # noqa: ARG002
        """Return what the provider said in OpenAI's envelope."""
        return render_provider_error(said, error)

    def render_provider_stream_error(
        self, said: ProviderError, error: GatewayError, request_id: str
    ) -> bytes:
        """Return the frame that ends a stream with what the provider said."""
        return as_stream(self.render_provider_error(said, error, request_id))

    def read_error(self, http: int, body: bytes, secrets: Redactor) -> ProviderError:
        """Read a provider's error answer of any shape."""
        return read_error(http, body, secrets)

    def error_class(self, error: ProviderError, http: int) -> str:
        """Classify what a provider said: context, policy, quota, auth or other."""
        return error_class(error, http)

    def read_answer(self, endpoint: str, body: bytes) -> Usage | None:
        """Check a whole success answer and return its usage."""
        try:
            if not body.isascii():
                body.decode()
            answer = _DECODERS.get(endpoint, _decode_any)(body)
        except _BAD as bad:
            raise _unusable(str(bad)) from None
        if isinstance(answer, list):
            return None
        if answer.error and not _has_result(answer):
            raise AnswerIsErrorError(read_error(0, body, unredacted))
        _require_result(answer)
        return usage_of(answer.usage)

    def watch(self, endpoint: str, rules: StreamRules) -> StreamWatcher:
        """Return a watcher for one stream."""
        return StreamWatcher(rules, finishes=endpoint in _WITH_FINISH)

    def synthesise(self, endpoint: str, body: bytes, include_usage: bool) -> bytes:  # noqa: FBT001
        """Return a whole answer as a valid stream."""
        return synthesise(endpoint, body, include_usage=include_usage)


_DECODERS = {
    "chat": _decode_choices,
    "completions": _decode_choices,
    "embeddings": _decode_data,
    "moderations": _decode_results,
}


def _has_result(answer: _Answer) -> bool:
    if isinstance(answer, _Choices):
        return bool(answer.choices)
    if isinstance(answer, _Data):
        return answer.data is not None
    return isinstance(answer, _Results) and answer.results is not None


def _require_result(answer: _Answer) -> None:
    if isinstance(answer, _Choices):
        if not answer.choices and not (answer.choices is not None and answer.prompt_filter_results):
            raise _unusable("no choices")
        for choice in cast("list[codec.Raw]", answer.choices):
            if bytes(choice)[:1] != b"{":
                raise _unusable("a choice is no object")
    elif isinstance(answer, _Data) and answer.data is None:
        raise _unusable("no data")
    elif isinstance(answer, _Results) and answer.results is None:
        raise _unusable("no results")


def _unusable(detail: str) -> UpstreamError:
    return UpstreamError("upstream_invalid_response", phase="answer", detail=detail)
