"""Writes the tools of a prompt, and which of them may be called, as Cohere takes them."""

from typing import Any

from gateway.core.message import Prompt
from gateway.dialects.losses import Notes
from gateway.dialects.plain import among, functions_of, write_function

_CHOICES = {"none": "NONE", "required": "REQUIRED", "named": "REQUIRED"}


def offered(prompt: Prompt, notes: Notes) -> dict[str, Any]:
    """Return the fields that offer tools.

    Cohere cannot be told a tool by its name: a choice among some tools is written by offering those alone.
    """
    body: dict[str, Any] = {}
    tools = functions_of(prompt)
    choice = prompt.choice
    if choice is not None:
        tools = among(tools, choice, prompt, notes)
    if tools:
        body["tools"] = [write_function(tool) for tool in tools]
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
