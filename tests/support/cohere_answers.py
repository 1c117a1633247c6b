"""Writes answers as Cohere does, whole and as its event stream, apart from the gateway's own code."""

import json
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from gateway.core.answer import (
    Answer,
    Began,
    Cited,
    Counted,
    Delta,
    Ended,
    Event,
    Finished,
    PartBegan,
    PartEnded,
)
from gateway.core.message import Citation, Part, Text, Thinking, ToolCall
from gateway.core.usage import Usage

Json = dict[str, Any]
REASONS = {"stop": "COMPLETE", "length": "MAX_TOKENS", "tool_calls": "TOOL_CALL"}


def citation(rng: Random) -> Citation:
    """Return a citation of a document or of what a tool gave, as it is read."""
    start = rng.randrange(9)
    if rng.random() < 0.5:
        document = {"url": "https://example.com/", "title": "T", "snippet": "S"}
        source = {"type": "document", "id": "d1", "document": document}
    else:
        source = {"type": "tool", "id": "c1:0", "tool_output": {"content": "S"}}
    is_document = source["type"] == "document"
    value = {"start": start, "end": start + 3, "text": "abc", "sources": [source]}
    return Citation(
        "cohere_v2",
        value,
        url="https://example.com/" if is_document else "",
        title="T" if is_document else "",
        text="S",
        start=start,
        end=start + 3,
    )


def usage(counts: Usage | None) -> Json | None:
    if counts is None:
        return None
    tokens: Json = {"input_tokens": counts.input, "output_tokens": counts.output}
    if counts.reasoning is not None:
        tokens["reasoning_tokens"] = counts.reasoning
    said: Json = {"billed_units": {"input_tokens": 1, "output_tokens": 1}, "tokens": tokens}
    if counts.cached is not None:
        said["cached_tokens"] = counts.cached
    return said


def whole(answer: Answer, *, plan: bool) -> bytes:
    """Return the body of a whole answer; `plan`: text before calls is told as a plan."""
    (choice,) = answer.choices
    message: Json = {"role": "assistant"}
    content: list[Json] = []
    for part in choice.parts:
        match part:
            case Text(text=text) if plan and text:
                message["tool_plan"] = text
            case Text(text=text):
                content.append({"type": "text", "text": text})
            case Thinking(text=text):
                content.append({"type": "thinking", "thinking": text})
            case ToolCall():
                message.setdefault("tool_calls", []).append(_call(part, part.arguments))
            case _:
                raise AssertionError(part)
        if isinstance(part, Text) and part.citations:
            extra = {"type": "PLAN"} if plan and part.text else {"content_index": len(content) - 1}
            message["citations"] = [{**one.value, **extra} for one in part.citations]
    if content:
        message["content"] = content
    said: Json = {
        "id": answer.id,
        "message": message,
        "finish_reason": REASONS[choice.finish],
    }
    if answer.usage is not None:
        said["usage"] = usage(answer.usage)
    return json.dumps(said).encode()


def stream(rng: Random, events: Sequence[Event], *, plan: bool) -> bytes:
    """Return the bytes of a stream; its parts of text and thinking count apart from its calls."""
    frames = list(_frames(events, plan=plan))
    body = b"".join(
        b"event: %s\ndata: %s\n\n" % (str(frame["type"]).encode(), json.dumps(frame).encode())
        for frame in frames
    )
    return body + (b"data: [DONE]\n\n" if rng.random() < 0.9 else b"")


def _frames(events: Sequence[Event], *, plan: bool) -> Iterator[Json]:
    kinds: dict[int, Part] = {}
    places: dict[int, int] = {}
    counts: Usage | None = None
    reason = ""
    for event in events:
        match event:
            case Began(id=id_):
                message: Json = {"role": "assistant", "content": [], "tool_plan": ""}
                yield {"id": id_, "type": "message-start", "delta": {"message": message}}
            case PartBegan(_, at, part):
                same = [k for k, p in kinds.items() if isinstance(p, ToolCall)]
                is_call = isinstance(part, ToolCall)
                places[at] = len(same) if is_call else len(kinds) - len(same)
                kinds[at] = part
                yield from _begin(places[at], part, plan=plan)
            case Delta(_, at, text):
                yield _delta(places[at], kinds[at], text, plan=plan)
            case Cited(_, at, cited):
                message = {"citations": cited.value}
                yield {"type": "citation-start", "index": 0, "delta": {"message": message}}
                yield {"type": "citation-end", "index": 0}
            case PartEnded(_, at):
                yield from _end(places[at], kinds[at], plan=plan)
            case Counted(given):
                counts = given
            case Finished(_, finish):
                reason = REASONS[finish]
            case Ended():
                delta: Json = {"finish_reason": reason}
                if counts is not None:
                    delta["usage"] = usage(counts)
                yield {"type": "message-end", "delta": delta}
            case _:
                raise AssertionError(event)


def _call(call: ToolCall, arguments: str) -> Json:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def _begin(index: int, part: Part, *, plan: bool) -> Iterator[Json]:
    match part:
        case ToolCall(arguments=arguments):
            message: Json = {"tool_calls": _call(part, arguments)}
            yield {"type": "tool-call-start", "index": index, "delta": {"message": message}}
        case Text(text=text) if plan:
            yield {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": text}}}
        case Text(text=text) | Thinking(text=text):
            kind = "thinking" if isinstance(part, Thinking) else "text"
            message = {"content": {"type": kind, kind: text}}
            yield {"type": "content-start", "index": index, "delta": {"message": message}}
        case _:
            raise AssertionError(part)


def _delta(index: int, part: Part, text: str, *, plan: bool) -> Json:
    match part:
        case ToolCall():
            message: Json = {"tool_calls": {"function": {"arguments": text}}}
            return {"type": "tool-call-delta", "index": index, "delta": {"message": message}}
        case Text() if plan:
            return {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": text}}}
        case _:
            kind = "thinking" if isinstance(part, Thinking) else "text"
            message = {"content": {kind: text}}
            return {"type": "content-delta", "index": index, "delta": {"message": message}}


def _end(index: int, part: Part, *, plan: bool) -> Iterator[Json]:
    if isinstance(part, ToolCall):
        yield {"type": "tool-call-end", "index": index}
    elif not (plan and isinstance(part, Text)):
        yield {"type": "content-end", "index": index}
