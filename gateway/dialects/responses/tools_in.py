"""Tools, choices among them, and what else shapes an answer, as callers write it."""

from typing import Literal, cast

from gateway.core.codec import as_object
from gateway.core.message import Format, Reasoning, ServerTool, Tool, ToolChoice
from gateway.dialects.chat.fields import (
    MARKS,
    Json,
    a_list,
    a_name,
    an_object,
    mark_of,
    maybe_flag,
    maybe_object,
    maybe_text,
    wrong,
)
from gateway.dialects.responses.settings import SEALED
from gateway.dialects.responses.states import ORIGIN
from gateway.dialects.within import Shape, rest_of

_FIELDS = ("name", "description", "parameters", "strict")
_FUNCTION = Shape("type", *_FIELDS, function=Shape(*_FIELDS), **MARKS)
_GRAMMAR = Shape("syntax", "definition")
_CUSTOM = Shape(
    "type",
    "name",
    "description",
    format=Shape("type", *_GRAMMAR.free, grammar=_GRAMMAR),
    **MARKS,
)
_NAMED = Shape("name")
_FORMAT = Shape("name", "schema", "strict", "description")
SETTINGS = {
    "stream_options": Shape("include_obfuscation"),
    "text": Shape("verbosity", format=Shape("type", *_FORMAT.free, json_schema=_FORMAT)),
}
"""The settings that are objects: their members that nobody knows are `strays` of a prompt."""
CHOICE = {
    "tool_choice": Shape(
        "type", "name", "mode", tools=Shape("type", "name"), function=_NAMED, custom=_NAMED
    )
}
"""The same of a choice that every format knows; another is kept whole."""
_MODES = frozenset({"auto", "none", "required"})
_REASONING = Shape("effort", "summary", "generate_summary")
SEALED_REASONING = "reasoning.encrypted_content"
LOGPROBS = "message.output_text.logprobs"


def tools_of(value: object, at: str = "tools") -> tuple[Tool | ServerTool, ...]:
    """Read the field `tools`."""
    if value is None:
        return ()
    return tuple(
        tool_of(an_object(item, f"{at}[{place}]"), f"{at}[{place}]")
        for place, item in enumerate(a_list(value, at))
    )


def tool_of(tool: Json, at: str) -> Tool | ServerTool:
    """Read one tool."""
    kind = a_name(tool.get("type"), f"{at}.type")
    if kind == "function":
        inner = _nested(tool, at)
        return Tool(
            a_name(inner.get("name"), f"{at}.name"),
            maybe_text(inner.get("description"), f"{at}.description"),
            maybe_object(inner.get("parameters"), f"{at}.parameters"),
            maybe_flag(inner.get("strict"), f"{at}.strict"),
            cache=mark_of(tool, at),
            extra=rest_of(tool, _FUNCTION),
        )
    if kind == "custom":
        return Tool(
            a_name(tool.get("name"), f"{at}.name"),
            maybe_text(tool.get("description"), f"{at}.description"),
            custom=True,
            format=_format_of_text(maybe_object(tool.get("format"), f"{at}.format")),
            cache=mark_of(tool, at),
            extra=rest_of(tool, _CUSTOM),
        )
    return ServerTool(ORIGIN, kind, tool)


def _format_of_text(form: Json | None) -> Json | None:
    """Return the format of a custom tool with its grammar in an object of its own, as chat completions have it."""
    if form is None or form.get("type") != "grammar" or "grammar" in form:
        return form
    grammar = {name: value for name, value in form.items() if name != "type"}
    return {"type": "grammar", "grammar": grammar}


def _nested(tool: Json, at: str) -> Json:
    """Return a function's fields, also where they stand as in chat completions, which many send here too."""
    inner = tool.get("function")
    if inner is None or tool.get("name") is not None:
        return tool
    return an_object(inner, f"{at}.function")


def choice_of(value: object, at: str = "tool_choice") -> tuple[ToolChoice | None, Json | None]:
    """Read the field `tool_choice`: a choice, or the field itself where only this format knows what it means."""
    if value is None:
        return None, None
    if isinstance(value, str):
        if value not in _MODES:
            raise wrong(at, "auto, none, required or an object")
        mode: Literal["auto", "none", "required"] = value  # pyright: ignore[reportAssignmentType]
        return ToolChoice(mode), None
    choice = an_object(value, at)
    kind = a_name(choice.get("type"), f"{at}.type")
    if _names_spaces(choice):
        return None, choice
    if kind in {"function", "custom"}:
        inner = choice if "name" in choice else an_object(choice.get(kind), f"{at}.{kind}")
        name = a_name(inner.get("name"), f"{at}.name")
        return ToolChoice("named", (name,), custom=kind == "custom"), None
    if kind != "allowed_tools":
        return None, choice
    mode_said = choice.get("mode", "auto")
    if mode_said not in {"auto", "required"}:
        raise wrong(f"{at}.mode", "auto or required")
    names: list[str] = []
    for place, item in enumerate(a_list(choice.get("tools"), f"{at}.tools")):
        where = f"{at}.tools[{place}]"
        tool = an_object(item, where)
        field = "name" if tool.get("type") in {"function", "custom"} else "type"
        names.append(a_name(tool.get(field), f"{where}.{field}"))
    if not names:
        raise wrong(f"{at}.tools", "at least one tool")
    return ToolChoice("required" if mode_said == "required" else "auto", tuple(names)), None


def _names_spaces(choice: Json) -> bool:
    """Tell whether a choice names functions by their namespace, or a whole one."""
    tools = choice.get("tools")
    listed = cast("list[object]", tools) if isinstance(tools, list) else []
    return any(
        item.get("namespace") is not None or item.get("type") == "namespace"
        for item in map(as_object, (choice, *listed))
        if item is not None
    )


def text_of(value: object, at: str = "text") -> tuple[Format | None, str]:
    """Read the field `text`: the form of the answer, and its verbosity."""
    text = maybe_object(value, at) or {}
    form = text.get("format")
    return (
        None if form is None else _format(an_object(form, f"{at}.format"), f"{at}.format"),
        maybe_text(text.get("verbosity"), f"{at}.verbosity"),
    )


def _format(form: Json, at: str) -> Format:
    match form.get("type"):
        case "text":
            return Format("text")
        case "json_object":
            return Format("json")
        case "json_schema":
            inner = form if "json_schema" not in form else an_object(form["json_schema"], at)
            return Format(
                "schema",
                maybe_text(inner.get("name"), f"{at}.name"),
                an_object(inner.get("schema"), f"{at}.schema"),
                maybe_flag(inner.get("strict"), f"{at}.strict"),
                maybe_text(inner.get("description"), f"{at}.description"),
            )
        case _:
            raise wrong(f"{at}.type", "text, json_object or json_schema")


def reasoning_of(value: object, *, sealed: bool, at: str = "reasoning") -> Reasoning | None:
    """Read the field `reasoning`; `sealed`: the caller wants what is sealed with the answer."""
    fields = maybe_object(value, at) or {}
    effort = maybe_text(fields.get("effort"), f"{at}.effort")
    summary = maybe_text(fields.get("summary"), f"{at}.summary")
    older = maybe_text(fields.get("generate_summary"), f"{at}.generate_summary")
    extra = dict(rest_of(fields, _REASONING))
    if sealed:
        extra[SEALED] = True
    enabled = False if effort == "none" else None
    found = Reasoning(enabled, effort, None, summary or older, extra)
    return None if found == Reasoning() else found


def include_of(value: object, at: str = "include") -> list[str]:
    """Read the field `include`."""
    if value is None:
        return []
    listed = a_list(value, at)
    return [a_name(item, f"{at}[{place}]") for place, item in enumerate(listed)]
