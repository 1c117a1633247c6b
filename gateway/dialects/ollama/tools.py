"""Writes the tools of a prompt as Ollama takes them: it has no field for a choice among them."""

from typing import Any

from gateway.core.message import Prompt
from gateway.dialects.losses import Notes
from gateway.dialects.plain import among, functions_of, write_function


def offered(prompt: Prompt, notes: Notes) -> dict[str, Any]:
    """Return the fields that offer tools: none where none may be called, some where only these may."""
    tools = functions_of(prompt)
    choice = prompt.choice
    if choice is not None:
        if choice.mode == "none":
            tools = []
        elif choice.mode != "auto":
            notes.lost("field_unsupported", "tool_choice")
        tools = among(tools, choice, prompt, notes)
    if prompt.parallel is False and tools:
        notes.lost("field_unsupported", "parallel_tool_calls")
    if any(tool.strict for tool in tools):
        notes.lost("field_unsupported", "tools.strict")
    return {"tools": [write_function(tool) for tool in tools]} if tools else {}
