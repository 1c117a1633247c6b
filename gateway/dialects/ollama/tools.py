"""Writes the tools of a prompt as Ollama takes them: it has no field for a choice among them."""

from typing import Any

from gateway.core.message import Prompt, ServerTool, Tool
from gateway.dialects.losses import Notes, refuse

_NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}


def offered(prompt: Prompt, notes: Notes) -> dict[str, Any]:
    """Return the fields that offer tools: none where none may be called, some where only these may."""
    tools = [_plain(tool) for tool in prompt.tools]
    choice = prompt.choice
    if choice is not None:
        if choice.mode == "none":
            tools = []
        elif choice.mode != "auto":
            notes.lost("field_unsupported", "tool_choice")
        if choice.names:
            tools = [tool for tool in tools if tool.name in choice.names]
            if len(tools) < len(prompt.tools):
                notes.lost("value_changed", "tool_choice")
    if prompt.parallel is False and tools:
        notes.lost("field_unsupported", "parallel_tool_calls")
    if any(tool.strict for tool in tools):
        notes.lost("field_unsupported", "tools.strict")
    return {"tools": [_tool(tool) for tool in tools]} if tools else {}


def _plain(tool: Tool | ServerTool) -> Tool:
    if isinstance(tool, ServerTool):
        raise refuse("tool_unsupported", tool.kind, param="tools")
    if tool.custom:
        raise refuse("tool_unsupported", f"custom tool {tool.name}", param="tools")
    return tool


def _tool(tool: Tool) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = tool.parameters or _NO_PARAMETERS
    return {"type": "function", "function": function}
