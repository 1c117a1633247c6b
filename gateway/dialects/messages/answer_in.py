"""Reads a whole answer of Messages."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from gateway.core import codec
from gateway.core.answer import Answer, Choice
from gateway.core.errors import InputError, UpstreamError
from gateway.core.message import Part, Refusal
from gateway.dialects.base import Redactor, unredacted
from gateway.dialects.messages.blocks_in import DIALECT, read_block
from gateway.dialects.messages.errors import not_an_answer
from gateway.dialects.messages.fields import rest_of
from gateway.dialects.messages.finishes import read_finish
from gateway.dialects.messages.usage import read_usage

_BAD = (codec.JSONError, RecursionError, UnicodeDecodeError)
_HEAD = (
    "id",
    "type",
    "role",
    "model",
    "content",
    "stop_reason",
    "stop_sequence",
    "usage",
    "amazon-bedrock-invocationMetrics",
)
_COUNTED = (
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "output_tokens_details",
)


def read_answer(body: bytes, secrets: Redactor = unredacted) -> Answer:
    """Read a whole success answer.

    Raises UpstreamError `upstream_invalid_response`, or AnswerIsError for an error under a success status.
    """
    try:
        answer = codec.as_object(codec.decode(body)) or {}
    except _BAD as bad:
        raise not_an_answer(body, secrets, str(bad)) from None
    content = answer.get("content")
    if not isinstance(content, list) or answer.get("type") == "error":
        raise not_an_answer(body, secrets, "no content")
    parts = _read_parts(cast("list[object]", content))
    native = _text(answer.get("stop_reason"))
    finish = read_finish(native, parts)
    extra = bag_of(answer, answer.get("usage"))
    words = refusal_words(finish, extra)
    choice = Choice(
        0,
        (*parts, Refusal(words)) if words else parts,
        finish,
        native,
        _text(answer.get("stop_sequence")),
    )
    return Answer(
        DIALECT,
        _text(answer.get("id")),
        _text(answer.get("model")),
        (choice,),
        read_usage(answer.get("usage")),
        extra=extra,
    )


def _read_parts(content: Sequence[object]) -> tuple[Part, ...]:
    parts: list[Part] = []
    for at, each in enumerate(content):
        block = codec.as_object(each)
        if block is None:
            raise _unusable(f"content.{at} is no object")
        try:
            parts.append(read_block(block, f"content.{at}"))
        except InputError as wrong:
            raise _unusable(wrong.message) from None
    return tuple(parts)


def bag_of(told: Mapping[str, Any], usage: object) -> dict[str, Any]:
    """Return what only this format knows of an answer, or of the end of a stream."""
    extra = {key: value for key, value in rest_of(told, *_HEAD).items() if value is not None}
    counted = codec.as_object(usage) or {}
    beside = {key: value for key, value in rest_of(counted, *_COUNTED).items() if value is not None}
    if beside:
        extra["usage"] = beside
    return extra


def refusal_words(finish: str, extra: Mapping[str, Any]) -> str:
    """Return how a refusal is explained, "" where it is not."""
    details = codec.as_object(extra.get("stop_details")) or {}
    return _text(details.get("explanation")) if finish == "refusal" else ""


def _unusable(detail: str) -> UpstreamError:
    return UpstreamError("upstream_invalid_response", phase="answer", detail=detail)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
