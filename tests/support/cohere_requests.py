"""Reads a request to Cohere's `/v2/chat` back into the neutral form, apart from the gateway's own code."""

from collections.abc import Iterable, Mapping
from typing import Any

from gateway.core.message import (
    File,
    Format,
    Image,
    Message,
    Part,
    Prompt,
    Reasoning,
    Sampling,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)

Json = Mapping[str, Any]
ORIGIN = "cohere_v2"
_READ = frozenset(
    {
        "model",
        "messages",
        "stream",
        "tools",
        "tool_choice",
        "strict_tools",
        "temperature",
        "p",
        "k",
        "seed",
        "frequency_penalty",
        "presence_penalty",
        "stop_sequences",
        "logprobs",
        "max_tokens",
        "response_format",
        "thinking",
    }
)
_MODES = {"NONE": "none", "REQUIRED": "required"}


def read_prompt(body: Json) -> Prompt:
    """Return what a request asks for; fields without a neutral counterpart go into `extra`."""
    choice = body.get("tool_choice")
    strict = True if body.get("strict_tools") else None
    return Prompt(
        origin=ORIGIN,
        messages=tuple(_messages(body["messages"])),
        tools=tuple(_tool(tool["function"], strict) for tool in body.get("tools") or ()),
        choice=ToolChoice(_MODES[choice]) if choice else None,  # pyright: ignore[reportArgumentType]
        max_tokens=body.get("max_tokens"),
        sampling=Sampling(
            temperature=body.get("temperature"),
            top_p=body.get("p"),
            top_k=body.get("k"),
            seed=body.get("seed"),
            presence_penalty=body.get("presence_penalty"),
            frequency_penalty=body.get("frequency_penalty"),
            logprobs=body.get("logprobs"),
            stop=tuple(body.get("stop_sequences") or ()),
        ),
        format=_format(body.get("response_format")),
        reasoning=_reasoning(body.get("thinking")),
        stream=bool(body.get("stream")),
        extra={name: value for name, value in body.items() if name not in _READ and value},
    )


def _messages(items: Iterable[Json]) -> Iterable[Message]:
    results: list[Part] = []
    for item in items:
        if item["role"] == "tool":
            results.append(ToolResult(item["tool_call_id"], _content(item["content"])))
            continue
        if results:
            yield Message("tool", tuple(results))
            results = []
        if item["role"] == "assistant":
            yield Message("assistant", _assistant(item))
        else:
            yield Message(item["role"], _content(item["content"]))
    if results:
        yield Message("tool", tuple(results))


def _content(content: str | list[Json]) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (Text(content),)
    return tuple(_part(part) for part in content)


def _part(part: Json) -> Part:
    match part["type"]:
        case "text":
            return Text(part["text"])
        case "thinking":
            return Thinking(part["thinking"])
        case "document":
            data = part["document"]["data"]
            return File(media_type="text/plain", text=data["text"], name=data.get("title", ""))
        case "image_url":
            shown = part["image_url"]
            url, detail = shown["url"], shown.get("detail", "")
            if url.startswith("data:"):
                kind, _, data = url.removeprefix("data:").partition(";base64,")
                return Image(media_type=kind, data=data, detail=detail)
            return Image(url=url, detail=detail)
        case kind:
            raise AssertionError(kind)


def _assistant(item: Json) -> tuple[Part, ...]:
    calls = [
        ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in item.get("tool_calls") or ()
    ]
    said = [
        part for part in _content(item.get("content") or []) if not (calls and part == Text(""))
    ]
    thoughts = [part for part in said if isinstance(part, Thinking)]
    others = [part for part in said if not isinstance(part, Thinking)]
    plan = [Text(item["tool_plan"])] if item.get("tool_plan") else []
    return (*thoughts, *plan, *others, *calls)


def _tool(function: Json, strict: bool | None) -> Tool:
    return Tool(
        function["name"], function.get("description", ""), function["parameters"], strict=strict
    )


def _format(said: Json | None) -> Format | None:
    if said is None:
        return None
    assert said["type"] == "json_object"
    schema = said.get("json_schema")
    return Format("json") if schema is None else Format("schema", schema=schema)


def _reasoning(said: Json | None) -> Reasoning | None:
    if said is None:
        return None
    return Reasoning(enabled=said["type"] == "enabled", budget=said.get("token_budget"))
