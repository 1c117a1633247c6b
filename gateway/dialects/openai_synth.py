"""Writes a whole answer as a stream, for an upstream that ignored `stream`; what the answer holds is not lost."""

from typing import Any, cast

from gateway.core import codec
from gateway.core.errors import UpstreamError
from gateway.dialects.sse import frame

_DONE = b"data: [DONE]\n\n"


def synthesise(endpoint: str, body: bytes, *, include_usage: bool) -> bytes:
    """Return a checked answer as a valid stream of few chunks: role, content, finish, usage when asked, end."""
    answer = codec.as_object(codec.decode(body))
    choices = answer.get("choices") if answer is not None else None
    if answer is None or not isinstance(choices, list):
        raise UpstreamError(
            "upstream_invalid_response", phase="answer", detail="no choices to stream"
        )
    head = {
        key: value for key, value in answer.items() if key not in {"choices", "usage", "object"}
    }
    head["object"] = "chat.completion.chunk" if endpoint == "chat" else "text_completion"
    frames: list[bytes] = []
    for place, item in enumerate(cast("list[object]", choices)):
        choice = dict(codec.as_object(item) or {})
        index = choice.pop("index", place)
        finish = choice.pop("finish_reason", None) or "stop"
        deltas = _chat_deltas(choice) if endpoint == "chat" else [choice]
        frames.extend(
            _chunk(head, [{"index": index, **delta, "finish_reason": None}]) for delta in deltas
        )
        last: dict[str, Any] = {"delta": {}} if endpoint == "chat" else {"text": ""}
        frames.append(_chunk(head, [{"index": index, **last, "finish_reason": finish}]))
    if include_usage and answer.get("usage") is not None:
        frames.append(frame(codec.encode({**head, "choices": [], "usage": answer["usage"]})))
    frames.append(_DONE)
    return b"".join(frames)


def _chat_deltas(choice: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the chunks of one choice: the role, then everything the message holds."""
    message = dict(codec.as_object(choice.pop("message", None)) or {})
    role = message.pop("role", None) or "assistant"
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        listed = cast("list[object]", calls)
        message["tool_calls"] = [
            {"index": index, **(codec.as_object(call) or {})} for index, call in enumerate(listed)
        ]
    content = {key: value for key, value in message.items() if value is not None}
    first = {"delta": {"role": role, "content": "" if content.get("content") else None}}
    if not content and not choice:
        return [first]
    return [first, {**choice, "delta": content}]


def _chunk(head: dict[str, Any], choices: list[dict[str, Any]]) -> bytes:
    return frame(codec.encode({**head, "choices": choices}))
