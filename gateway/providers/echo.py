"""The built-in provider: answers without any network and says so, so that a first call works without a key.

Everything is made from the request alone: the same request gets the same answer. One word between spaces
counts as one token.
"""

import base64
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, cast

from gateway.core import codec
from gateway.providers.echo_chat import chat_chunks, chat_completion
from gateway.providers.echo_text import (
    CREATED,
    BadRequest,
    count_words,
    text_chunks,
    text_completion,
    whole_number,
)

_JSON = ((b"content-type", b"application/json"),)
_EVENTS = ((b"content-type", b"text/event-stream"),)
_DIMENSIONS = 256
_MOST_DIMENSIONS = 4096
_CATEGORIES = (
    "harassment",
    "harassment/threatening",
    "hate",
    "hate/threatening",
    "illicit",
    "illicit/violent",
    "self-harm",
    "self-harm/instructions",
    "self-harm/intent",
    "sexual",
    "sexual/minors",
    "violence",
    "violence/graphic",
)


@dataclass(frozen=True, slots=True)
class EchoAnswer:
    """An answer as a provider would send it; a stream's body is made while it is read."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes | Iterator[bytes]


def answer(endpoint: str, body: Mapping[str, Any]) -> EchoAnswer:
    """Answer one request; `endpoint` is the path below the base address, or its short name."""
    name = endpoint.partition("?")[0].strip("/")
    try:
        if name in {"chat", "chat/completions"}:
            if body.get("stream") is True:
                return EchoAnswer(200, _EVENTS, chat_chunks(body))
            return _json(chat_completion(body))
        if name == "completions":
            if body.get("stream") is True:
                return EchoAnswer(200, _EVENTS, text_chunks(body))
            return _json(text_completion(body))
        if name == "embeddings":
            return _json(_embeddings(body))
        if name == "moderations":
            return _json(_moderations(body))
    except BadRequest as bad:
        return _error(400, str(bad), bad.param)
    if name == "models":
        return _json({"object": "list", "data": [_MODEL]})
    return _error(404, "The built-in echo does not offer this.", None)


_MODEL = {"id": "echo", "object": "model", "created": CREATED, "owned_by": "gateway"}


def _json(value: object, status: int = 200) -> EchoAnswer:
    return EchoAnswer(status, _JSON, codec.encode(value))


def _error(status: int, message: str, param: str | None) -> EchoAnswer:
    kind = "invalid_request_error"
    error = {"message": message, "type": kind, "param": param, "code": None}
    return _json({"error": error}, status)


def _inputs(body: Mapping[str, Any]) -> list[object]:
    """Return the inputs of a request: one text, one list of tokens, or a list of either."""
    value = body.get("input")
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not value:
        raise BadRequest("`input` must be a text or a list that is not empty.", "input")
    items = cast("list[object]", value)
    return [items] if all(isinstance(item, int) for item in items) else items


def _tokens(value: object) -> int:
    return len(cast("list[object]", value)) if isinstance(value, list) else count_words(str(value))


def _embeddings(body: Mapping[str, Any]) -> dict[str, Any]:
    inputs = _inputs(body)
    dimensions = whole_number(body, "dimensions", _DIMENSIONS)
    if not 1 <= dimensions <= _MOST_DIMENSIONS:
        message = f"`dimensions` must be between 1 and {_MOST_DIMENSIONS}."
        raise BadRequest(message, "dimensions")
    packed = body.get("encoding_format") == "base64"
    total = sum(_tokens(value) for value in inputs)
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": index, "embedding": _vector(value, dimensions, packed)}
            for index, value in enumerate(inputs)
        ],
        "model": body.get("model"),
        "usage": {"prompt_tokens": total, "total_tokens": total},
    }


def _vector(value: object, dimensions: int, packed: bool) -> str | list[float]:  # noqa: FBT001
    """Return a unit vector made from a hash: equal inputs are equal, all others are strangers."""
    seed = codec.encode(value)
    blocks = (dimensions + 7) // 8
    data = b"".join(sha256(b"%d:%s" % (block, seed)).digest() for block in range(blocks))
    raw = struct.unpack(f"<{blocks * 8}i", data)[:dimensions]
    length = sum(number * number for number in raw) ** 0.5 or 1.0
    single = struct.pack(f"<{dimensions}f", *[number / length for number in raw])
    if packed:
        return base64.b64encode(single).decode()
    return list(struct.unpack(f"<{dimensions}f", single))


def _moderations(body: Mapping[str, Any]) -> dict[str, Any]:
    """Flag nothing: no check is made, and the model's name says so."""
    result = {
        "flagged": False,
        "categories": dict.fromkeys(_CATEGORIES, False),
        "category_scores": dict.fromkeys(_CATEGORIES, 0.0),
        "category_applied_input_types": {name: ["text"] for name in _CATEGORIES},
    }
    inputs = _inputs(body)
    if all(isinstance(item, dict) for item in inputs):
        inputs = inputs[:1]
    return {"id": "modr-echo", "model": "echo-unchecked", "results": [result for _ in inputs]}
