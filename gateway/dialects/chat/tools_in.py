"""Tools, choices among them and forms of answers, as callers write them."""

from collections.abc import Mapping
from typing import Any

from gateway.core.errors import InputError
from gateway.core.message import Format, Reasoning, ServerTool, Tool, ToolChoice
from gateway.dialects.chat.fields import (
    MARKS,
    Json,
    a_list,
    a_name,
    an_object,
    mark_of,
    maybe_count,
    maybe_flag,
    maybe_object,
    maybe_text,
    wrong,
)
from gateway.dialects.within import Shape, Within, rest_of

LEGACY = {"legacy": True}
"""Marks tools that came in the field `functions`: their caller reads `function_call` in the answer."""
_FUNCTION = Shape("name", "description", "parameters", "strict", **MARKS)
_CUSTOM = Shape("name", "description", format=Shape("type", grammar=Shape("syntax", "definition")))
_TOOL = Shape("type", function=_FUNCTION, custom=_CUSTOM, **MARKS)
_CHOSEN = Shape("type", "name", function=Shape("name"), custom=Shape("name"))
_ALLOWED = Shape("mode", tools=_CHOSEN)
SETTINGS = {
    "function_call": Shape("name"),
    "response_format": Shape("type", json_schema=Shape("name", "schema", "strict", "description")),
    "thinking": Shape("type", "budget_tokens"),
    "tool_choice": Shape(
        "type", "name", "mode", tools=_CHOSEN, allowed_tools=_ALLOWED, **_CHOSEN.inner
    ),
}
"""The settings that are objects: their members that nobody knows are `strays` of a prompt."""
_MODES: Mapping[str, ToolChoice] = {
    "auto": ToolChoice("auto"),
    "none": ToolChoice("none"),
    "required": ToolChoice("required"),
    "any": ToolChoice("required"),
}


def tools_of(value: object, at: str = "tools") -> tuple[Tool | ServerTool, ...]:
    """Read the field `tools`."""
    return tuple(
        _tool(an_object(item, f"{at}[{place}]"), f"{at}[{place}]")
        for place, item in enumerate(a_list(value, at))
    )


def _tool(tool: Json, at: str) -> Tool | ServerTool:
    kind = a_name(tool.get("type", "function"), f"{at}.type")
    if kind == "custom":
        inner = an_object(tool.get("custom"), f"{at}.custom")
        return Tool(
            a_name(inner.get("name"), f"{at}.custom.name"),
            maybe_text(inner.get("description"), f"{at}.custom.description"),
            custom=True,
            format=maybe_object(inner.get("format"), f"{at}.custom.format"),
            cache=mark_of(tool, at),
            extra=rest_of(tool, _TOOL),
        )
    if kind != "function":
        return ServerTool("openai_chat", kind, tool)
    inner = an_object(tool.get("function"), f"{at}.function")
    return _function(inner, tool, f"{at}.function", rest_of(tool, _TOOL))


def _function(inner: Json, around: Json, at: str, extra: Mapping[str, Any]) -> Tool:
    return Tool(
        a_name(inner.get("name"), f"{at}.name"),
        maybe_text(inner.get("description"), f"{at}.description"),
        maybe_object(inner.get("parameters"), f"{at}.parameters"),
        maybe_flag(inner.get("strict"), f"{at}.strict"),
        cache=mark_of(around, at) or mark_of(inner, at),
        extra=extra,
    )


def functions_of(value: object, at: str = "functions") -> tuple[Tool, ...]:
    """Read the field `functions`, which was there before `tools`."""
    found: list[Tool] = []
    for place, item in enumerate(a_list(value, at)):
        where = f"{at}[{place}]"
        inner = an_object(item, where)
        rest = rest_of(inner, _FUNCTION)
        extra = {**LEGACY, "function": Within(rest)} if rest else LEGACY
        found.append(_function(inner, {}, where, extra))
    return tuple(found)


def choice_of(value: object, at: str = "tool_choice") -> ToolChoice:
    """Read the field `tool_choice`."""
    if isinstance(value, str):
        if value not in _MODES:
            raise wrong(at, "auto, none, required or an object")
        return _MODES[value]
    choice = an_object(value, at)
    kind = choice.get("type")
    if kind == "allowed_tools":
        where = f"{at}.allowed_tools"
        inner = an_object(choice.get("allowed_tools", choice), where)
        mode = inner.get("mode", "auto")
        if mode not in ("auto", "required"):
            raise wrong(f"{where}.mode", "auto or required")
        listed = a_list(inner.get("tools"), f"{where}.tools")
        names = tuple(
            _named(an_object(item, f"{where}.tools[{place}]"), f"{where}.tools[{place}]")
            for place, item in enumerate(listed)
        )
        return ToolChoice(mode, names)
    if kind not in ("function", "custom"):
        raise InputError(
            "invalid_request",
            f"{at}.type: expected function, custom or allowed_tools",
            param=f"{at}.type",
        )
    return ToolChoice("named", (_named(choice, at),), custom=kind == "custom")


def _named(choice: Json, at: str) -> str:
    """Return the tool's name, which stands in an object of its own or bare."""
    field = "custom" if choice.get("type") == "custom" else "function"
    if field not in choice and "name" in choice:
        return a_name(choice["name"], f"{at}.name")
    return a_name(an_object(choice.get(field), f"{at}.{field}").get("name"), f"{at}.{field}.name")


def function_choice_of(value: object, at: str = "function_call") -> ToolChoice:
    """Read the field `function_call`, which was there before `tool_choice`."""
    if isinstance(value, str):
        return choice_of(value, at)
    return ToolChoice("named", (a_name(an_object(value, at).get("name"), f"{at}.name"),))


def format_of(value: object, at: str = "response_format") -> Format:
    """Read the field `response_format`."""
    form = an_object(value, at)
    match form.get("type"):
        case "text":
            return Format("text")
        case "json_object":
            return Format("json")
        case "json_schema":
            where = f"{at}.json_schema"
            inner = an_object(form.get("json_schema"), where)
            return Format(
                "schema",
                maybe_text(inner.get("name"), f"{where}.name"),
                maybe_object(inner.get("schema"), f"{where}.schema"),
                maybe_flag(inner.get("strict"), f"{where}.strict"),
                maybe_text(inner.get("description"), f"{where}.description"),
            )
        case _:
            raise InputError(
                "invalid_request",
                f"{at}.type: expected text, json_object or json_schema",
                param=f"{at}.type",
            )


_SWITCHES = frozenset({"enabled", "disabled", "adaptive", "auto"})
_REASONING = Shape("effort", "enabled", "max_tokens", "summary")


def reasoning_of(effort: object, reasoning: object, thinking: object) -> Reasoning | None:
    """Read `reasoning_effort`, `reasoning` (OpenRouter) and `thinking` (Anthropic, DeepSeek) together."""
    word = maybe_text(effort, "reasoning_effort")
    fields = maybe_object(reasoning, "reasoning") or {}
    word = maybe_text(fields.get("effort"), "reasoning.effort") or word
    enabled = maybe_flag(fields.get("enabled"), "reasoning.enabled")
    budget = maybe_count(fields.get("max_tokens"), "reasoning.max_tokens")
    summary = maybe_text(fields.get("summary"), "reasoning.summary")
    extra = rest_of(fields, _REASONING)
    switch = maybe_object(thinking, "thinking") or {}
    if switch:
        kind = a_name(switch.get("type"), "thinking.type")
        if kind not in _SWITCHES:
            message = "thinking.type: expected enabled, disabled, adaptive or auto"
            raise InputError("invalid_request", message, param="thinking.type")
        enabled = kind != "disabled" if enabled is None else enabled
        more = maybe_count(switch.get("budget_tokens"), "thinking.budget_tokens")
        budget = more if budget is None else budget
    if enabled is None and budget is not None:
        enabled = True
    if word == "none":
        enabled = False
    found = Reasoning(enabled, word, budget, summary, extra)
    return None if found == Reasoning() else found
