"""Writes a prompt as the body of Ollama's `/api/chat`."""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.core import codec
from gateway.core.message import (
    File,
    Image,
    Message,
    Part,
    Prompt,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from gateway.dialects.losses import Notes, refuse
from gateway.dialects.ollama.settings import settings
from gateway.dialects.ollama.tools import offered
from gateway.dialects.sides import Facts

NAME = "ollama"
_OWN_FIELDS = frozenset({"keep_alive", "truncate", "shift"})
"""What only Ollama knows and a caller may send beside its own fields; `options` are joined with the gateway's."""


def write_request(prompt: Prompt, facts: Facts, notes: Notes) -> codec.Fields:
    """Return the fields of the body, `model` and `stream` left out."""
    names = {
        part.id: part.name
        for message in prompt.messages
        for part in message.parts
        if isinstance(part, ToolCall)
    }
    body: dict[str, Any] = {
        "messages": [
            item for message in prompt.messages for item in _message(message, names, notes)
        ]
    }
    body.update(offered(prompt, notes))
    body.update(settings(prompt, facts.model, notes))
    for name, value in prompt.extra.items():
        if name == "options":
            body[name] = {**body.get(name, {}), **(codec.as_object(value) or {})}
        elif prompt.origin == NAME or name in _OWN_FIELDS:
            body[name] = value
        else:
            notes.lost("field_unknown", name)
    return {name: codec.raw(value) for name, value in body.items()}


def _message(message: Message, names: Mapping[str, str], notes: Notes) -> list[dict[str, Any]]:
    if message.name:
        notes.lost("field_unsupported", "name")
    match message.role:
        case "tool":
            return [
                _result(part, names, notes)
                for part in message.parts
                if isinstance(part, ToolResult)
            ]
        case "assistant":
            return [_assistant(message.parts)]
        case "user":
            return [_said("user", message.parts, notes)]
        case _:
            return [_said("system", message.parts, notes)]


def _said(role: str, parts: Sequence[Part], notes: Notes) -> dict[str, Any]:
    """Write a text and its pictures: where a picture stood between texts cannot be said."""
    texts: list[str] = []
    images: list[str] = []
    for part in parts:
        match part:
            case Text(text=text) | Refusal(text=text):
                texts.append(text)
            case File(text=text) if text:
                texts.append(text)
            case Image(data=data) if data:
                images.append(data)
                if part.detail:
                    notes.lost("field_unsupported", "detail")
            case _:
                raise refuse("part_unsupported", type(part).__name__.lower(), param="messages")
    said: dict[str, Any] = {"role": role, "content": "\n".join(texts)}
    if images:
        said["images"] = images
    return said


def _assistant(parts: Sequence[Part]) -> dict[str, Any]:
    """Write a turn of the model; its texts follow one another without a break."""
    text: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    for part in parts:
        match part:
            case Text(text=words) | Refusal(text=words):
                text.append(words)
            case Thinking(text=words):
                thoughts.append(words)
            case ToolCall():
                calls.append(_call(part))
            case _:
                raise refuse("part_unsupported", type(part).__name__.lower(), param="messages")
    said: dict[str, Any] = {"role": "assistant", "content": "".join(text)}
    if any(thoughts):
        said["thinking"] = "".join(thoughts)
    if calls:
        said["tool_calls"] = calls
    return said


def _call(call: ToolCall) -> dict[str, Any]:
    if call.custom:
        raise refuse("tool_unsupported", f"custom tool {call.name}", param="messages")
    try:
        arguments = codec.as_object(codec.decode(call.arguments or "{}"))
    except (codec.JSONError, RecursionError):
        arguments = None
    if arguments is None:
        raise refuse("arguments_invalid", f"the call {call.id} of {call.name}", param="messages")
    return {"id": call.id, "function": {"name": call.name, "arguments": arguments}}


def _result(result: ToolResult, names: Mapping[str, str], notes: Notes) -> dict[str, Any]:
    if result.is_error:
        notes.lost("field_unsupported", "is_error")
    said = _said("tool", result.parts, notes)
    name = result.name or names.get(result.call_id, "")
    if name:
        said["tool_name"] = name
    said["tool_call_id"] = result.call_id
    return said
