"""Writes answers as Ollama does, whole and as JSON lines, apart from the gateway's own code."""

import json
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from gateway.core import codec
from gateway.core.answer import (
    Answer,
    Began,
    Counted,
    Delta,
    Ended,
    Event,
    Finished,
    PartBegan,
    PartEnded,
    Weighed,
)
from gateway.core.message import Part, Text, Thinking, ToolCall
from gateway.core.usage import Usage

Json = dict[str, Any]
REASONS = {"stop": "stop", "length": "length", "tool_calls": "stop"}
CREATED = "2025-06-15T15:06:40.123456789Z"
CREATED_S = 1_750_000_000


def whole(answer: Answer) -> bytes:
    """Return the body of a whole answer."""
    (choice,) = answer.choices
    message: Json = {"role": "assistant", "content": ""}
    for part in choice.parts:
        match part:
            case Text(text=text):
                message["content"] += text
            case Thinking(text=text):
                message["thinking"] = text
            case ToolCall():
                message.setdefault("tool_calls", []).append(_call(part, part.arguments))
            case _:
                raise AssertionError(part)
    line: Json = {"model": answer.model, "created_at": CREATED, "message": message}
    if choice.logprobs:
        line["logprobs"] = choice.logprobs
    return json.dumps(line | _end(REASONS[choice.finish], answer.usage)).encode()


def _call(call: ToolCall, arguments: str) -> Json:
    return {
        "id": call.id,
        "function": {"index": 0, "name": call.name, "arguments": json.loads(arguments)},
    }


def _end(reason: str, usage: Usage | None) -> Json:
    end: Json = {"done": True, "done_reason": reason, "total_duration": 1}
    if usage is not None:
        end |= {"prompt_eval_count": usage.input, "eval_count": usage.output}
    return end


def stream(rng: Random, events: Sequence[Event]) -> bytes:
    """Return the bytes of a stream, one line each; the last may lack its line end."""
    lines = [json.dumps(line, ensure_ascii=rng.random() < 0.5) for line in _lines(events)]
    return "\n".join([*lines, ""] if rng.random() < 0.7 else lines).encode()


def _lines(events: Sequence[Event]) -> Iterator[Json]:
    """Yield what is said, and the end with the last counts."""
    head: Json = {"created_at": CREATED, "done": False}
    parts: dict[int, Part] = {}
    counts: Usage | None = None
    reason = ""
    for event in events:
        match event:
            case Began(model=model):
                head["model"] = model
            case PartBegan() | Delta() | PartEnded():
                yield from (head | {"message": said} for said in _told(event, parts))
            case Weighed(_, tokens):
                yield head | {"message": _EMPTY, "logprobs": tokens}
            case Counted(usage=given):
                counts = given
            case Finished(finish=finish):
                reason = REASONS[finish]
            case _:
                assert isinstance(event, Ended)
                yield head | {"message": _EMPTY} | _end(reason, counts)


_EMPTY: Json = {"role": "assistant", "content": ""}


def _told(event: PartBegan | Delta | PartEnded, parts: dict[int, Part]) -> Iterator[Json]:
    """Yield the messages that tell an event of a part; a call is told when it is whole."""
    if isinstance(event, PartBegan):
        parts[event.at] = event.part
        if isinstance(event.part, Text | Thinking):
            yield _said(event.part, event.part.text)
        return
    part = parts[event.at]
    if not isinstance(part, ToolCall):
        if isinstance(event, Delta):
            yield _said(part, event.text)
    elif isinstance(event, Delta):
        parts[event.at] = codec.replace(part, arguments=part.arguments + event.text)
    else:
        yield _EMPTY | {"tool_calls": [_call(part, part.arguments)]}


def _said(part: Part, text: str) -> Json:
    if isinstance(part, Thinking):
        return {"role": "assistant", "content": "", "thinking": text}
    return {"role": "assistant", "content": text}
