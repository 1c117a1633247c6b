"""Tools, and which of them may be called."""

from typing import Any

from gateway.core.message import Prompt, ServerTool, Tool, ToolChoice
from gateway.dialects.gemini.schemas import small_form
from gateway.dialects.losses import Notes, refuse

_ORIGIN = "gemini"


def write_tools(prompt: Prompt, notes: Notes) -> list[dict[str, Any]]:
    """Return the tools: all functions as one, each tool of the provider's own as itself."""
    declared: list[dict[str, Any]] = []
    others: list[dict[str, Any]] = []
    for at, tool in enumerate(prompt.tools):
        if isinstance(tool, ServerTool):
            if tool.origin != _ORIGIN:
                raise refuse("tool_unsupported", f"tools[{at}] ({tool.kind})", param="tools")
            others.append(dict(tool.value))
        elif tool.custom:
            raise refuse("tool_unsupported", f"tools[{at}] ({tool.name})", param="tools")
        else:
            declared.append(_declared(tool, notes))
    return [{"functionDeclarations": declared}, *others] if declared else others


def _declared(tool: Tool, notes: Notes) -> dict[str, Any]:
    if tool.strict:
        notes.lost("field_unsupported", "strict")
    written: dict[str, Any] = {"name": tool.name, "description": tool.description}
    if tool.parameters:
        small = small_form(tool.parameters)
        if small is not None:
            written["parameters"] = small
        else:
            written["parametersJsonSchema"] = tool.parameters
    return written


def write_choice(choice: ToolChoice) -> dict[str, Any]:
    """Return how functions may be called; a list of names without need of one asks for validated calls."""
    match choice.mode:
        case "none":
            mode = "NONE"
        case "auto":
            mode = "VALIDATED" if choice.names else "AUTO"
        case "required" | "named":
            mode = "ANY"
    config: dict[str, Any] = {"mode": mode}
    if choice.names and choice.mode != "none":
        config["allowedFunctionNames"] = list(choice.names)
    return {"functionCallingConfig": config}
