"""Reads a request to Ollama's `/api/chat` back into the neutral form, apart from the gateway's own code."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from gateway.core.message import (
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
    ToolResult,
)

Json = Mapping[str, Any]
ORIGIN = "ollama"
_READ = frozenset(
    {
        "model",
        "messages",
        "stream",
        "tools",
        "options",
        "format",
        "think",
        "logprobs",
        "top_logprobs",
    }
)
_OPTIONS = frozenset(
    {
        "temperature",
        "top_p",
        "top_k",
        "seed",
        "presence_penalty",
        "frequency_penalty",
        "num_predict",
        "stop",
    }
)


def read_prompt(body: Json) -> Prompt:
    """Return what a request asks for; fields without a neutral counterpart go into `extra`."""
    options: Json = body.get("options") or {}
    extra = {name: value for name, value in body.items() if name not in _READ and value}
    others = {name: value for name, value in options.items() if name not in _OPTIONS}
    if others:
        extra["options"] = others
    return Prompt(
        origin=ORIGIN,
        messages=tuple(_messages(body["messages"])),
        tools=tuple(_tool(tool["function"]) for tool in body.get("tools") or ()),
        max_tokens=options.get("num_predict"),
        sampling=Sampling(
            temperature=options.get("temperature"),
            top_p=options.get("top_p"),
            top_k=options.get("top_k"),
            seed=options.get("seed"),
            presence_penalty=options.get("presence_penalty"),
            frequency_penalty=options.get("frequency_penalty"),
            logprobs=body.get("logprobs"),
            top_logprobs=body.get("top_logprobs"),
            stop=tuple(options.get("stop") or ()),
        ),
        format=_format(body.get("format")),
        reasoning=_reasoning(body.get("think")),
        stream=body.get("stream", True),
        extra=extra,
    )


def _messages(items: Iterable[Json]) -> Iterable[Message]:
    results: list[Part] = []
    for item in items:
        if item["role"] == "tool":
            name, id_ = item.get("tool_name", ""), item.get("tool_call_id", "")
            results.append(ToolResult(id_, _said(item), name=name))
            continue
        if results:
            yield Message("tool", tuple(results))
            results = []
        yield Message(item["role"], _said(item))
    if results:
        yield Message("tool", tuple(results))


def _said(item: Json) -> tuple[Part, ...]:
    thoughts = [Thinking(item["thinking"])] if item.get("thinking") else []
    texts = [Text(item["content"])] if item.get("content") else []
    images = [Image(data=data) for data in item.get("images") or ()]
    calls = [
        ToolCall(
            call.get("id", ""),
            call["function"]["name"],
            json.dumps(call["function"]["arguments"], ensure_ascii=False, separators=(",", ":")),
        )
        for call in item.get("tool_calls") or ()
    ]
    return (*thoughts, *texts, *images, *calls) or (Text(""),)


def _tool(function: Json) -> Tool:
    return Tool(function["name"], function.get("description", ""), function["parameters"])


def _format(said: object) -> Format | None:
    if not said:
        return None
    return Format("json") if said == "json" else Format("schema", schema=said)  # pyright: ignore[reportArgumentType]


def _reasoning(said: bool | str | None) -> Reasoning | None:
    if said is None:
        return None
    return Reasoning(effort=said) if isinstance(said, str) else Reasoning(enabled=said)
