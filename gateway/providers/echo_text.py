"""What all of the echo's generated texts share: words as tokens, limits, and text completions."""

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, cast

from gateway.core import codec

CREATED = 1_735_689_600
"""The time on every answer: it does not depend on when it was asked."""
_MOST_CHOICES = 16
_NO_LIMIT = 1 << 40
_WORD = re.compile(r"\S+\s*|\s+")


class BadRequest(Exception):
    """The request is not one that OpenAI's interface allows; `param` names the field."""

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


def count_words(text: str) -> int:
    """Return the tokens of a text: its words between spaces."""
    return len(text.split())


def make_id(prefix: str, body: Mapping[str, Any]) -> str:
    """Return an id made from the request."""
    return f"{prefix}-echo-{sha256(codec.encode(body)).hexdigest()[:24]}"


def whole_number(body: Mapping[str, Any], name: str, default: int) -> int:
    """Return a field that must be a whole number; null and absent give the default."""
    value = body.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int):
        message = f"`{name}` must be a whole number."
        raise BadRequest(message, name)
    return value


def choices_of(body: Mapping[str, Any]) -> int:
    """Return how many choices were asked for."""
    count = whole_number(body, "n", 1)
    if not 1 <= count <= _MOST_CHOICES:
        message = f"`n` must be between 1 and {_MOST_CHOICES}."
        raise BadRequest(message, "n")
    return count


def asks_usage(body: Mapping[str, Any]) -> bool:
    """Return whether a stream must tell its usage."""
    options = codec.as_object(body.get("stream_options"))
    return options is not None and options.get("include_usage") is True


def limit(text: str, body: Mapping[str, Any]) -> tuple[str, str]:
    """Return the text as far as stop sequences and the token limit allow, and the finish reason."""
    stops = body.get("stop")
    for stop in cast("list[object]", stops) if isinstance(stops, list) else [stops]:
        if isinstance(stop, str) and stop:
            text = text.partition(stop)[0]
    most = whole_number(body, "max_completion_tokens", whole_number(body, "max_tokens", _NO_LIMIT))
    if most < 1:
        raise BadRequest("`max_tokens` must be at least 1.", "max_tokens")
    words = _WORD.findall(text)
    if len(words) <= most:
        return text, "stop"
    return "".join(words[:most]).rstrip(), "length"


def pieces(text: str) -> list[str]:
    """Cut a text into words, each with the space behind it."""
    return _WORD.findall(text)


def event(value: object) -> bytes:
    """Return one event of a stream."""
    return b"data: %s\n\n" % codec.encode(value)


def usage(prompt: int, completion: int) -> dict[str, int]:
    """Return a usage object."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def _prompts(body: Mapping[str, Any]) -> list[str]:
    prompt = body.get("prompt")
    if isinstance(prompt, str):
        return [prompt]
    if not isinstance(prompt, list) or not prompt:
        raise BadRequest("`prompt` must be a text or a list that is not empty.", "prompt")
    items = cast("list[object]", prompt)
    if all(isinstance(item, int) for item in items):
        items = [items]
    return [item if isinstance(item, str) else codec.encode(item).decode() for item in items]


def _texts(body: Mapping[str, Any]) -> list[tuple[str, str]]:
    count = choices_of(body)
    texts: list[tuple[str, str]] = []
    for prompt in _prompts(body):
        said = f" [echo of the gateway, no model was asked] {prompt}"
        texts += [limit(said, body)] * count
    return texts


def _usage_of(body: Mapping[str, Any], texts: list[tuple[str, str]]) -> dict[str, int]:
    prompt = sum(map(count_words, _prompts(body)))
    return usage(prompt, sum(count_words(text) for text, _ in texts))


def text_completion(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the whole answer to a completions request."""
    texts = _texts(body)
    return {
        **_head(body),
        "choices": [
            {"index": index, "text": text, "logprobs": None, "finish_reason": finish}
            for index, (text, finish) in enumerate(texts)
        ],
        "usage": _usage_of(body, texts),
    }


def text_chunks(body: Mapping[str, Any]) -> Iterator[bytes]:
    """Check a completions request and return its answer as a stream."""
    return _text_chunks(body, _texts(body))


def _text_chunks(body: Mapping[str, Any], texts: list[tuple[str, str]]) -> Iterator[bytes]:
    head = _head(body)
    told = asks_usage(body)
    silent = {"usage": None} if told else {}
    for index, (text, finish) in enumerate(texts):
        for piece in pieces(text):
            choice = {"index": index, "text": piece, "logprobs": None, "finish_reason": None}
            yield event({**head, "choices": [choice], **silent})
        last = {"index": index, "text": "", "logprobs": None, "finish_reason": finish}
        yield event({**head, "choices": [last], **silent})
    if told:
        yield event({**head, "choices": [], "usage": _usage_of(body, texts)})
    yield b"data: [DONE]\n\n"


def _head(body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": make_id("cmpl", body),
        "object": "text_completion",
        "created": CREATED,
        "model": body.get("model"),
    }
