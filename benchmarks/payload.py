"""The bytes of the benchmark: request bodies of exact size, the answer, the stream events."""

from __future__ import annotations

import re
from typing import Final

import msgspec

MODEL: Final = "bench"
MODEL_PACED: Final = "bench-paced"
MODEL_HANG: Final = "bench-hang"
MODELS: Final = (MODEL, MODEL_PACED, MODEL_HANG)

SMALL_BODY_BYTES: Final = 1_077
LARGE_BODY_BYTES: Final = 65_536
ANSWER_BYTES: Final = 1_224
EVENT_BYTES: Final = 300
CONTENT_EVENTS: Final = 100
EVENTS_PER_STREAM: Final = CONTENT_EVENTS + 4  # role, contents, finish, usage, [DONE]

ANSWER_ID: Final = "chatcmpl-bench0123456789"
STAMP: Final = re.compile(rb"@(\d{19})@")
STAMP_DIGITS: Final = 19

_TEXT: Final = "The quick brown fox jumps over the lazy dog while nobody is looking. "
_QUESTION: Final = "Say in two sentences why measuring twice is cheaper than guessing once."
_encode = msgspec.json.encode


def filler(size: int) -> str:
    """Return plain text of exactly `size` characters that needs no escaping."""
    return (_TEXT * (size // len(_TEXT) + 1))[:size]


def request_body(model: str, size: int, *, stream: bool = False) -> bytes:
    """Return a chat completion request of exactly `size` bytes."""

    def build(text: str) -> bytes:
        body: dict[str, object] = {
            "model": model,
            "messages": [
                {"role": "system", "content": text},
                {"role": "user", "content": _QUESTION},
            ],
            "temperature": 0.7,
            "max_tokens": 256,
        }
        if stream:
            body["stream"] = True
            body["stream_options"] = {"include_usage": True}
        return _encode(body)

    empty = len(build(""))
    return build(filler(size - empty))


def answer_body() -> bytes:
    """Return the upstream's whole answer, ANSWER_BYTES long."""

    def build(text: str) -> bytes:
        return _encode(
            {
                "id": ANSWER_ID,
                "object": "chat.completion",
                "created": 1_750_000_000,
                "model": MODEL,
                "choices": [
                    {
                        "index": 0,
                        "message": {"role": "assistant", "content": text, "refusal": None},
                        "logprobs": None,
                        "finish_reason": "stop",
                    }
                ],
                "usage": USAGE,
                "system_fingerprint": "fp_bench",
            }
        )

    return build(filler(ANSWER_BYTES - len(build(""))))


USAGE: Final = {
    "prompt_tokens": 210,
    "completion_tokens": 100,
    "total_tokens": 310,
    "prompt_tokens_details": {"cached_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 0},
}


def _event(choices: list[dict[str, object]], **more: object) -> bytes:
    chunk: dict[str, object] = {
        "id": ANSWER_ID,
        "object": "chat.completion.chunk",
        "created": 1_750_000_000,
        "model": MODEL,
        "system_fingerprint": "fp_bench",
        "choices": choices,
    }
    return b"data: " + _encode(chunk | more) + b"\n\n"


def _delta(delta: dict[str, object], finish: str | None = None) -> bytes:
    choice: dict[str, object] = {
        "index": 0,
        "delta": delta,
        "logprobs": None,
        "finish_reason": finish,
    }
    return _event([choice], usage=None)


def role_event() -> bytes:
    """Return the first event of a stream."""
    return _delta({"role": "assistant", "content": ""})


def content_event_parts() -> tuple[bytes, bytes]:
    """Return what stands before and after the 19 digits of the send time in a content event."""
    digits = "0" * STAMP_DIGITS
    empty = len(_delta({"content": f"@{digits}@ "}))
    event = _delta({"content": f"@{digits}@ {filler(EVENT_BYTES - empty)}"})
    head, tail = event.split(digits.encode(), 1)
    return head, tail


def last_events() -> bytes:
    """Return finish, usage (with empty choices) and [DONE]."""
    return _delta({}, "stop") + _event([], usage=USAGE) + b"data: [DONE]\n\n"


def http_chunk(data: bytes) -> bytes:
    """Frame bytes as one chunk of a chunked HTTP body."""
    return b"%x\r\n%b\r\n" % (len(data), data)
