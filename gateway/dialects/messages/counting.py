"""Counts of input tokens: checking a provider's, and an estimate where a target has no way to ask."""

import re
from collections.abc import Mapping
from math import ceil
from typing import Annotated, cast

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.dialects.base import Redactor, unredacted
from gateway.dialects.messages.errors import not_an_answer

_BAD = (codec.JSONError, RecursionError, UnicodeDecodeError)


class _Count(codec.Struct):
    input_tokens: Annotated[int, codec.Meta(ge=0)]


_decode = codec.Decoder(_Count).decode


def read_count(body: bytes, secrets: Redactor = unredacted) -> int:
    """Return the tokens that a provider counted.

    Raises UpstreamError `upstream_invalid_response`, or AnswerIsError for an error under a success status.
    """
    try:
        return _decode(body).input_tokens
    except _BAD as bad:
        raise not_an_answer(body, secrets, str(bad)) from None


_BYTES_PER_TOKEN = 3.5
_PER_MESSAGE = 4
_PER_PICTURE = 1600
_PER_TOOLS = 346
_DOCUMENT_BYTES_PER_TOKEN = 64
_COUNTED = ("system", "messages", "tools")


_EMPTY_LIST = re.compile(rb"\[\s*\]")


def require_messages(fields: codec.Fields) -> None:
    """Raise InputError `invalid_request` for a request to count that has no messages."""
    said = bytes(fields.get("messages", b"")).strip()
    if not said.startswith(b"[") or _EMPTY_LIST.fullmatch(said):
        message = "messages: a list of at least one message is needed"
        raise InputError("invalid_request", message, param="messages")


def estimate(fields: codec.Fields) -> int:
    """Estimate the input tokens of a request from its texts, pictures and documents; no tokenizer is asked."""
    counted = {name: codec.value_of(fields[name]) for name in _COUNTED if name in fields}
    size, extra = 0, _PER_TOOLS if counted.get("tools") else 0
    messages = counted.get("messages")
    if isinstance(messages, list):
        extra += _PER_MESSAGE * len(cast("list[object]", messages))
    waiting: list[object] = list(counted.values())
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            size += len(value.encode("utf-8", "surrogatepass"))
        elif isinstance(value, list):
            waiting += cast("list[object]", value)
        elif isinstance(value, dict):
            part = cast("dict[str, object]", value)
            tokens = _medium(part)
            if tokens is None:
                waiting += part.values()
                size += sum(map(len, part)) if "properties" in part else 0
            else:
                extra += tokens
    return ceil(size / _BYTES_PER_TOKEN) + extra


def _medium(part: Mapping[str, object]) -> int | None:
    """Return the tokens of a picture or of a document that is not plain text; None for anything else."""
    source = codec.as_object(part.get("source"))
    if part.get("type") == "image":
        return _PER_PICTURE
    if part.get("type") != "document" or source is None:
        return None
    data = source.get("data")
    if source.get("type") == "base64" and isinstance(data, str):
        return len(data) // _DOCUMENT_BYTES_PER_TOKEN + 1
    return None
