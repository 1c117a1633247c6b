"""The bytes of the benchmark in the format of Messages, as long as those of chat completions."""

from __future__ import annotations

from typing import Final

import msgspec

from benchmarks import payload

_encode = msgspec.json.encode
_START: Final[dict[str, object]] = {
    "id": "msg_bench0123456789",
    "type": "message",
    "role": "assistant",
    "model": payload.MODEL,
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
    "usage": {"input_tokens": 210, "output_tokens": 1},
}


def answer_body() -> bytes:
    """Return the upstream's whole answer, as long as that of chat completions."""

    def build(text: str) -> bytes:
        content = [{"type": "text", "text": text}]
        usage = {"input_tokens": 210, "output_tokens": 100}
        return _encode({**_START, "content": content, "stop_reason": "end_turn", "usage": usage})

    return build(payload.filler(payload.ANSWER_BYTES - len(build(""))))


def _event(name: str, **fields: object) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), _encode({"type": name, **fields}))


def first_events() -> bytes:
    """Return what comes before the content."""
    block = {"type": "text", "text": ""}
    return _event("message_start", message=_START) + _event(
        "content_block_start", index=0, content_block=block
    )


def content_event_parts() -> tuple[bytes, bytes]:
    """Return what stands before and after the 19 digits of the send time in a content event."""
    digits = "0" * payload.STAMP_DIGITS

    def build(text: str) -> bytes:
        delta = {"type": "text_delta", "text": f"@{digits}@ {text}"}
        return _event("content_block_delta", index=0, delta=delta)

    event = build(payload.filler(payload.EVENT_BYTES - len(build(""))))
    head, tail = event.split(digits.encode(), 1)
    return head, tail


def last_events() -> bytes:
    """Return what comes behind the content."""
    delta = {"stop_reason": "end_turn", "stop_sequence": None}
    return (
        _event("content_block_stop", index=0)
        + _event("message_delta", delta=delta, usage={"output_tokens": 100})
        + _event("message_stop")
    )
