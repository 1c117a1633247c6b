"""What targets share that know functions and plain settings alone: their tools, and what they have no field for."""

from typing import Any

from gateway.core.message import Prompt, Sampling, ServerTool, Tool, ToolChoice
from gateway.dialects.losses import Notes, refuse

_NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}


def functions_of(prompt: Prompt) -> list[Tool]:
    """Return the tools of a prompt; raises InputError for one that is no function."""
    return [_plain(tool) for tool in prompt.tools]


def among(tools: list[Tool], choice: ToolChoice, prompt: Prompt, notes: Notes) -> list[Tool]:
    """Return the tools that may be called, where the target cannot be told a choice among some: those alone."""
    if not choice.names:
        return tools
    chosen = [tool for tool in tools if tool.name in choice.names]
    if len(chosen) < len(prompt.tools):
        notes.lost("value_changed", "tool_choice")
    return chosen


def write_function(tool: Tool) -> dict[str, Any]:
    """Return a tool as OpenAI's chat writes it."""
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = tool.parameters or _NO_PARAMETERS
    return {"type": "function", "function": function}


def note_unsaid(prompt: Prompt, notes: Notes) -> None:
    """Note the settings around a question, for which these targets have no field."""
    unsaid = {
        "user": prompt.user,
        "metadata": prompt.metadata,
        "service_tier": prompt.service_tier,
        "store": prompt.store,
        "prompt_cache_key": prompt.cache_key,
        "verbosity": prompt.verbosity,
    }
    for name, value in unsaid.items():
        if value:
            notes.lost("field_unsupported", name)


def require_one(asked: Sampling, notes: Notes) -> None:
    """Refuse several answers, and note a bias that cannot be said."""
    if asked.n is not None and asked.n > 1:
        raise refuse("choices_unsupported", "n", param="n")
    if asked.logit_bias:
        notes.lost("field_unsupported", "logit_bias")


def _plain(tool: Tool | ServerTool) -> Tool:
    if isinstance(tool, ServerTool):
        raise refuse("tool_unsupported", tool.kind, param="tools")
    if tool.custom:
        raise refuse("tool_unsupported", f"custom tool {tool.name}", param="tools")
    return tool
