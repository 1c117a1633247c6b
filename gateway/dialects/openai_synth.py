"""Writes a whole answer as a stream, for an upstream that ignored `stream`; what the answer holds is not lost."""

from collections.abc import Sequence
from typing import Any, cast

from gateway.core import clock, codec
from gateway.core.errors import GatewayError, UpstreamError
from gateway.dialects.chat.answers_out import made_id
from gateway.dialects.sse import frame, parse_event, split_events

_DONE = b"data: [DONE]\n\n"
_KINDS = {"chat": "chat.completion.chunk", "completions": "text_completion"}
_ON_EACH = ("id", "created", "model", "service_tier", "system_fingerprint")
_NOT_ONCE = frozenset({*_ON_EACH, "object", "choices", "usage"})


def synthesise(endpoint: str, body: bytes, *, include_usage: bool) -> bytes:
    """Return a checked answer as a valid stream: role, content, finish, usage when asked, end.

    Raises UpstreamError `upstream_invalid_response` for an answer that has no choices.
    """
    answer = codec.as_object(codec.decode(body))
    choices = answer.get("choices") if answer is not None else None
    if answer is None or not isinstance(choices, list) or endpoint not in _KINDS:
        raise UpstreamError(
            "upstream_invalid_response", phase="answer", detail="no choices to stream"
        )
    head = {key: answer[key] for key in _ON_EACH if key in answer}
    head["object"] = _KINDS[endpoint]
    once = {key: value for key, value in answer.items() if key not in _NOT_ONCE}
    frames: list[bytes] = []
    for place, item in enumerate(cast("list[object]", choices)):
        choice = dict(codec.as_object(item) or {})
        index = choice.pop("index", place)
        finish = choice.pop("finish_reason", None) or _finish_of(choice)
        whole = f"{answer.get('id', '')}", place
        deltas = _chat_deltas(choice, *whole) if endpoint == "chat" else [choice]
        last: dict[str, Any] = {"delta": {}} if endpoint == "chat" else {"text": ""}
        for delta in deltas:
            said = {"index": index, **delta, "finish_reason": None}
            frames.append(_frame({**head, "choices": [said], **once}))
            once = {}
        frames.append(
            _frame({**head, "choices": [{"index": index, **last, "finish_reason": finish}]})
        )
    if include_usage and answer.get("usage") is not None:
        frames.append(_frame({**head, "choices": [], "usage": answer["usage"]}))
    frames.append(_DONE)
    return b"".join(frames)


def compose(endpoint: str, model: str, text: str, request_id: str) -> bytes:
    """Return a whole answer of one text that no provider was asked for; its usage is zero (A6).

    Raises GatewayError `internal` for an endpoint whose answers are no text.
    """
    if endpoint not in _KINDS:
        raise GatewayError("internal", detail=f"{endpoint} cannot be answered with a text")
    said = (
        {"message": {"role": "assistant", "content": text}}
        if endpoint == "chat"
        else {"text": text}
    )
    return codec.encode(
        {
            "id": f"chatcmpl-{request_id}",
            "object": "chat.completion" if endpoint == "chat" else "text_completion",
            "created": int(clock.wall()),
            "model": model,
            "choices": [{"index": 0, **said, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        }
    )


def cut_short(endpoint: str, began: bytes, choices: Sequence[int], why: str) -> bytes:
    """Return finish chunks with `length` and the warning, and the end; named like the events it began with."""
    head: dict[str, Any] = {}
    for event in split_events(began):
        try:
            chunk = codec.as_object(codec.decode(parse_event(event)[1] or b"")) or {}
        except codec.JSONError:
            continue
        head.update({key: chunk[key] for key in (*_ON_EACH, "object") if chunk.get(key)})
    head.setdefault("object", _KINDS.get(endpoint, ""))
    last: dict[str, Any] = {"delta": {}} if endpoint == "chat" else {"text": ""}
    frames = [
        _frame(
            {
                **head,
                "choices": [{"index": index, **last, "finish_reason": "length"}],
                "gateway": {"warnings": [why]},
            }
        )
        for index in choices or (0,)
    ]
    return b"".join((*frames, _DONE))


def _finish_of(choice: dict[str, Any]) -> str:
    message = codec.as_object(choice.get("message")) or {}
    return "tool_calls" if message.get("tool_calls") else "stop"


def _chat_deltas(choice: dict[str, Any], answer_id: str, place: int) -> list[dict[str, Any]]:
    """Return the chunks of one choice: the role, then everything the message holds.

    Clients put calls of a stream together by what only a whole answer may leave out: each gets an id and a type.
    """
    message = dict(codec.as_object(choice.pop("message", None)) or {})
    role = message.pop("role", None) or "assistant"
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        listed = cast("list[object]", calls)
        message["tool_calls"] = [
            _call(index, codec.as_object(call) or {}, made_id(answer_id, place, index))
            for index, call in enumerate(listed)
        ]
    content = {key: value for key, value in message.items() if value is not None}
    first = {"delta": {"role": role, "content": "" if content.get("content") else None}}
    if not content and not choice:
        return [first]
    return [first, {**choice, "delta": content}]


def _call(index: int, call: dict[str, Any], made_up: str) -> dict[str, Any]:
    kind = "custom" if "custom" in call else "function"
    return {
        "index": index,
        **call,
        "id": call.get("id") or made_up,
        "type": call.get("type") or kind,
    }


def _frame(chunk: dict[str, Any]) -> bytes:
    return frame(codec.encode(chunk))
