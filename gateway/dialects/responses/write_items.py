"""Writes a history as input items, in order."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gateway.core.message import (
    Audio,
    File,
    Image,
    Message,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from gateway.dialects.losses import Notes, refuse
from gateway.dialects.responses.sealed import encrypted_content
from gateway.dialects.responses.states import MAKER, ORIGIN

Json = dict[str, Any]


def write_items(messages: Sequence[Message], notes: Notes) -> list[Json]:
    """Return the items of a history."""
    items: list[Json] = []
    for place, message in enumerate(messages):
        where = f"messages[{place}]"
        if message.role == "assistant":
            items.extend(_said(message, where, notes))
        elif message.role == "tool":
            items.extend(_results(message, where, notes))
        else:
            items.extend(_asked(message, where, notes))
    return items


def _asked(message: Message, where: str, notes: Notes) -> Iterator[Json]:
    """Yield what a user or a system prompt says; items of this format stand between messages."""
    content: list[Json] = []
    for place, part in enumerate(message.parts):
        if isinstance(part, Opaque):
            if content:
                yield _message(message, content)
                content = []
            yield from _own(part, f"{where}.content[{place}]", notes)
        else:
            content.append(write_part(part, f"{where}.content[{place}]"))
    if content or not message.parts:
        yield _message(message, content)


def _message(message: Message, content: list[Json]) -> Json:
    plain = len(content) == 1 and content[0].keys() == {"type", "text"}
    written = {"role": message.role, "content": content[0]["text"] if plain else content}
    return {"type": "message", **written, **message.extra}


def _said(message: Message, where: str, notes: Notes) -> Iterator[Json]:
    """Yield what a model said: neighbouring texts as one message, everything else as items of its own."""
    content: list[Json] = []
    for place, part in enumerate(message.parts):
        if isinstance(part, Text):
            content.append(_output_text(part))
            continue
        if isinstance(part, Refusal):
            content.append({"type": "refusal", "refusal": part.text})
            continue
        if content:
            yield _message_of_model(message, content)
            content = []
        at = f"{where}.content[{place}]"
        match part:
            case Thinking():
                yield from _reasoning(part, at, notes)
            case ToolCall():
                yield _call(part)
            case Opaque():
                yield from _own(part, at, notes)
            case _:
                raise refuse("part_unsupported", at, param=where)
    if content:
        yield _message_of_model(message, content)


def _message_of_model(message: Message, content: list[Json]) -> Json:
    return {"type": "message", "role": "assistant", "content": content, **message.extra}


def _output_text(part: Text) -> Json:
    notes = [dict(c.value) for c in part.citations if c.origin == ORIGIN]
    written: Json = {"type": "output_text", "text": part.text}
    return {**written, "annotations": notes} if notes else written


def _reasoning(part: Thinking, where: str, notes: Notes) -> Iterator[Json]:
    """Yield what OpenAI sealed as it came; other thinking has no place in this format's history."""
    if part.maker != MAKER:
        notes.lost("thinking_dropped", where)
        return
    written: Json = {"type": "reasoning"}
    if part.id:
        written["id"] = part.id
    written["summary"] = [{"type": "summary_text", "text": text} for text in part.summary]
    written["encrypted_content"] = encrypted_content(part)
    yield written


def _call(part: ToolCall) -> Json:
    item = part.extra.get("item")
    if isinstance(item, Mapping):
        return dict(item)
    kind, field = ("custom_tool_call", "input") if part.custom else ("function_call", "arguments")
    written: Json = {"type": kind}
    if part.item_id:
        written["id"] = part.item_id
    said = part.arguments if part.custom else part.arguments or "{}"
    return {**written, "call_id": part.id, "name": part.name, field: said, **part.extra}


def _results(message: Message, where: str, notes: Notes) -> Iterator[Json]:
    for place, part in enumerate(message.parts):
        if isinstance(part, ToolResult):
            kind = "custom_tool_call_output" if part.custom else "function_call_output"
            output = _output(part.parts, f"{where}.content[{place}]")
            yield {"type": kind, "call_id": part.call_id, "output": output, **part.extra}
        elif isinstance(part, Opaque):
            yield from _own(part, f"{where}.content[{place}]", notes)


def _output(parts: Sequence[Part], where: str) -> str | list[Json]:
    if not parts:
        return ""
    written = [write_part(part, f"{where}.content[{at}]") for at, part in enumerate(parts)]
    plain = len(written) == 1 and written[0].keys() == {"type", "text"}
    return written[0]["text"] if plain else written


def _own(part: Opaque, where: str, notes: Notes) -> Iterator[Json]:
    if part.origin == ORIGIN:
        yield dict(part.value)
    else:
        notes.lost("item_dropped", where)


def write_part(part: Part, where: str) -> Json:
    """Return a part of a user's message or of a result; raises InputError for what this format cannot tell."""
    match part:
        case Text():
            return {"type": "input_text", "text": part.text}
        case Image():
            return _image(part)
        case File():
            return _file(part)
        case Audio() if part.data:
            sound = {"data": part.data, "format": part.format or "wav"}
            return {"type": "input_audio", "input_audio": sound}
        case _:
            raise refuse("part_unsupported", where)


def _image(part: Image) -> Json:
    written: Json = {"type": "input_image"}
    if part.file_id:
        written["file_id"] = part.file_id
    else:
        kind = part.media_type or "image/png"
        written["image_url"] = part.url or f"data:{kind};base64,{part.data}"
    if part.detail:
        written["detail"] = part.detail
    return written


def _file(part: File) -> Json:
    written: Json = {"type": "input_file"}
    if part.name:
        written["filename"] = part.name
    if part.file_id:
        written["file_id"] = part.file_id
    elif part.url:
        written["file_url"] = part.url
    elif part.text and not part.data:
        return {"type": "input_text", "text": part.text}
    else:
        kind = part.media_type or "application/pdf"
        written.setdefault("filename", f"file.{kind.rpartition('/')[2]}")
        written["file_data"] = f"data:{kind};base64,{part.data}"
    return written
