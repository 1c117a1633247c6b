"""The grammar of a chat or completions stream (K02): what every client may rely on, as a list of breaches."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
FINISHES = frozenset({"stop", "length", "tool_calls", "content_filter", "function_call"})


@dataclass(slots=True)
class _Choice:
    started: bool = False
    finish: str | None = None
    calls: dict[int, str] = field(default_factory=dict[int, str])


@dataclass(slots=True)
class _Stream:
    endpoint: str
    asks_usage: bool
    count: int
    relayed: bool
    choices: dict[int, _Choice] = field(default_factory=dict[int, _Choice])
    ids: set[str] = field(default_factory=set[str])
    usage_chunks: int = 0
    done: bool = False


def breaches(
    body: bytes,
    *,
    asks_usage: bool,
    endpoint: str = "chat",
    count: int = 1,
    relayed: bool = False,
) -> list[str]:
    """Return where a complete stream breaks the grammar; `count` choices were asked for.

    `relayed`: it was made elsewhere; habits of providers that clients bear are let pass (a role in every delta, a
    finish reason told twice or in a word of their own, counts beside it, calls that come whole, frames of filters).
    """
    stream = _Stream(endpoint, asks_usage, count, relayed)
    found = list(_read(body, stream))
    if not stream.done:
        found.append("no [DONE]")
    for index in range(count):
        choice = stream.choices.get(index)
        if choice is None or choice.finish is None:
            found.append(f"choice {index} has no finish reason")
    if asks_usage and not relayed and stream.usage_chunks != 1:
        found.append(f"{stream.usage_chunks} usage chunks")
    if len(stream.ids) > 1 and not relayed:
        found.append("the id changes")
    return found


def _read(body: bytes, stream: _Stream) -> Iterator[str]:
    text = body.decode()
    if stream.relayed:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    elif not text.endswith("\n\n"):
        yield "the last event has no blank line"
    for event in text.split("\n\n"):
        lines = [line for line in event.split("\n") if line and not line.startswith(":")]
        if stream.relayed:
            lines = _one_data_line(lines)
        if not lines:
            continue
        if len(lines) != 1 or not lines[0].startswith("data: "):
            yield f"not one data line: {lines}"
            continue
        data = lines[0].removeprefix("data: ")
        if stream.done:
            yield "an event after [DONE]"
        elif data == "[DONE]":
            stream.done = True
        else:
            yield from _read_chunk(json.loads(data), stream)


def _one_data_line(lines: list[str]) -> list[str]:
    """Write an event as its one data line: names, ids, several lines and blanks are the provider's own."""
    data = [line.removeprefix("data:") for line in lines if line.startswith("data:")]
    return ["data: " + "\n".join(line.removeprefix(" ") for line in data)] if data else []


def _read_chunk(chunk: Json, stream: _Stream) -> Iterator[str]:
    kind = "chat.completion.chunk" if stream.endpoint == "chat" else "text_completion"
    if chunk.get("object") != kind and not stream.relayed:
        yield f"object is {chunk.get('object')}"
    if chunk.get("error"):
        yield "an error chunk"
    stream.ids.add(str(chunk.get("id")))
    choices: list[Json] = chunk.get("choices", [])
    usage = chunk.get("usage")
    if not choices:
        yield from _read_alone(chunk, stream)
    elif stream.usage_chunks:
        yield "a choice after the usage chunk"
    elif usage is not None and not stream.relayed:
        yield "usage beside a choice"
    for choice in choices:
        yield from _read_choice(choice, stream)


def _read_alone(chunk: Json, stream: _Stream) -> Iterator[str]:
    """Judge a chunk without choices: the usage chunk, or what Azure says about the prompt."""
    if chunk.get("prompt_filter_results") is not None and chunk.get("usage") is None:
        return
    stream.usage_chunks += 1
    if not isinstance(chunk.get("usage"), dict):
        yield "no choices and no usage"
    if not stream.asks_usage:
        yield "a usage chunk that nobody asked for"
    if stream.usage_chunks > 1:
        yield "two usage chunks"
    if any(choice.finish is None for choice in stream.choices.values()):
        yield "usage before the end"


def _read_choice(choice: Json, stream: _Stream) -> Iterator[str]:
    index = choice.get("index")
    if not isinstance(index, int) or not 0 <= index < stream.count:
        yield f"index {index} of {stream.count}"
        return
    state = stream.choices.setdefault(index, _Choice())
    finish = choice.get("finish_reason")
    if state.finish is not None:
        if not (stream.relayed and finish == state.finish):
            yield f"choice {index} goes on after its end"
        return
    if stream.endpoint == "chat":
        yield from _read_delta(choice.get("delta"), index, state, stream.relayed)
        if stream.relayed and "content_filter_offsets" in choice:
            return
    elif not isinstance(choice.get("text"), str):
        yield f"choice {index} has no text"
    state.started = True
    if finish is not None:
        state.finish = finish
        if finish not in FINISHES and not stream.relayed:
            yield f"finish reason {finish}"
        if finish != "length" and (finish == "tool_calls") != bool(state.calls):
            yield f"finish reason {finish} with {len(state.calls)} calls"


def _read_delta(fields: Json | None, index: int, state: _Choice, relayed: bool) -> Iterator[str]:
    if fields is None and relayed:
        return
    if fields is None:
        yield f"choice {index} has no delta"
        return
    role = fields.get("role")
    if not state.started and role != "assistant":
        yield f"choice {index} begins without its role"
    if state.started and role is not None and not relayed:
        yield f"choice {index} repeats its role"
    calls: list[Json] = fields.get("tool_calls") or []
    for call in calls:
        if relayed:
            state.calls.setdefault(call.get("index") or 0, str(call.get("id")))
        else:
            yield from _read_call(call, state)


def _read_call(call: Json, state: _Choice) -> Iterator[str]:
    place = call.get("index")
    kind = call.get("type", "function")
    function: Json = call.get("custom" if kind == "custom" else "function") or {}
    if not isinstance(place, int):
        yield "a call without index"
    elif place not in state.calls:
        if place != len(state.calls):
            yield f"call {place} after {len(state.calls)}"
        if not call.get("id") or "type" not in call or not function.get("name"):
            yield f"call {place} opens without id, type and name"
        state.calls[place] = str(call.get("id"))
    elif call.get("id") not in {None, "", state.calls[place]}:
        yield f"call {place} changes its id"
