"""The choice of tools: only where there are tools, and only of those that are there (B103)."""

from typing import Any

from gateway.core import codec
from gateway.core.message import Prompt, ServerTool, Tool
from gateway.dialects.losses import Notes, refuse


def fit_choice(prompt: Prompt, notes: Notes) -> Prompt:
    """Return the prompt without a choice of tools where it has none; a call that was asked for then is noted.

    Raises InputError `invalid_request` for the name of a tool that is not offered.
    """
    choice = prompt.choice
    if not prompt.tools:
        if choice is not None and choice.mode in {"required", "named"}:
            notes.lost("choice_empty", "tool_choice")
        changes: dict[str, Any] = {"choice": None, "parallel": None}
        return codec.replace(prompt, **changes)
    if choice is None or not choice.names:
        return prompt
    if any(isinstance(tool, ServerTool) for tool in prompt.tools):
        return prompt  # it may be named too, in its provider's own words
    offered = {tool.name for tool in prompt.tools if isinstance(tool, Tool)}
    for name in choice.names:
        if name not in offered:
            raise refuse("choice_unknown", f"tool_choice ({name[:64]})", param="tool_choice")
    return prompt
