"""Requests with a member that no format knows, planted in every object that a request may hold (K34)."""

import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

from tests.support.schema_samples import DOCUMENT, PICTURE, samples

Json = dict[str, Any]
MEMBER, VALUE = "x_planted", "planted-here"
SCHEMAS: dict[str, Any] = {
    "anthropic_messages": MessageCreateParamsNonStreaming,
    "openai_chat": CompletionCreateParamsNonStreaming,
    "openai_responses": ResponseCreateParamsNonStreaming,
}
FREE = frozenset({"logit_bias"})
"""Names of objects whose members are no words of the format, and no others may be there."""
SCHEMA: Json = {"type": "object", "properties": {"q": {"type": "string"}}}
MARK = {"type": "ephemeral"}
ANY: Json = {}
ASKED: Json = {"role": "user", "content": "Hi"}
DATA = f"data:image/png;base64,{PICTURE}"
_FOUND = {"type": "url_citation", "url": "https://a.example", "start_index": 0, "end_index": 2}
_CALL: Json = {"id": "call_1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
_SEALED: Json = {"signature": "c2ln", "format": "anthropic", "index": 0}
_FORM = {"name": "form", "schema": SCHEMA, "strict": True, "description": "why"}
_GRAMMAR = {"syntax": "lark", "definition": "start: /a/"}

CHAT: tuple[Json, ...] = (
    {
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "Be kind", "cache_control": MARK}]},
            {
                "role": "user",
                "cache_control": MARK,
                "content": [
                    {"type": "text", "text": "Look"},
                    {"type": "image_url", "image_url": {"url": DATA, "detail": "low"}, "cache_control": MARK},
                    {"type": "file", "file": {"filename": "a.pdf", "file_data": DOCUMENT}},
                ],
            },
        ]
    },
    {"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}]}]},
    {"messages": [{"role": "user", "content": [{"type": "video_url", "video_url": {"url": "https://a.example/a.mp4"}}]}]},
    {"messages": [{"role": "user", "content": [{"type": "document_url", "document_url": {"url": "https://a.example/a.pdf"}}]}]},
    {
        "messages": [
            ASKED,
            {
                "role": "assistant",
                "content": [{"type": "text", "text": "So"}, {"type": "refusal", "refusal": "No"}],
                "reasoning_details": [
                    {"type": "reasoning.text", "text": "hm", **_SEALED},
                    {"type": "reasoning.summary", "summary": "hm", "format": None},
                    {"type": "reasoning.odd", "odd": "what"},
                ],
                "annotations": [{"type": "url_citation", "url_citation": _FOUND}, {"type": "odd", "odd": 1}],
                "tool_calls": [
                    {**_CALL, "extra_content": {"google": {"thought_signature": "c2ln"}}, "cache_control": MARK},
                    {"id": "call_2", "type": "custom", "custom": {"name": "run", "input": "ls"}},
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "out"}], "cache_control": MARK},
            {"role": "tool", "tool_call_id": "call_2", "content": [{"type": "image_url", "image_url": {"url": DATA}}]},
        ],
        "tools": [
            {"type": "function", "function": {"name": "find", "parameters": SCHEMA}, "cache_control": MARK},
            {"type": "custom", "custom": {"name": "run", "format": {"type": "grammar", "grammar": _GRAMMAR}}},
        ],
    },
    {
        "messages": [
            ASKED,
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "So"}],
                "thinking_blocks": [
                    {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                    {"type": "redacted_thinking", "data": "c2ln"},
                    {"type": "odd", "odd": "what"},
                ],
                "audio": {"id": "audio_1"},
            },
            ASKED,
        ]
    },
    {
        "messages": [
            ASKED,
            {"role": "assistant", "content": None, "function_call": {"name": "old", "arguments": "{}"}},
            {"role": "function", "name": "old", "content": "done"},
        ],
        "functions": [{"name": "old", "parameters": {}}],
        "function_call": {"name": "old"},
    },
    {
        "messages": [ASKED],
        "reasoning": {"effort": "high"},
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "stream": True,
        "stream_options": {"include_usage": True},
        "response_format": {"type": "json_schema", "json_schema": _FORM},
    },
)  # fmt: skip
"""Requests of chat completions with all that clients send besides what the SDK knows."""
MESSAGES: tuple[Json, ...] = (
    {
        "messages": [
            ASKED,
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                    {"type": "redacted_thinking", "data": "c2ln"},
                    {"type": "tool_use", "id": "call_1", "name": "find", "input": {}, "caller": {"type": "direct"}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "out"}]},
        ],
        "output_format": {"type": "json_schema", "schema": SCHEMA},
        "stream": True,
    },
)  # fmt: skip
RESPONSES: tuple[Json, ...] = (
    {
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "Look", "cache_control": MARK},
                    {"type": "input_image", "image_url": {"url": DATA}},
                    {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
                ],
            }
        ],
        "tool_choice": {"type": "function", "function": {"name": "find"}},
        "tools": [{"type": "function", "function": {"name": "find", "parameters": SCHEMA}}],
    },
    {
        "input": "Hi",
        "tool_choice": {"type": "custom", "custom": {"name": "run"}},
        "tools": [{"type": "custom", "name": "run"}],
    },
    {
        "input": "Hi",
        "text": {"format": {"type": "json_schema", "json_schema": _FORM}},
        "stream": True,
        "stream_options": {"include_obfuscation": False},
        "tools": [{"type": "custom", "name": "run", "format": {"type": "grammar", "grammar": _GRAMMAR}}],
    },
)  # fmt: skip
MORE = {"anthropic_messages": MESSAGES, "openai_chat": CHAT, "openai_responses": RESPONSES}


@dataclass(frozen=True, slots=True)
class Case:
    """A request, and the same with the member planted in each of its objects that no case before it has, by path."""

    request: Json
    planted: Mapping[str, Json]


@cache
def cases(caller: str) -> tuple[Case, ...]:
    """Return requests of a caller's format that hold every object of its schema, each made whole."""
    seen: set[object] = set()
    found: list[Case] = []
    for sample in (*samples(SCHEMAS[caller]), *MORE[caller]):
        request = _WHOLE[caller](copy.deepcopy(sample))
        new = {path: _with_member(request, steps) for path, steps in _new(request, seen)}
        if new:
            found.append(Case(request, new))
    return tuple(found)


def _new(request: Json, seen: set[object]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield the objects of a request whose kinds, one in the other, were not seen before."""
    for path, steps in _objects(request, "", ()):
        chain: list[object] = []
        value: Any = request
        for step in steps:
            value = value[step]
            chain.append(step if isinstance(step, str) else (value.get("type"), value.get("role")))
        key = tuple(chain)
        if key not in seen:
            seen.add(key)
            yield path, steps


def _with_member(request: Json, steps: tuple[Any, ...]) -> Json:
    changed = copy.deepcopy(request)
    spot: Any = changed
    for step in steps:
        spot = spot[step]
    spot[MEMBER] = VALUE
    return changed


def _objects(
    value: Any, path: str, steps: tuple[Any, ...]
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    if isinstance(value, list):
        for at, each in enumerate(cast("list[Any]", value)):
            yield from _objects(each, f"{path}[{at}]", (*steps, at))
    elif isinstance(value, dict) and not (steps and steps[-1] in FREE):
        yield path, steps
        for name, each in cast("Json", value).items():
            yield from _objects(each, f"{path}.{name}" if path else name, (*steps, name))


def names(warning: str, path: str) -> bool:
    """Tell whether a warning names the member of an object at a path, or that what holds it was left out."""
    if MEMBER in warning:
        return True
    what, _, words = warning.partition(": ")
    if not any(each in words for each in ("left out", "sent as text", "cannot be")):
        return False
    if what.startswith("the seal of ") and "extra_content" in path:
        return True
    if "cache mark" in what and path.endswith(("cache_control", "prompt_cache_breakpoint")):
        return True
    place, _, kind = what.partition(" ")
    place = (
        place.replace("system[", "messages[0].content[") if path[:11] == "messages[0]" else place
    )
    if place in {"", "input", "messages"}:
        return False
    if kind == "(thinking)" and re.search(r"\.(reasoning_details|thinking_blocks)\[", path):
        return path.startswith(place.partition(".")[0])
    place = place.replace(".content[0].annotations", ".annotations")
    found = re.escape(place).replace(r"\[\]", r"\[\d+\]")
    return re.match(rf"{found}(?![a-z_0-9])", path) is not None


def _whole_chat(request: Json) -> Json:
    """Put a turn of a sample into a history in which it may stand."""
    turns: list[Json] = request.setdefault("messages", [ASKED])
    role = turns[0]["role"] if len(turns) == 1 else ""
    if role == "assistant":
        results = [
            {"role": "tool", "tool_call_id": call["id"], "content": "out"}
            for call in turns[0].get("tool_calls", ())
        ]
        if "function_call" in turns[0]:
            results = [{"role": "function", "name": "find", "content": "out"}]
        request["messages"] = [ASKED, *turns, *(results or [ASKED])]
    elif role == "tool":
        call = {**_CALL, "id": turns[0]["tool_call_id"]}
        request["messages"] = [ASKED, {"role": "assistant", "tool_calls": [call]}, *turns]
    elif role == "function":
        call = {"name": turns[0]["name"], "arguments": "{}"}
        request["messages"] = [ASKED, {"role": "assistant", "function_call": call}, *turns]
    elif role in {"system", "developer"}:
        request["messages"] = [*turns, ASKED]
    find = {"type": "function", "function": {"name": "find", "parameters": SCHEMA}}
    request.setdefault("tools", [find])
    return request


_OF_MODEL = ("thinking", "redacted_thinking", "tool_use", "server_tool_use")


def _whole_messages(request: Json) -> Json:
    request["max_tokens"] = 9000
    request.setdefault("tools", [{"name": "find", "input_schema": SCHEMA}])
    if isinstance(request.get("thinking"), dict):
        request["thinking"]["budget_tokens"] = 2000
    turns: list[Json] = request.setdefault("messages", [ASKED])
    content = turns[0]["content"]
    if len(turns) > 1 or isinstance(content, str):
        return request
    for block in content:
        if "source" in block and isinstance(block["source"], dict):
            _fill(block["source"])
    first = content[0]["type"]
    if first == "tool_result":
        call: Json = {
            "type": "tool_use",
            "id": content[0]["tool_use_id"],
            "name": "find",
            "input": ANY,
        }
        request["messages"] = [ASKED, {"role": "assistant", "content": [call]}, *turns]
        for block in content[0].get("content", ()):
            if "source" in block and isinstance(block["source"], dict):
                _fill(block["source"])
    elif first in _OF_MODEL or first.endswith("_tool_result"):
        turns[0]["role"] = "assistant"
        follow: Json = {"role": "user", "content": "More"}
        if first == "tool_use":
            result = {"type": "tool_result", "tool_use_id": content[0]["id"], "content": "out"}
            follow = {"role": "user", "content": [result]}
        else:
            content.append({"type": "text", "text": "So"})
        request["messages"] = [ASKED, *turns, follow]
    return request


def _fill(source: Json) -> None:
    """Put bytes of its kind into a source."""
    if source["type"] == "base64":
        source["data"] = DOCUMENT if source["media_type"] == "application/pdf" else PICTURE


def _whole_responses(request: Json) -> Json:
    items = request.setdefault("input", "Hi")
    listed = cast("list[Json]", items) if isinstance(items, list) else []
    if len(listed) == 1:
        request["input"] = _around(listed[0])
    find = {"type": "function", "name": "find", "parameters": SCHEMA, "strict": False}
    request.setdefault("tools", [find])
    return request


def _around(item: Json) -> list[Json]:
    """Put an item into a history in which it may stand."""
    kind = item.get("type", "message")
    if kind in {"function_call", "custom_tool_call"}:
        return [
            ASKED,
            item,
            {"type": f"{kind}_output", "call_id": item["call_id"], "output": "out"},
        ]
    if kind == "local_shell_call":
        return [ASKED, item, {"type": f"{kind}_output", "id": item["call_id"], "output": "out"}]
    call: Json = {"call_id": item.get("call_id"), "name": "find"}
    match kind:
        case "function_call_output":
            return [ASKED, {"type": "function_call", "arguments": "{}", **call}, item]
        case "custom_tool_call_output":
            return [ASKED, {"type": "custom_tool_call", "input": "a", **call}, item]
        case "local_shell_call_output":
            action: Json = {"type": "exec", "command": ["ls"], "env": ANY}
            made: Json = {
                "type": "local_shell_call",
                "call_id": item["id"],
                "id": "x",
                "action": action,
            }
            return [ASKED, made, item]
        case "message":
            return [item, ASKED]
        case _:
            return [ASKED, item, ASKED]


_WHOLE = {
    "anthropic_messages": _whole_messages,
    "openai_chat": _whole_chat,
    "openai_responses": _whole_responses,
}
