"""Reads a request to Bedrock's Converse back into the neutral form, apart from the gateway's own code."""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.core.message import (
    Audio,
    CacheMark,
    File,
    Format,
    Image,
    Message,
    Opaque,
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
ORIGIN = "bedrock_converse"
MEDIA_TYPES = {
    "pdf": "application/pdf",
    "txt": "text/plain",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "mp4": "video/mp4",
}
_READ = frozenset(
    {
        "messages",
        "system",
        "inferenceConfig",
        "toolConfig",
        "outputConfig",
        "serviceTier",
        "requestMetadata",
    }
)
_MODEL_READ = frozenset({"thinking", "top_k", "tool_choice"})


def read_prompt(body: Json) -> Prompt:
    """Return what a request asks for; fields without a neutral counterpart go into `extra`."""
    inference = _object(body, "inferenceConfig")
    model_fields = _object(body, "additionalModelRequestFields")
    tools = _object(body, "toolConfig")
    output = _object(body, "outputConfig")
    extra = {name: value for name, value in body.items() if name not in _READ}
    if model_fields:
        extra["additionalModelRequestFields"] = {
            name: value for name, value in model_fields.items() if name not in _MODEL_READ
        }
    chosen = _object(model_fields, "tool_choice")
    return Prompt(
        origin=ORIGIN,
        messages=(*_system(body.get("system") or []), *_messages(body["messages"])),
        tools=_tools(tools.get("tools") or []),
        choice=_choice(tools.get("toolChoice") or _own_choice(chosen)),
        parallel=False if chosen.get("disable_parallel_tool_use") else None,
        max_tokens=inference.get("maxTokens"),
        sampling=Sampling(
            temperature=inference.get("temperature"),
            top_p=inference.get("topP"),
            top_k=model_fields.get("top_k", _object(model_fields, "inferenceConfig").get("topK")),
            stop=tuple(inference.get("stopSequences") or ()),
        ),
        format=_format(output.get("textFormat")),
        reasoning=_reasoning(model_fields.get("thinking"), output.get("effort") or ""),
        metadata=body.get("requestMetadata"),
        service_tier=_object(body, "serviceTier").get("type", ""),
        extra={name: value for name, value in extra.items() if value},
    )


def _own_choice(chosen: Json) -> Json | None:
    """Return a choice in Claude's own words as Converse says it; auto is what holds without a word."""
    match chosen.get("type"):
        case "any":
            return {"any": {}}
        case "tool":
            return {"tool": {"name": chosen["name"]}}
        case _:
            return None


def _object(fields: Json, name: str) -> Json:
    value: Json | None = fields.get(name)
    return value or {}


def _system(blocks: Sequence[Json]) -> list[Message]:
    return [Message("system", _parts(blocks))] if blocks else []


def _messages(turns: Sequence[Json]) -> list[Message]:
    found: list[Message] = []
    for turn in turns:
        parts = _parts(turn["content"])
        results = tuple(part for part in parts if isinstance(part, ToolResult))
        rest = tuple(part for part in parts if not isinstance(part, ToolResult))
        if results:
            found.append(Message("tool", results))
        if rest:
            found.append(Message(turn["role"], rest))
    return found


def _parts(blocks: Sequence[Json]) -> tuple[Part, ...]:
    parts: list[Any] = []
    for block in blocks:
        ((kind, value),) = block.items()
        if kind == "cachePoint":
            parts[-1] = _marked(parts[-1], CacheMark(value.get("ttl", "")))
        else:
            parts.append(_part(kind, value))
    return tuple(parts)


def _marked(part: Any, mark: CacheMark) -> Any:
    fields = {name: getattr(part, name) for name in part.__struct_fields__}
    return type(part)(**{**fields, "cache": mark})


def _part(kind: str, value: Any) -> Part:
    match kind:
        case "text":
            return Text(value)
        case "image":
            return Image(media_type=f"image/{value['format']}", **_source(value["source"]))
        case "document" | "video":
            media_type = MEDIA_TYPES[value["format"]]
            return File(
                media_type=media_type, name=value.get("name", ""), **_source(value["source"])
            )
        case "audio":
            return Audio(data=value["source"]["bytes"], format=value["format"])
        case "toolUse":
            arguments = json.dumps(value["input"], separators=(",", ":"), ensure_ascii=False)
            return ToolCall(value["toolUseId"], value["name"], arguments)
        case "toolResult":
            return ToolResult(
                value["toolUseId"],
                _parts(value["content"]),
                is_error=value.get("status") == "error",
            )
        case "reasoningContent":
            return _thinking(value)
        case _:
            return Opaque(ORIGIN, kind, {kind: value})


def _thinking(value: Json) -> Thinking:
    if "redactedContent" in value:
        data = base64.b64decode(value["redactedContent"]).decode()
        return Thinking(redacted=data, maker="anthropic")
    said = value["reasoningText"]
    signature = said.get("signature", "")
    return Thinking(said["text"], signature, maker="anthropic" if signature else "")


def _source(source: Json) -> dict[str, Any]:
    if "s3Location" in source:
        return {"url": source["s3Location"]["uri"]}
    return {"data": source["bytes"]}


def _tools(specs: Sequence[Json]) -> tuple[Tool, ...]:
    tools: list[Tool] = []
    for spec in specs:
        if "cachePoint" in spec:
            tools[-1] = _marked(tools[-1], CacheMark(spec["cachePoint"].get("ttl", "")))
            continue
        tool = spec["toolSpec"]
        tools.append(
            Tool(
                tool["name"],
                tool.get("description", ""),
                tool["inputSchema"]["json"],
                strict=tool.get("strict"),
            )
        )
    return tuple(tools)


def _choice(choice: Json | None) -> ToolChoice | None:
    if not choice:
        return None
    if "tool" in choice:
        return ToolChoice("named", (choice["tool"]["name"],))
    return ToolChoice("required" if "any" in choice else "auto")


def _format(form: Json | None) -> Format | None:
    if form is None:
        return None
    schema = form["structure"]["jsonSchema"]
    return Format(
        "schema",
        schema.get("name", ""),
        json.loads(schema["schema"]),
        description=schema.get("description", ""),
    )


def _reasoning(thinking: Json | None, effort: str) -> Reasoning | None:
    if thinking is None:
        return None
    if thinking["type"] == "disabled":
        return Reasoning(enabled=False)
    return Reasoning(enabled=True, effort=effort, budget=thinking.get("budget_tokens"))
