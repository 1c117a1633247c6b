"""What a request asks for, taken apart: two requests of different formats can be compared piece by piece."""

import base64
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from gateway.core.message import (
    Audio,
    File,
    Image,
    Message,
    Opaque,
    Part,
    Prompt,
    Refusal,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
)

Pieces = dict[str, Any]
_BLANKS = re.compile(r"\s+")
_ADDED = re.compile(
    r"<system_message>|</system_message>|\(no output\)|\(shown below\)|"
    r"Content of the result of tool call [^:\s]*:"
)
"""What says where a piece stood, when it has to stand elsewhere; no words of the caller."""
_USUAL: dict[str, tuple[object, ...]] = {
    "n": (None, 1),
    "presence_penalty": (None, 0),
    "frequency_penalty": (None, 0),
}
"""Values that say no more than none."""
_SYSTEM = {"system", "developer"}


def pieces(prompt: Prompt) -> Pieces:
    """Return the pieces of a request by their kinds; blanks of texts and ids of calls do not count.

    A refusal has a place of its own in some formats: of the model's words the letters are compared, not their order.
    """
    parts = list(_parts(prompt.messages))
    calls = [part for part in parts if isinstance(part, ToolCall)]
    thoughts = [part for part in parts if isinstance(part, Thinking)]
    results = [part for part in parts if isinstance(part, ToolResult)]
    offered = [tool for tool in prompt.tools if isinstance(tool, Tool)]
    tools = _callable(prompt, offered)
    found: Pieces = {
        "system": _words(m for m in prompt.messages if m.role in _SYSTEM),
        "user": _words(m for m in prompt.messages if m.role == "user"),
        "assistant": Counter(_words(m for m in prompt.messages if m.role == "assistant")),
        "results": [_said(each.parts) for each in results],
        "errors": sum(each.is_error for each in results),
        "media": Counter(map(_medium, _media(parts))),
        "calls": [(each.name, _value(each.arguments)) for each in calls],
        "thinking": _less("".join(each.text for each in thoughts)),
        "seals": [s for part in thoughts for s in (part.signature, part.redacted) if s],
        "call seals": [each.signature for each in calls if each.signature],
        "items": sum(isinstance(part, Opaque) for part in parts),
        "cache": sum(map(_is_marked, parts)),
        "cached tools": sum(map(_is_marked, tools)),
        "names": [m.name for m in prompt.messages if m.name],
        "tools": [(tool.name, tool.description.strip(), bool(tool.strict)) for tool in tools],
        "schemas": [_schema(tool.parameters) for tool in tools if not tool.custom],
        "choice": _choice(prompt),
        "parallel": bool(tools) and prompt.parallel is False,
        "max_tokens": prompt.max_tokens,
        "format": _format(prompt),
        "reasoning": _reasoning(prompt),
    }
    sampling = prompt.sampling
    for name in sampling.__struct_fields__:
        value = getattr(sampling, name)
        found[name] = None if value in _USUAL.get(name, (None, ())) else value
    return found


def differences(first: Pieces, second: Pieces) -> list[str]:
    """Return the kinds of pieces that are not the same."""
    return [kind for kind in first if first[kind] != second[kind]]


def _parts(messages: Iterable[Message]) -> Iterable[Part]:
    return (part for message in messages for part in message.parts)


def _is_marked(part: Part | Tool) -> bool:
    """Tell whether a cache mark stands at a part, or within a result."""
    inner = part.parts if isinstance(part, ToolResult) else ()
    return any(getattr(each, "cache", None) is not None for each in (part, *inner))


def _less(text: str) -> str:
    return _BLANKS.sub("", _ADDED.sub("", text))


def _words(messages: Iterable[Message]) -> str:
    return _said(_parts(messages))


def _said(parts: Iterable[Part]) -> str:
    return _less("".join(map(_plain, parts)))


def _plain(part: Part) -> str:
    """Return the words of a text, be it a document; no words for anything else."""
    if isinstance(part, Text | Refusal):
        return part.text
    if not isinstance(part, File):
        return ""
    if part.data and part.media_type == "text/plain":
        return base64.b64decode(part.data).decode()
    return part.text


def _media(parts: Iterable[Part]) -> Iterable[Image | Audio | File]:
    for part in parts:
        if isinstance(part, Image | Audio) or (isinstance(part, File) and not _plain(part)):
            yield part
        elif isinstance(part, ToolResult):
            yield from _media(part.parts)


def _medium(part: Image | Audio | File) -> str:
    if isinstance(part, Audio):
        return part.data or part.id
    return part.data or part.url or part.file_id


def _value(text: str) -> str:
    return _json(json.loads(text) if text.strip() else {})


def _json(value: object) -> str:
    return json.dumps(value or {}, sort_keys=True)


def _schema(schema: Mapping[str, Any] | None) -> str:
    """Return a schema as text; closed or not, and an object of which nothing is said like none."""
    closed = (schema or {}).get("additionalProperties") is False
    said = {k: v for k, v in (schema or {}).items() if k != "additionalProperties" or not closed}
    return _json({} if said == {"type": "object", "properties": {}} else said)


def _callable(prompt: Prompt, offered: list[Tool]) -> list[Tool]:
    """Return the tools that may be called; no tool may where the choice is none."""
    choice = prompt.choice
    if choice is not None and choice.mode == "none":
        return []
    some = choice.names if choice is not None else ()
    return [tool for tool in offered if not some or tool.name in some]


def _choice(prompt: Prompt) -> str:
    choice = prompt.choice
    if choice is None or choice.mode == "none":
        return "auto"  # without tools, which `_callable` sees
    # The one that must be called is the only one offered, as `_callable` sees it.
    return "required" if choice.mode == "named" else choice.mode


def _format(prompt: Prompt) -> tuple[str, str]:
    form = prompt.format
    if form is None or form.kind == "text":
        return "text", ""
    return form.kind, _schema(form.schema)


def _reasoning(prompt: Prompt) -> tuple[bool | None, str, int | None]:
    asked = prompt.reasoning
    if asked is None:
        return None, "", None
    is_off = asked.enabled is False or asked.effort == "none" or asked.budget == 0
    if is_off:
        return False, "", None
    return None, asked.effort, asked.budget
