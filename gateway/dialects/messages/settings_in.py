"""The settings of a Messages request: tools and their choice, thinking, the form of the answer."""

from typing import NamedTuple

from gateway.core import codec
from gateway.core.message import Bag, Format, Reasoning, ServerTool, Tool, ToolChoice
from gateway.dialects.messages.blocks_in import DIALECT, MARK, read_mark
from gateway.dialects.messages.fields import (
    Block,
    flag_at,
    invalid,
    list_at,
    object_at,
    optional_text,
    text_at,
    whole_at,
)
from gateway.dialects.within import Shape, Within, rest_of, strays_of

_TOOL = Shape("type", "name", "description", "input_schema", "strict", cache_control=MARK)
_OUTPUT = Shape("effort", "format")
_THINKING = Shape("type", "budget_tokens")
_FORMAT = Shape("type", "name", "schema")
_SETTINGS = {
    "output_format": _FORMAT,
    "tool_choice": Shape("type", "name", "disable_parallel_tool_use"),
}


def read_tools(value: object) -> tuple[Tool | ServerTool, ...]:
    """Return the tools in their order."""
    if value is None:
        return ()
    return tuple(
        _read_tool(object_at(tool, f"tools.{at}"), f"tools.{at}")
        for at, tool in enumerate(list_at(value, "tools"))
    )


def _read_tool(tool: Block, place: str) -> Tool | ServerTool:
    kind = optional_text(tool.get("type"), f"{place}.type")
    if kind not in {"", "custom"}:
        return ServerTool(DIALECT, kind, tool)
    schema = tool.get("input_schema")
    return Tool(
        text_at(tool.get("name"), f"{place}.name"),
        optional_text(tool.get("description"), f"{place}.description"),
        object_at(schema, f"{place}.input_schema") if schema is not None else None,
        strict=flag_at(tool.get("strict"), f"{place}.strict"),
        cache=read_mark(tool, place),
        extra=rest_of(tool, _TOOL),
    )


def read_choice(value: object) -> tuple[ToolChoice | None, bool | None]:
    """Return which tools may be called, and whether several at once."""
    if value is None:
        return None, None
    choice = object_at(value, "tool_choice")
    flag = flag_at(choice.get("disable_parallel_tool_use"), "tool_choice.disable_parallel_tool_use")
    parallel = None if flag is None else not flag
    match choice.get("type"):
        case "auto":
            return ToolChoice("auto"), parallel
        case "any":
            return ToolChoice("required"), parallel
        case "none":
            return ToolChoice("none"), parallel
        case "tool":
            return ToolChoice("named", (text_at(choice.get("name"), "tool_choice.name"),)), parallel
        case _:
            raise invalid("tool_choice.type", "must be auto, any, tool or none")


class Output(NamedTuple):
    """What `output_config` asks for; `rest` are its members that only this format knows."""

    effort: str
    format: Format | None
    rest: Block


_NO_OUTPUT = Output("", None, {})


def read_output(value: object, older: object) -> Output:
    """Return what is asked of the answer; `older` is the field that once held the format."""
    if value is None and older is None:
        return _NO_OUTPUT
    config = object_at({} if value is None else value, "output_config")
    effort = optional_text(config.get("effort"), "output_config.effort")
    form = read_format(config.get("format"), "output_config.format")
    return Output(effort, form or read_format(older, "output_format"), rest_of(config, _OUTPUT))


def strays_in(value: Block) -> Bag:
    """Return what nobody knows of the settings that are objects, as the `strays` of a prompt."""
    found = strays_of(value, _SETTINGS)
    inner = strays_of(codec.as_object(value.get("output_config")) or {}, {"format": _FORMAT})
    return {**found, "output_config": Within(inner)} if inner else found


def read_format(value: object, place: str) -> Format | None:
    """Return the form of the answer."""
    if value is None:
        return None
    form = object_at(value, place)
    if form.get("type") != "json_schema":
        raise invalid(f"{place}.type", "must be json_schema")
    return Format(
        "schema",
        name=optional_text(form.get("name"), f"{place}.name"),
        schema=object_at(form.get("schema"), f"{place}.schema"),
    )


def read_reasoning(value: object, effort: str) -> Reasoning | None:
    """Return how much to think."""
    if value is None:
        return Reasoning(effort=effort) if effort else None
    thinking = object_at(value, "thinking")
    kind = text_at(thinking.get("type"), "thinking.type")
    if kind not in {"enabled", "adaptive", "disabled"}:
        raise invalid("thinking.type", "must be enabled, adaptive or disabled")
    extra = dict(rest_of(thinking, _THINKING))
    if kind == "disabled":
        return Reasoning(enabled=False, effort=effort, extra=extra)
    budget = whole_at(thinking.get("budget_tokens"), "thinking.budget_tokens")
    if kind == "enabled" and budget is None:
        raise invalid("thinking.budget_tokens", "is required")
    if kind != "enabled":
        extra["type"] = kind
    return Reasoning(enabled=True, effort=effort, budget=budget, extra=extra)
