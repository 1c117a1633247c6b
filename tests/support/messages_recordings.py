"""Recorded exchanges of the Messages format, wherever they took place, as server-sent events or whole bodies."""

import base64
import json
from collections.abc import Iterator
from typing import Any

from gateway.core.answer import Answer
from gateway.core.message import Opaque, Part, Refusal, Text, Thinking, ToolCall
from gateway.dialects.bedrock.frames import FrameBuffer
from gateway.dialects.messages.events import as_event
from tests.support import exchanges

Json = dict[str, Any]


def recorded(*, stream: bool, good: bool = True) -> list[exchanges.Exchange]:
    """Return the recorded exchanges: streams or whole answers, successes or refusals."""
    return [
        each
        for each in exchanges.load()
        if each.kind == "messages"
        and (each.status < 400) == good
        and each.stream == (stream and good)
    ]


def body_of(exchange: exchanges.Exchange) -> bytes:
    """Return what came; what AWS framed as the server-sent events that it stands for."""
    response = exchange.raw["response"]
    if response["encoding"] == "json":
        return json.dumps(response["body"], ensure_ascii=False).encode()
    if response["encoding"] == "base64":
        frames = FrameBuffer(1 << 20).take(base64.b64decode(response["body"]))
        inner = (base64.b64decode(json.loads(frame.payload)["bytes"]) for frame in frames)
        return b"".join(as_event(each) for each in inner)
    return str(response["body"]).encode()


def requests() -> Iterator[tuple[str, Json]]:
    """Yield every recorded request with its id."""
    for each in exchanges.load():
        body = each.raw["request"]["body"]
        if each.kind == "messages" and isinstance(body, dict):
            yield each.id, body


def expected(exchange: exchanges.Exchange) -> Json:
    """Return what an answer says, of what the recording tells."""
    expect = exchange.expect
    usage = expect["usage"]
    told = {
        "text": expect["text"],
        "reasoning": expect.get("reasoning_text", ""),
        "calls": [(c["id"], c["name"], c["arguments"]) for c in expect["tool_calls"]],
        "blocks": expect["content_blocks"],
        "native": expect["finish_reason"],
        "stop_sequence": expect.get("stop_sequence", ""),
        "model": expect["model"],
        "input": usage["input_total"],
        "output": usage["output_total"],
    }
    names = (
        ("cached", "cached"),
        ("cache_write", "cache_write"),
        ("reasoning", "reasoning_tokens"),
    )
    return told | {key: usage.get(name) for name, key in names}


_KINDS: dict[type[Part], str] = {Text: "text", Thinking: "thinking", ToolCall: "tool_use"}


def said(answer: Answer) -> Json:
    """Return the same of an answer in the neutral form."""
    (choice,) = answer.choices
    parts = choice.parts
    usage = answer.usage
    assert usage is not None
    return {
        "text": "".join(part.text for part in parts if isinstance(part, Text)),
        "reasoning": "".join(part.text for part in parts if isinstance(part, Thinking)),
        "calls": [
            (part.id, part.name, json.loads(part.arguments or "{}"))
            for part in parts
            if isinstance(part, ToolCall)
        ],
        "blocks": [_kind(part) for part in parts if not isinstance(part, Refusal)],
        "native": choice.native,
        "stop_sequence": choice.stop_sequence,
        "model": answer.model,
        "input": usage.input,
        "output": usage.output,
        "cached": usage.cached,
        "cache_write": usage.cache_write,
        "reasoning_tokens": usage.reasoning,
    }


def _kind(part: Part) -> str:
    if isinstance(part, Opaque):
        return part.kind
    if isinstance(part, Thinking) and part.redacted:
        return "redacted_thinking"
    return _KINDS[type(part)]
