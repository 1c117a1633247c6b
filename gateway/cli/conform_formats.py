"""`gateway conform`: how callers of each format ask, and what they read of a whole answer."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from gateway.core import codec

Json = dict[str, Any]
PATHS = {"chat": "/chat/completions", "messages": "/messages", "responses": "/responses"}
"""The formats, and where they are spoken below `/v1`."""
FINISHES = {
    "chat": frozenset({"stop", "length", "tool_calls", "content_filter"}),
    "messages": frozenset(
        {"end_turn", "max_tokens", "tool_use", "stop_sequence", "refusal", "pause_turn"}
    ),
    "responses": frozenset({"completed", "incomplete"}),
}
"""The words for the end of an answer."""
LIMIT = 1024
_PLACE: Json = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
_ANSWER: Json = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "country": {"type": "string"}},
    "required": ["city", "country"],
    "additionalProperties": False,
}
TOOLS = ("weather", "clock")
FIELDS = ("city", "country")


@dataclass
class Call:
    """A call of a tool; `arguments` as JSON text."""

    id: str
    name: str
    arguments: str = ""


@dataclass
class Said:
    """What an answer says. `turn` is how it stands in the next request; `counts` are input, output and total."""

    text: str = ""
    calls: list[Call] = field(default_factory=list[Call])
    finish: str = ""
    counts: tuple[int | None, int | None, int | None] = (None, None, None)
    turn: list[Json] = field(default_factory=list[Json])


def ask(  # noqa: PLR0913  one field of a request each
    kind: str,
    model: str,
    text: str,
    *,
    stream: bool = False,
    tools: bool = False,
    must: bool = False,
    schema: bool = False,
    history: Sequence[Json] = (),
) -> Json:
    """Return a request; `must`: the first tool has to be called, `schema`: the answer is an object of FIELDS."""
    body: Json = {"model": model}
    turns = [*history] if history else [{"role": "user", "content": text}]
    body["input" if kind == "responses" else "messages"] = turns
    body["max_output_tokens" if kind == "responses" else "max_tokens"] = LIMIT
    if stream:
        body["stream"] = True
        if kind == "chat":
            body["stream_options"] = {"include_usage": True}
    if tools:
        body["tools"] = [_tool(kind, name) for name in TOOLS]
    if must:
        body["tool_choice"] = _choice(kind, TOOLS[0])
    if schema:
        body.update(_form(kind))
    return body


def _tool(kind: str, name: str) -> Json:
    told = {"name": name, "description": f"Tells the {name} of a city."}
    match kind:
        case "chat":
            return {"type": "function", "function": {**told, "parameters": _PLACE}}
        case "messages":
            return {**told, "input_schema": _PLACE}
        case _:
            return {"type": "function", **told, "parameters": _PLACE}


def _choice(kind: str, name: str) -> Json:
    match kind:
        case "chat":
            return {"type": "function", "function": {"name": name}}
        case "messages":
            return {"type": "tool", "name": name}
        case _:
            return {"type": "function", "name": name}


def _form(kind: str) -> Json:
    named = {"name": "place", "schema": _ANSWER, "strict": True}
    match kind:
        case "chat":
            return {"response_format": {"type": "json_schema", "json_schema": named}}
        case "messages":
            return {"output_config": {"format": {"type": "json_schema", "schema": _ANSWER}}}
        case _:
            return {"text": {"format": {"type": "json_schema", **named}}}


def with_results(kind: str, text: str, said: Said) -> list[Json]:
    """Return the history in which every call of an answer has its result."""
    result = "It is sunny."
    asked: Json = {"role": "user", "content": text}
    match kind:
        case "chat":
            results: list[Json] = [
                {"role": "tool", "tool_call_id": call.id, "content": result} for call in said.calls
            ]
        case "messages":
            blocks = [
                {"type": "tool_result", "tool_use_id": call.id, "content": result}
                for call in said.calls
            ]
            results = [{"role": "user", "content": blocks}]
        case _:
            results = [
                {"type": "function_call_output", "call_id": call.id, "output": result}
                for call in said.calls
            ]
    return [asked, *said.turn, *results]


def objects(value: object) -> Iterator[Json]:
    """Yield the objects of a list, none of what is no list."""
    if isinstance(value, list):
        for item in cast("list[object]", value):
            found = codec.as_object(item)
            if found is not None:
                yield found


def read(kind: str, answer: Mapping[str, Any]) -> Said:
    """Read a whole answer; what is not there stays empty."""
    match kind:
        case "chat":
            return _chat(answer)
        case "messages":
            return _messages(answer)
        case _:
            return _responses(answer)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(usage: Mapping[str, Any], name: str) -> int | None:
    value = usage.get(name)
    return value if isinstance(value, int) else None


def counts_of(kind: str, usage: object) -> tuple[int | None, int | None, int | None]:
    """Return input, output and total of a usage; Messages counts cache reads and writes apart."""
    told = codec.as_object(usage) or {}
    if kind == "chat":
        names = ("prompt_tokens", "completion_tokens", "total_tokens")
    else:
        names = ("input_tokens", "output_tokens", "total_tokens")
    first, second, third = (_count(told, name) for name in names)
    return first, second, third


def _chat(answer: Mapping[str, Any]) -> Said:
    choice = next(objects(answer.get("choices")), Json())
    message = codec.as_object(choice.get("message")) or {}
    calls: list[Call] = []
    for each in objects(message.get("tool_calls")):
        function = codec.as_object(each.get("function")) or {}
        calls.append(
            Call(
                _text(each.get("id")),
                _text(function.get("name")),
                _text(function.get("arguments")),
            )
        )
    return Said(
        _text(message.get("content")),
        calls,
        _text(choice.get("finish_reason")),
        counts_of("chat", answer.get("usage")),
        [{name: value for name, value in message.items() if value is not None}],
    )


def _messages(answer: Mapping[str, Any]) -> Said:
    blocks = list(objects(answer.get("content")))
    calls = [
        Call(
            _text(each.get("id")),
            _text(each.get("name")),
            codec.encode(each.get("input")).decode(),
        )
        for each in blocks
        if each.get("type") == "tool_use"
    ]
    text = "".join(_text(each.get("text")) for each in blocks if each.get("type") == "text")
    usage = counts_of("messages", answer.get("usage"))
    turn: list[Json] = [{"role": "assistant", "content": blocks}]
    return Said(text, calls, _text(answer.get("stop_reason")), usage, turn)


def _responses(answer: Mapping[str, Any]) -> Said:
    items = list(objects(answer.get("output")))
    calls = [
        Call(_text(each.get("call_id")), _text(each.get("name")), _text(each.get("arguments")))
        for each in items
        if each.get("type") == "function_call"
    ]
    parts = (part for each in items for part in objects(each.get("content")))
    text = "".join(_text(part.get("text")) for part in parts if part.get("type") == "output_text")
    usage = counts_of("responses", answer.get("usage"))
    return Said(text, calls, _text(answer.get("status")), usage, items)
