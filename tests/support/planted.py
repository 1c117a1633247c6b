"""Requests with a member that no format knows, planted in every object that a request may hold (K34)."""

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, cast

from tests.support.schema_samples import DOCUMENT, PICTURE, samples

Json = dict[str, Any]
MEMBER, VALUE = "x_planted", "planted-here"
SCHEMAS = {
    "anthropic_messages": "anthropic.types.message_create_params.MessageCreateParamsNonStreaming",
    "openai_chat": "openai.types.chat.completion_create_params.CompletionCreateParamsNonStreaming",
    "openai_responses": "openai.types.responses.response_create_params.ResponseCreateParamsNonStreaming",
}
"""What the clients say of each format, by name: loading it takes longer than most files of tests."""
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

SOUND = {"data": "UklGRg==", "format": "wav"}


def _asked(*content: Json, **more: Any) -> Json:
    return {"messages": [{"role": "user", "content": [*content], **more}]}


def _said(**turn: Any) -> Json:
    """Return a request of chat with a turn of the model, and what must follow it."""
    calls: list[Json] = turn.get("tool_calls", [])
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "out"} for call in calls]
    said = {"role": "assistant", "content": "So", **turn}
    return {"messages": [ASKED, said, *(results or [ASKED])]}


_RUN: Json = {"id": "call_2", "type": "custom", "custom": {"name": "run", "input": "ls"}}
_SEAL = {"google": {"thought_signature": "c2ln"}}
CHAT: tuple[Json, ...] = (
    _asked({"type": "text", "text": "Look", "cache_control": MARK}, cache_control=MARK),
    _asked({"type": "image_url", "image_url": {"url": DATA, "detail": "low"}, "cache_control": MARK}),
    _asked({"type": "file", "file": {"filename": "a.pdf", "file_data": DOCUMENT}, "cache_control": MARK}),
    _asked({"type": "input_audio", "input_audio": SOUND}),
    _asked({"type": "video_url", "video_url": {"url": "https://a.example/a.mp4"}, "cache_control": MARK}),
    _asked({"type": "document_url", "document_url": {"url": "https://a.example/a.pdf"}, "cache_control": MARK}),
    _said(content=[{"type": "text", "text": "So"}, {"type": "refusal", "refusal": "No"}], cache_control=MARK),
    _said(reasoning_details=[{"type": "reasoning.text", "text": "hm", **_SEALED}]),
    _said(reasoning_details=[{"type": "reasoning.summary", "summary": "hm", "format": None}]),
    _said(reasoning_details=[{"type": "reasoning.odd", "odd": "what"}]),
    _said(annotations=[{"type": "url_citation", "url_citation": _FOUND}]),
    _said(annotations=[{"type": "odd", "odd": 1}]),
    _said(tool_calls=[{**_CALL, "extra_content": _SEAL, "cache_control": MARK}]),
    _said(tool_calls=[_RUN]),
    _said(thinking_blocks=[{"type": "thinking", "thinking": "hm", "signature": "c2ln"}]),
    _said(thinking_blocks=[{"type": "redacted_thinking", "data": "c2ln"}]),
    _said(thinking_blocks=[{"type": "odd", "odd": "what"}]),
    _said(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "So"}]),
    _said(audio={"id": "audio_1"}),
    {
        "messages": [
            ASKED,
            {"role": "assistant", "tool_calls": [_CALL]},
            {
                "role": "tool",
                "tool_call_id": "call_1",
                "content": [{"type": "text", "text": "out"}, {"type": "image_url", "image_url": {"url": DATA}}],
                "cache_control": MARK,
            },
        ]
    },
    {
        "messages": [
            ASKED,
            {"role": "assistant", "content": None, "function_call": {"name": "old", "arguments": "{}"}},
            {"role": "function", "name": "old", "content": "done"},
        ],
        "functions": [{"name": "old", "parameters": {}, "cache_control": MARK}],
        "function_call": {"name": "old"},
    },
    {
        "messages": [ASKED],
        "tools": [
            {
                "type": "function",
                "function": {"name": "find", "parameters": SCHEMA, "cache_control": MARK},
                "cache_control": MARK,
            }
        ],
    },
    {
        "messages": [ASKED],
        "tools": [{"type": "custom", "custom": {"name": "run", "format": {"type": "grammar", "grammar": _GRAMMAR}}}],
    },
    {"messages": [ASKED], "reasoning": {"effort": "high"}},
    {"messages": [ASKED], "thinking": {"type": "enabled", "budget_tokens": 2000}},
    {"messages": [ASKED], "stream": True, "stream_options": {"include_usage": True}},
    {"messages": [ASKED], "response_format": {"type": "json_schema", "json_schema": _FORM}},
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
_FIND = {"type": "function", "function": {"name": "find", "parameters": SCHEMA}}
RESPONSES: tuple[Json, ...] = (
    {
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "Look", "cache_control": MARK},
                    {"type": "input_image", "image_url": {"url": DATA}},
                ],
            }
        ]
    },
    {"input": [{"role": "user", "content": [{"type": "input_audio", "input_audio": SOUND}]}]},
    {"input": "Hi", "tools": [_FIND], "tool_choice": {"type": "function", "function": {"name": "find"}}},
    {
        "input": "Hi",
        "tool_choice": {"type": "custom", "custom": {"name": "run"}},
        "tools": [{"type": "custom", "name": "run"}],
    },
    {"input": "Hi", "text": {"format": {"type": "json_schema", "json_schema": _FORM}}},
    {"input": "Hi", "stream": True, "stream_options": {"include_obfuscation": False}},
    {
        "input": "Hi",
        "tools": [{"type": "custom", "name": "run", "format": {"type": "grammar", "grammar": _GRAMMAR}}],
    },
)  # fmt: skip
MORE = {"anthropic_messages": MESSAGES, "openai_chat": CHAT, "openai_responses": RESPONSES}


@dataclass(frozen=True, slots=True)
class Spot:
    """An object of a request: its path, the steps that lead to it, and the kinds of all objects on the way."""

    path: str
    steps: tuple[Any, ...]
    kinds: tuple[object, ...]

    def plant(self, request: Json) -> Json:
        """Return the request with the member planted there."""
        changed = copy.deepcopy(request)
        spot: Any = changed
        for step in self.steps:
            spot = spot[step]
        spot[MEMBER] = VALUE
        return changed


@cache
def cases(caller: str) -> tuple[tuple[Json, tuple[Spot, ...]], ...]:
    """Return requests of a caller's format that hold every object of its schema, each made whole, with their spots."""
    whole = _WHOLE[caller]
    requests = [
        whole(_filled(copy.deepcopy(each))) for each in (*samples(_schema(caller)), *MORE[caller])
    ]
    return tuple((request, tuple(_spots(request))) for request in requests)


def _schema(caller: str) -> object:
    module, _, name = SCHEMAS[caller].rpartition(".")
    return getattr(import_module(module), name)


def _spots(request: Json) -> Iterator[Spot]:
    for path, steps in _objects(request, "", ()):
        kinds: list[object] = []
        value: Any = request
        for step in steps:
            value = value[step]
            named = isinstance(step, str)
            kinds.append(step if named else (value.get("type"), value.get("role")))
        yield Spot(path, steps, tuple(kinds))


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


def _filled(value: Any) -> Any:
    """Return a value in which objects hold what must be there, though their types do not say so."""
    if isinstance(value, list):
        return [_filled(each) for each in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    found = {name: _filled(each) for name, each in cast("Json", value).items()}
    for kind, (name, held) in _MISSING.items():
        if found.get("type") == kind and not found.get(name):
            found[name] = held
    return found


_DATA = f"data:application/pdf;base64,{DOCUMENT}"
_MISSING: dict[str, tuple[str, Any]] = {
    "file": ("file", {"file_data": _DATA}),
    "function_call_output": ("call_id", "call_1"),
    "input_file": ("file_data", _DATA),
    "input_image": ("image_url", DATA),
}


def _whole_chat(request: Json) -> Json:
    """Put a turn of a sample into a history in which it may stand."""
    choice = request.get("tool_choice")
    if isinstance(choice, dict) and "allowed_tools" in choice:
        choice["allowed_tools"]["tools"] = [{"type": "function", "function": {"name": "find"}}]
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
    choice = request.get("tool_choice")
    if isinstance(choice, dict) and "tools" in choice:
        choice["tools"] = [{"type": "function", "name": "find"}]
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
