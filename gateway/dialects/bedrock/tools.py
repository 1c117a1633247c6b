"""Writes tools and the choice among them as the `toolConfig` of Converse."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gateway.core.message import Prompt, ServerTool, Tool, ToolCall, ToolChoice, ToolResult
from gateway.dialects.bedrock.answers import NAME
from gateway.dialects.bedrock.content import Content
from gateway.dialects.bedrock.models import Family
from gateway.dialects.losses import Notes, refuse
from gateway.dialects.messages.schema_out import COMBINED, joined

_NO_SCHEMA: Mapping[str, Any] = {"type": "object", "properties": {}}


def write_tools(prompt: Prompt, family: Family, content: Content, notes: Notes) -> dict[str, Any]:
    """Return the tool configuration, empty for none.

    A choice of `none` leaves the tools out. While the history holds calls they must stay, and the model may call.
    """
    tools: Sequence[Tool | ServerTool] = prompt.tools
    choice = prompt.choice or ToolChoice()
    called = _called(prompt)
    if choice.mode == "none" and not called:
        return {}
    if choice.names and choice.mode != "named":
        tools = [tool for tool in tools if not isinstance(tool, Tool) or tool.name in choice.names]
    specs = [spec for tool in tools for spec in _spec(tool, family, content, notes)]
    if not specs:
        # Calls in a history without tools are refused; a tool that was called is as good as it is known.
        specs = [
            {"toolSpec": {"name": name, "inputSchema": {"json": _NO_SCHEMA}}} for name in called
        ]
    if not specs:
        return {}
    config: dict[str, Any] = {"tools": specs}
    if choice.mode == "none":
        notes.lost("value_changed", "tool_choice")
        return config
    forced = _forced(choice)
    if forced and _says_one(prompt, family):
        return config  # the choice stands beside what says so; said twice it is refused
    if forced and family.takes_choice:
        config["toolChoice"] = forced
    elif forced:
        notes.lost("value_changed", "tool_choice")
    return config


def one_call_at_a_time(prompt: Prompt, family: Family, notes: Notes) -> dict[str, Any]:
    """Return Claude's own field for one call at a time; Converse has none of its own (B103)."""
    if prompt.parallel is not False or not prompt.tools:
        return {}
    if prompt.choice is not None and prompt.choice.mode == "none":
        return {}
    if not _says_one(prompt, family):
        notes.lost("field_unsupported", "parallel_tool_calls")
        return {}
    choice = prompt.choice or ToolChoice()
    named: dict[str, Any] = {"type": {"required": "any", "named": "tool"}.get(choice.mode, "auto")}
    if choice.mode == "named":
        named["name"] = choice.names[0]
    return {"tool_choice": {**named, "disable_parallel_tool_use": True}}


def _says_one(prompt: Prompt, family: Family) -> bool:
    """Tell whether one call at a time is asked for, and a field of the model's own says so."""
    return prompt.parallel is False and family.is_claude and family.version >= (4, 5)


def _forced(choice: ToolChoice) -> dict[str, Any]:
    if choice.mode == "required":
        return {"any": {}}
    if choice.mode == "named":
        return {"tool": {"name": choice.names[0]}}
    return {}


def _called(prompt: Prompt) -> list[str]:
    """Return the names of tools that the history holds calls or results of, each once."""
    names = dict.fromkeys(
        part.name or "tool"
        for message in prompt.messages
        for part in message.parts
        if isinstance(part, ToolCall | ToolResult) and (part.name or isinstance(part, ToolCall))
    )
    return list(names)


def _spec(
    tool: Tool | ServerTool, family: Family, content: Content, notes: Notes
) -> Iterable[dict[str, Any]]:
    if isinstance(tool, ServerTool):
        if tool.origin != NAME:
            raise refuse("tool_unsupported", f"tool of type {tool.kind}", param="tools")
        yield dict(tool.value)
        return
    if tool.custom:
        raise refuse("tool_unsupported", f"the tool {tool.name}", param="tools")
    schema = tool.parameters or _NO_SCHEMA
    if family.is_claude and not COMBINED.isdisjoint(schema):
        schema = joined(schema)
        notes.lost("schema_changed", f"tools ({tool.name})")
    if "type" not in schema:
        schema = {"type": "object", **schema}
    spec: dict[str, Any] = {"name": tool.name}
    if tool.description.strip():
        spec["description"] = tool.description
    spec["inputSchema"] = {"json": schema}
    if tool.strict and family.takes_strict:
        spec["strict"] = True
    elif tool.strict:
        notes.lost("field_unsupported", "strict of a tool")
    yield {"toolSpec": spec}
    yield from content.marks(tool.cache)
