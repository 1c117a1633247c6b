"""The settings of a prompt as this format writes them, in a request and again in its response."""

from gateway.core.codec import as_object
from gateway.core.message import Bag, Format, Prompt, Reasoning, ServerTool, Tool, ToolChoice
from gateway.dialects.chat.efforts import effort_of
from gateway.dialects.losses import Notes
from gateway.dialects.responses.shapes import Json
from gateway.dialects.responses.states import ORIGIN
from gateway.dialects.within import put_back


def write_tools(prompt: Prompt, notes: Notes) -> list[Json]:
    """Return the tools that this format knows: functions, custom ones, and its own provider's."""
    own = prompt.origin == ORIGIN
    return [
        _write_tool(tool, notes, own=own) if isinstance(tool, Tool) else dict(tool.value)
        for tool in prompt.tools
        if isinstance(tool, Tool) or tool.origin == ORIGIN
    ]


def _write_tool(tool: Tool, notes: Notes, *, own: bool) -> Json:
    """Return one tool; `own`: the caller speaks this format, where a function that says nothing is strict."""
    written: Json = {"type": "custom" if tool.custom else "function", "name": tool.name}
    if tool.description:
        written["description"] = tool.description
    if tool.custom:
        if tool.format is not None:
            written["format"] = _flat(tool.format)
        return put_back(written, tool.extra, notes) if own else written
    if tool.parameters is not None or not own:
        empty: Json = {"type": "object", "properties": {}}
        written["parameters"] = empty if tool.parameters is None else dict(tool.parameters)
    if tool.strict is not None or not own:
        written["strict"] = tool.strict or False
    return put_back(written, tool.extra, notes) if own else written


def _flat(form: Bag) -> Json:
    """Return the format of a custom tool; chat completions put a grammar into an object of its own."""
    grammar = as_object(form.get("grammar"))
    return dict(form) if grammar is None else {"type": "grammar", **grammar}


def write_choice(choice: ToolChoice, prompt: Prompt) -> str | Json:
    """Return a choice among the tools of a prompt."""
    if not choice.names:
        return "required" if choice.mode == "named" else choice.mode
    if choice.mode == "none":
        return "none"
    named = [_reference(name, prompt, custom=choice.custom) for name in choice.names]
    if choice.mode == "named":
        return named[0]
    return {"type": "allowed_tools", "mode": choice.mode, "tools": named}


def _reference(name: str, prompt: Prompt, *, custom: bool) -> Json:
    for tool in prompt.tools:
        if isinstance(tool, Tool) and tool.name == name:
            return {"type": "custom" if tool.custom else "function", "name": name}
        if isinstance(tool, ServerTool) and tool.kind == name:
            return {"type": name}
    return {"type": "custom" if custom else "function", "name": name}


def write_text(form: Format | None, verbosity: str) -> Json:
    """Return the `text` field: the answer's form and how much it says; {} where nothing was asked."""
    written: Json = {}
    if form is not None:
        written["format"] = _write_format(form)
    if verbosity:
        written["verbosity"] = verbosity
    return written


def _write_format(form: Format) -> Json:
    if form.kind == "text":
        return {"type": "text"}
    if form.kind == "json":
        return {"type": "json_object"}
    written: Json = {"type": "json_schema", "name": form.name or "response"}
    if form.description:
        written["description"] = form.description
    written["schema"] = dict(form.schema or {})
    if form.strict is not None:
        written["strict"] = form.strict
    return written


def write_reasoning(reasoning: Reasoning | None, *, own: bool) -> Json:
    """Return the `reasoning` field, {} where nothing was asked; `own`: its extra members are this format's."""
    if reasoning is None:
        return {}
    written: Json = {}
    effort = effort_of(reasoning)
    if effort:
        written["effort"] = effort
    if reasoning.summary:
        written["summary"] = reasoning.summary
    extra: Bag = reasoning.extra if own else {}
    return {**written, **{name: value for name, value in extra.items() if name != SEALED}}


SEALED = "sealed"
"""In the extra members of `Reasoning`: the caller asked for `reasoning.encrypted_content`."""
