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
from tests.support.replayed_directly import arguments
from tests.support.same import has_failed

Json = dict[str, Any]


def recorded(*, stream: bool, good: bool = True) -> list[exchanges.Exchange]:
    """Return the recorded exchanges: streams or whole answers, successes or refusals."""
    return [
        each
        for each in exchanges.load()
        if each.kind == "messages"
        and (each.status < 400) == good
        and each.stream == (stream and good)
        and not (good and has_failed(each))
    ]


def body_of(exchange: exchanges.Exchange) -> bytes:
    """Return what came; what AWS framed as the server-sent events that it stands for."""
    response = exchange.raw["response"]
    if response["encoding"] == "json":
        return json.dumps(response["body"], ensure_ascii=False).encode()
    if response["encoding"] == "base64":
        frames = FrameBuffer(1 << 20).take(base64.b64decode(response["body"]))
        told = (json.loads(frame.payload) for frame in frames)
        inner = (base64.b64decode(each["bytes"]) for each in told if "bytes" in each)
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
    usage: Json = expect.get("usage") or {}
    told: Json = {
        "text": expect["text"],
        "reasoning": expect.get("reasoning_text", ""),
        "calls": [(c["id"], c["name"], c["arguments"]) for c in expect["tool_calls"]],
        "native": expect["finish_reason"],
    }
    beside = {"blocks": "content_blocks", "stop_sequence": "stop_sequence", "model": "model"}
    counts = {
        "input": "input_total",
        "output": "output_total",
        "cached": "cached",
        "cache_write": "cache_write",
        "reasoning_tokens": "reasoning",
    }
    told |= {key: expect[name] for key, name in beside.items() if expect.get(name)}
    return told | {key: usage[name] for key, name in counts.items() if usage.get(name) is not None}


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
            (part.id, part.name, arguments(part.arguments))
            for part in parts
            if isinstance(part, ToolCall)
        ],
        "blocks": [_kind(part) for part in parts if not _is_beside(part)],
        "native": choice.native,
        "stop_sequence": choice.stop_sequence,
        "model": answer.model,
        "input": usage.input,
        "output": usage.output,
        "cached": usage.cached,
        "cache_write": usage.cache_write,
        "reasoning_tokens": usage.reasoning,
    }


def _is_beside(part: Part) -> bool:
    """Tell whether a part is no block of its own: words of a refusal, a piece of an unknown kind."""
    return isinstance(part, Refusal) or (isinstance(part, Opaque) and part.kind.endswith("_delta"))


def _kind(part: Part) -> str:
    if isinstance(part, Opaque):
        return part.kind
    if isinstance(part, Thinking) and part.redacted:
        return "redacted_thinking"
    return _KINDS[type(part)]
