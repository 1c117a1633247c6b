"""Writes a prompt as the body of Cohere's `/v2/chat`."""

from collections.abc import Sequence
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
from gateway.dialects.cohere.settings import settings
from gateway.dialects.cohere.tools import offered
from gateway.dialects.losses import Notes, refuse

NAME = "cohere_v2"
_OWN_FIELDS = frozenset(
    {
        "citation_options",
        "documents",
        "priority",
        "raw_prompting",
        "safety_mode",
        "strict_tools",
    }
)
"""What only Cohere knows and a caller may send beside its own fields."""


def write_request(prompt: Prompt, notes: Notes) -> codec.Fields:
    """Return the fields of the body, `model` and `stream` left out."""
    body: dict[str, Any] = {
        "messages": [item for message in prompt.messages for item in _message(message, notes)]
    }
    body.update(offered(prompt, notes))
    body.update(settings(prompt, notes))
    for name, value in prompt.extra.items():
        if prompt.origin == NAME or name in _OWN_FIELDS:
            body[name] = value
        else:
            notes.lost("field_unknown", name)
    return {name: codec.raw(value) for name, value in body.items()}


def _message(message: Message, notes: Notes) -> list[dict[str, Any]]:
    if message.name:
        notes.lost("field_unsupported", "name")
    match message.role:
        case "tool":
            return [_result(part, notes) for part in message.parts if isinstance(part, ToolResult)]
        case "assistant":
            return [_assistant(message.parts)]
        case "user":
            return [{"role": "user", "content": [_user_part(part) for part in message.parts]}]
        case _:
            return [{"role": "system", "content": [_text(part) for part in message.parts]}]


def _text(part: Part) -> dict[str, Any]:
    match part:
        case Text(text=text) | Refusal(text=text):
            return {"type": "text", "text": text}
        case _:
            raise refuse("part_unsupported", type(part).__name__.lower(), param="messages")


def _user_part(part: Part) -> dict[str, Any]:
    match part:
        case Image(url=url, data=data) if url or data:
            shown = {"url": url or f"data:{part.media_type};base64,{data}"}
            if part.detail:
                shown["detail"] = part.detail
            return {"type": "image_url", "image_url": shown}
        case File(text=text) if text:
            return {"type": "text", "text": text}
        case _:
            return _text(part)


def _assistant(parts: Sequence[Part]) -> dict[str, Any]:
    """Write a turn of the model: what it said before it called tools is its plan."""
    content: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    plan = ""
    has_calls = any(isinstance(part, ToolCall) for part in parts)
    for part in parts:
        match part:
            case Thinking(text=text):
                if text:
                    content.append({"type": "thinking", "thinking": text})
            case ToolCall():
                calls.append(_call(part))
            case Text(text=text) | Refusal(text=text) if has_calls:
                plan += text
            case _:
                content.append(_text(part))
    said: dict[str, Any] = {"role": "assistant"}
    if plan:
        said["tool_plan"] = plan
    elif has_calls and not content:
        content.append({"type": "text", "text": ""})
    if content or not calls:
        said["content"] = content
    if calls:
        said["tool_calls"] = calls
    return said


def _call(call: ToolCall) -> dict[str, Any]:
    if call.custom:
        raise refuse("tool_unsupported", f"custom tool {call.name}", param="messages")
    function = {"name": call.name, "arguments": call.arguments or "{}"}
    return {"id": call.id, "type": "function", "function": function}


def _result(result: ToolResult, notes: Notes) -> dict[str, Any]:
    if result.is_error:
        notes.lost("field_unsupported", "is_error")
    texts = [part for part in result.parts if isinstance(part, Text)]
    content: str | list[dict[str, Any]]
    if len(texts) == len(result.parts) <= 1:
        content = "".join(part.text for part in texts)
    else:
        content = [_result_part(part) for part in result.parts]
    return {"role": "tool", "tool_call_id": result.call_id, "content": content}


def _result_part(part: Part) -> dict[str, Any]:
    if isinstance(part, File) and part.text:
        data = {"text": part.text}
        if part.name:
            data["title"] = part.name
        return {"type": "document", "document": {"data": data}}
    return _text(part)
