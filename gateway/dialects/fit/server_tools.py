"""Tools that another provider runs: left out with a note, and refused where the caller insists on one (K34)."""

from typing import Any

from gateway.core import codec
from gateway.core.message import Prompt, ServerTool, Tool, ToolChoice
from gateway.dialects.grammar import Grammar
from gateway.dialects.losses import Notes, refuse


def without_foreign(prompt: Prompt, grammar: Grammar, notes: Notes) -> Prompt:
    """Return the prompt without the tools that other providers run: the model does without, as it may.

    Raises InputError `invalid_request` where the choice of tools asks for a call of such a tool alone.
    """
    items = grammar.items
    if items is None:
        return prompt
    kept: list[Tool | ServerTool] = []
    names: dict[str, int] = {}
    for at, tool in enumerate(prompt.tools):
        if not isinstance(tool, ServerTool) or tool.origin in items:
            kept.append(tool)
            continue
        name = tool.value.get("name")
        names[tool.kind] = at
        if isinstance(name, str):
            names[name] = at
    if not names:
        return prompt
    choice = _choice(prompt, names, is_alone=not kept)
    for at in dict.fromkeys(names.values()):
        notes.lost("item_dropped", _place(prompt, at))
    changes: dict[str, Any] = {"tools": tuple(kept)}
    if choice is not prompt.choice:
        changes["choice"] = choice
    return codec.replace(prompt, **changes)


def _choice(prompt: Prompt, left_out: dict[str, int], *, is_alone: bool) -> ToolChoice | None:
    """Return the choice among the tools that stay."""
    said = codec.as_object(prompt.extra.get("tool_choice"))
    if said is not None and said.get("type") in left_out:
        raise _refused(prompt, left_out[said["type"]])
    choice = prompt.choice
    if choice is None:
        return None
    names = tuple(name for name in choice.names if name not in left_out)
    only_left_out = not names if choice.names else is_alone
    if not only_left_out:
        return choice if names == choice.names else codec.replace(choice, names=names)
    if choice.mode in {"required", "named"}:
        first = next((name for name in choice.names), next(iter(left_out)))
        raise _refused(prompt, left_out[first])
    return None if is_alone else ToolChoice("none")


def _refused(prompt: Prompt, at: int) -> Exception:
    return refuse("tool_unsupported", _place(prompt, at), param=f"tools[{at}]")


def _place(prompt: Prompt, at: int) -> str:
    tool = prompt.tools[at]
    return f"tools[{at}] ({tool.kind if isinstance(tool, ServerTool) else tool.name})"
