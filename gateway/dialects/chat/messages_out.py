"""Writes a history for a provider that speaks chat completions."""

from collections.abc import Sequence
from typing import Any

from gateway.core import codec
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
from gateway.dialects.chat.data_url import base64_of, join_data
from gateway.dialects.chat.manners import Manner
from gateway.dialects.chat.reasoning import details_of
from gateway.dialects.chat.seal import extra_content
from gateway.dialects.losses import Notes, refuse

Json = dict[str, Any]


def marker(ttl: str) -> Json:
    """Write a cache marker."""
    return {"type": "ephemeral", "ttl": ttl} if ttl else {"type": "ephemeral"}


BETWEEN = "OK"
"""What a model says between results and the user, where something must be said."""


def messages_out(
    messages: Sequence[Message], manner: Manner, notes: Notes, *, thinks: bool
) -> list[Json]:
    """Write a history; `thinks`: reasoning is on.

    Raises InputError for a part that this kind of provider has no place for.
    """
    writer = _Writer(manner, notes, thinks=thinks and manner.wants_thinking)
    for place, message in enumerate(messages):
        writer.write(message, is_last=place == len(messages) - 1)
    return writer.out


class _Writer:
    __slots__ = ("_manner", "_notes", "_thinks", "out")

    def __init__(self, manner: Manner, notes: Notes, *, thinks: bool) -> None:
        self._thinks = thinks
        self.out: list[Json] = []
        self._manner = manner
        self._notes = notes

    def write(self, message: Message, *, is_last: bool) -> None:
        if message.role == "tool":
            for part in message.parts:
                if isinstance(part, ToolResult):
                    self.out.append(self._result(part))
            return
        after_results = bool(self.out) and self.out[-1]["role"] == "tool"
        if self._manner.strict and after_results and message.role != "assistant":
            self._notes.lost("reply_added", "messages")
            self.out.append({"role": "assistant", "content": BETWEEN})
        role = message.role
        if role == "developer" and not self._manner.developer:
            role = "system"
        if role == "assistant":
            written = self._assistant(message)
            if is_last and self._manner.strict:
                written["prefix"] = True
        else:
            written = {"role": role, "content": self._content(message.parts)}
        if message.name:
            if self._manner.strict:
                self._notes.lost("field_unsupported", "messages[].name")
            else:
                written["name"] = message.name
        self.out.append(written)

    def _result(self, result: ToolResult) -> Json:
        written: Json = {
            "role": "tool",
            "tool_call_id": result.call_id,
            "content": self._content(result.parts),
        }
        if result.name and not self._manner.openai:
            written["name"] = result.name
        if result.is_error:
            self._notes.lost("field_unsupported", f"is_error (tool call {result.call_id})")
        if result.cache is not None:
            written["cache_control"] = marker(result.cache.ttl)
        return written

    def _content(self, parts: Sequence[Part]) -> str | list[Json]:
        """Write parts: a text where it is nothing but one."""
        if not parts:
            return ""
        if len(parts) == 1:
            part = parts[0]
            if isinstance(part, Text) and part.cache is None:
                return part.text
        return [self._part(part, place) for place, part in enumerate(parts)]

    def _part(self, part: Part, place: int) -> Json:
        at = f"messages[{len(self.out)}].content[{place}]"
        match part:
            case Text():
                written: Json = {"type": "text", "text": part.text}
            case Image():
                written = _image(part, at)
            case File():
                written = self._file(part, at)
            case Audio(data=data) if data:
                written = {
                    "type": "input_audio",
                    "input_audio": {"data": data, "format": part.format},
                }
            case Refusal():
                written = {"type": "refusal", "refusal": part.text}
            case Opaque(origin="openai_chat"):
                written = dict(part.value)
            case _:
                kind = type(part).__name__.lower()
                raise refuse("part_unsupported", f"{at} ({kind})", param=at)
        if isinstance(part, Text | Image | File) and part.cache is not None:
            written["cache_control"] = marker(part.cache.ttl)
        return written

    def _file(self, file: File, at: str) -> Json:
        if file.url and file.media_type.startswith("video/"):
            return {"type": "video_url", "video_url": {"url": file.url}}
        if file.media_type.startswith("video/") and file.data:
            return {
                "type": "video_url",
                "video_url": {"url": join_data(file.media_type, file.data)},
            }
        data = file.data or (base64_of(file.text) if file.text else "")
        url = file.url or (join_data(file.media_type or "text/plain", data) if data else "")
        match self._manner.documents:
            case "address" if url:
                written: Json = {"type": "document_url", "document_url": url}
                if file.name:
                    written["document_name"] = file.name
                return written
            case "file" if url or file.file_id:
                inner: Json = {"file_data": url} if url else {"file_id": file.file_id}
                if file.name:
                    inner["filename"] = file.name
                elif data:
                    inner["filename"] = "file." + (file.media_type.rpartition("/")[2] or "txt")
                return {"type": "file", "file": inner}
            case _:
                raise refuse("part_unsupported", f"{at} (file)", param=at)

    def _assistant(self, message: Message) -> Json:
        written: Json = {"role": "assistant", "content": None}
        content: list[Part] = []
        thoughts = [part for part in message.parts if isinstance(part, Thinking)]
        calls = [self._call(part) for part in message.parts if isinstance(part, ToolCall)]
        refusals: list[str] = []
        for part in message.parts:
            match part:
                case Thinking() | ToolCall():
                    continue
                case Refusal(text=text) if self._manner.openai:
                    refusals.append(text)
                case Refusal(text=text):
                    content.append(Text(text))
                case Audio(id=known) if known and self._manner.openai:
                    written["audio"] = {"id": known}
                case _:
                    content.append(part)
        if content:
            written["content"] = self._content(content)
        elif not (self._manner.null_content and (calls or refusals or "audio" in written)):
            written["content"] = ""
        if refusals:
            written["refusal"] = "".join(refusals)
        if thoughts:
            self._think(written, thoughts)
        if calls:
            written["tool_calls"] = calls
            if self._thinks and not thoughts:
                written["reasoning_content"] = ""
        return written

    def _think(self, message: Json, thoughts: Sequence[Thinking]) -> None:
        """Write reasoning of the history where this kind wants it back."""
        said = "".join(part.text for part in thoughts)
        match self._manner.thinking:
            case "reasoning_details":
                message["reasoning_details"] = [
                    entry
                    for index, part in enumerate(thoughts)
                    for entry in details_of(part, index)
                ]
            case "parts":
                content = message["content"]
                texts = [{"type": "text", "text": content}] if isinstance(content, str) else content
                thinking = {"type": "thinking", "thinking": [{"type": "text", "text": said}]}
                message["content"] = [thinking, *(texts if content else [])]
            case "":
                self._notes.lost("thinking_dropped", "messages (thinking)")
            case name:
                message[name] = said

    def _call(self, call: ToolCall) -> Json:
        written: Json = {"id": call.id}
        if call.custom and self._manner.openai:
            written["type"] = "custom"
            written["custom"] = {"name": call.name, "input": call.arguments}
        else:
            words = call.arguments if call.arguments.strip() else "{}"
            if call.custom:
                words = codec.encode({"input": call.arguments}).decode()
            written["type"] = "function"
            written["function"] = {"name": call.name, "arguments": words}
        if call.signature:
            written["extra_content"] = extra_content(call.signature, call.maker)
        if call.cache is not None:
            written["cache_control"] = marker(call.cache.ttl)
        return written


def _image(image: Image, at: str) -> Json:
    url = image.url or (join_data(image.media_type, image.data) if image.data else "")
    if not url:
        raise refuse("part_unsupported", f"{at} (image by its id)", param=at)
    inner: Json = {"url": url}
    if image.detail:
        inner["detail"] = image.detail
    return {"type": "image_url", "image_url": inner}
