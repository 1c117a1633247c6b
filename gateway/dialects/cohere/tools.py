"""Writes the tools of a prompt, and which of them may be called, as Cohere takes them."""

from typing import Any

from gateway.core.message import Prompt, ServerTool, Tool
from gateway.dialects.losses import Notes, refuse

_NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}
_CHOICES = {"none": "NONE", "required": "REQUIRED", "named": "REQUIRED"}


def offered(prompt: Prompt, notes: Notes) -> dict[str, Any]:
    """Return the fields that offer tools.

    Cohere cannot be told a tool by its name: a choice among some tools is written by offering those alone.
    """
    body: dict[str, Any] = {}
    tools = [_plain(tool) for tool in prompt.tools]
    choice = prompt.choice
    if choice is not None and choice.names:
        tools = [tool for tool in tools if tool.name in choice.names]
        if len(tools) < len(prompt.tools):
            notes.lost("value_changed", "tool_choice")
    if tools:
        body["tools"] = [_tool(tool) for tool in tools]
        strict = [tool.strict for tool in tools]
        if all(strict):
            body["strict_tools"] = True
        elif any(strict):
            notes.lost("field_unsupported", "tools.strict")
    if choice is not None and choice.mode in _CHOICES:
        body["tool_choice"] = _CHOICES[choice.mode]
    if prompt.parallel is False:
        notes.lost("field_unsupported", "parallel_tool_calls")
    return body


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
