"""Writes a history as input items, in order."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

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
from gateway.dialects.chat.data_url import join_data
from gateway.dialects.losses import Notes, refuse
from gateway.dialects.responses.sealed import encrypted_content
from gateway.dialects.responses.states import MAKER, ORIGIN
from gateway.dialects.within import put_back

Json = dict[str, Any]
_Bagged = Message | Text | Image | Audio | File | Refusal | Thinking | ToolCall | ToolResult


class ItemWriter:
    """Writes the items of one prompt. `own`: it came in this format, so what only this format knows goes along."""

    __slots__ = ("_notes", "_own")

    def __init__(self, notes: Notes, *, own: bool) -> None:
        self._notes = notes
        self._own = own

    def write(self, messages: Sequence[Message], first: int = 0) -> list[Json]:
        """Return the items of a history; its first message is the prompt's `first`."""
        items: list[Json] = []
        for place, message in enumerate(messages, first):
            where = f"messages[{place}]"
            if message.role == "assistant":
                items.extend(self._said(message, where))
            elif message.role == "tool":
                items.extend(self._results(message, where))
            else:
                items.extend(self._asked(message, where))
        return items

    def _part(self, part: Part, where: str) -> Json:
        """Return a part of a message or result."""
        written = write_part(part, where)
        if isinstance(part, Text | Image | Audio | File):
            return self._full(written, part)
        return written

    def _full(self, written: Json, of: _Bagged) -> Json:
        """Return an item or part with what a caller of this format said besides."""
        return put_back(written, of.extra, self._notes) if self._own and of.extra else written

    def _asked(self, message: Message, where: str) -> Iterator[Json]:
        """Yield what a user or a system prompt says; items of this format stand between messages."""
        if message.name:
            self._notes.lost("field_unsupported", f"{where}.name")
        content: list[Json] = []
        for place, part in enumerate(message.parts):
            if isinstance(part, Opaque):
                if content:
                    yield self._message(message, content)
                    content = []
                yield from self._opaque(part, f"{where}.content[{place}]")
            else:
                content.append(self._part(part, f"{where}.content[{place}]"))
        if content or not message.parts:
            yield self._message(message, content)

    def _message(self, message: Message, content: list[Json]) -> Json:
        plain = len(content) == 1 and content[0].keys() == {"type", "text"}
        said = content[0]["text"] if plain else content
        return self._full({"role": message.role, "content": said}, message)

    def _said(self, message: Message, where: str) -> Iterator[Json]:
        """Yield what a model said: neighbouring texts as one message, everything else as items of its own."""
        content: list[Json] = []
        for place, part in enumerate(message.parts):
            if isinstance(part, Text):
                content.append(self._full(_output_text(part), part))
                continue
            if isinstance(part, Refusal):
                content.append(self._full({"type": "refusal", "refusal": part.text}, part))
                continue
            if content:
                yield self._message_of_model(message, content)
                content = []
            at = f"{where}.content[{place}]"
            match part:
                case Thinking():
                    yield from self._reasoning(part, at)
                case ToolCall():
                    yield self._call(part)
                case Opaque():
                    yield from self._opaque(part, at)
                case _:
                    raise refuse("part_unsupported", at, param=where)
        if content:
            yield self._message_of_model(message, content)

    def _message_of_model(self, message: Message, content: list[Json]) -> Json:
        return self._full({"type": "message", "role": "assistant", "content": content}, message)

    def _reasoning(self, part: Thinking, where: str) -> Iterator[Json]:
        """Yield what OpenAI sealed as it came; other thinking has no place in this format's history."""
        if part.maker != MAKER:
            self._notes.lost("thinking_dropped", where)
            return
        written: Json = {"type": "reasoning"}
        if part.id.startswith(_REASONING_ID):
            written["id"] = part.id
        # What OpenAI shows of its reasoning is a summary, also where it came back by way of another format.
        pieces = part.summary or ((part.text,) if part.text else ())
        written["summary"] = [{"type": "summary_text", "text": text} for text in pieces]
        written["encrypted_content"] = encrypted_content(part)
        yield self._full(written, part)

    def _call(self, part: ToolCall) -> Json:
        item = part.extra.get("item") if self._own else None
        if isinstance(item, Mapping):
            return dict(cast("Json", item))
        kind, field = _CALL_FIELDS[part.custom]
        said = part.arguments if part.custom else part.arguments or "{}"
        # Without the id of the item: with it OpenAI wants the reasoning item before it too.
        written: Json = {"type": kind, "call_id": part.id, "name": part.name, field: said}
        return self._full(written, part)

    def _results(self, message: Message, where: str) -> Iterator[Json]:
        for place, part in enumerate(message.parts):
            if isinstance(part, ToolResult):
                if part.is_error:
                    self._notes.lost("field_unsupported", "is_error")
                item = part.extra.get("item") if self._own else None
                if isinstance(item, Mapping):
                    yield dict(cast("Json", item))
                    continue
                kind = f"{_CALL_FIELDS[part.custom][0]}_output"
                output = self._output(part.parts, f"{where}.content[{place}]")
                written: Json = {"type": kind, "call_id": part.call_id, "output": output}
                yield self._full(written, part)
            elif isinstance(part, Opaque):
                yield from self._opaque(part, f"{where}.content[{place}]")

    def _output(self, parts: Sequence[Part], where: str) -> str | list[Json]:
        if not parts:
            return ""
        written = [self._part(part, f"{where}.content[{at}]") for at, part in enumerate(parts)]
        plain = len(written) == 1 and written[0].keys() == {"type", "text"}
        return written[0]["text"] if plain else written

    def _opaque(self, part: Opaque, where: str) -> Iterator[Json]:
        if part.origin == ORIGIN:
            yield dict(part.value)
        else:
            self._notes.lost("item_dropped", where)


_REASONING_ID = "rs"
_CALL_FIELDS = {False: ("function_call", "arguments"), True: ("custom_tool_call", "input")}


def _output_text(part: Text) -> Json:
    notes = [dict(c.value) for c in part.citations if c.origin == ORIGIN]
    written: Json = {"type": "output_text", "text": part.text}
    return {**written, "annotations": notes} if notes else written


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
        written["image_url"] = part.url or join_data(part.media_type or "image/png", part.data)
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
        written["file_data"] = join_data(kind, part.data)
    return written
