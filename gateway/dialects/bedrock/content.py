"""Writes a history as the messages of Converse: two roles that take turns, results of tools among the user's."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from gateway.core import codec
from gateway.core.message import (
    Audio,
    CacheMark,
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
from gateway.dialects.bedrock.answers import NAME, OWN_SEALER
from gateway.dialects.bedrock.media import Block, Names, audio_block, file_block, image_block
from gateway.dialects.bedrock.models import Family
from gateway.dialects.fit.parts import beginning
from gateway.dialects.losses import Notes, refuse

_SYSTEM = frozenset({"system", "developer"})
_TTLS = frozenset({"5m", "1h"})
WireRole = Literal["user", "assistant"]


class Content:
    """Writes the messages of one request."""

    __slots__ = ("_family", "_names", "_notes")

    def __init__(self, family: Family, notes: Notes) -> None:
        self._family = family
        self._notes = notes
        self._names = Names()

    def system(self, messages: Sequence[Message]) -> list[Block]:
        """Return the system prompts, which stand before all others."""
        blocks: list[Block] = []
        for message in messages:
            if message.role not in _SYSTEM:
                continue
            for part in message.parts:
                if not isinstance(part, Text):
                    raise refuse(
                        "part_unsupported", "system prompt that is no text", param="system"
                    )
                blocks += ({"text": part.text}, *self.marks(part.cache))
        return blocks

    def messages(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        """Return the turns; neighbours of one role on the wire become one (B105)."""
        turns: list[dict[str, Any]] = []
        for at, message in enumerate(messages):
            if message.role in _SYSTEM:
                continue
            if message.name:
                self._notes.lost("field_unsupported", "name of a message")
            role: WireRole = "assistant" if message.role == "assistant" else "user"
            blocks = self._blocks(message.parts, f"messages.{at}")
            if turns and turns[-1]["role"] == role:
                turns[-1]["content"] += blocks
            elif blocks:
                turns.append({"role": role, "content": blocks})
        for turn in turns:
            _name_documents(turn["content"])
        if turns and turns[-1]["role"] == "assistant" and "text" in turns[-1]["content"][-1]:
            last = turns[-1]["content"][-1]
            last["text"] = beginning(last["text"], self._notes)
        return turns

    def marks(self, mark: CacheMark | None) -> tuple[Block, ...]:
        """Return the marker that stands behind what may be cached, if it may."""
        if mark is None:
            return ()
        point = {"type": "default"}
        if mark.ttl in _TTLS and not self._family.is_nova:
            point["ttl"] = mark.ttl
        elif mark.ttl not in {"", "5m"}:
            self._notes.lost("value_changed", "ttl of a cache marker")
        return ({"cachePoint": point},)

    def _blocks(self, parts: Iterable[Part], at: str) -> list[Block]:
        blocks: list[Block] = []
        for part in parts:
            block = self._block(part, at)
            if block is not None:
                blocks += (block, *self.marks(_mark_of(part)))
        return blocks

    def _block(self, part: Part, at: str) -> Block | None:
        match part:
            case Text(text) | Refusal(text):
                return {"text": text}
            case ToolCall():
                return _call(part, at)
            case ToolResult():
                return self._result(part, at)
            case Thinking():
                return _reasoning(part)
            case Image():
                return image_block(part, at, self._notes)
            case File():
                return file_block(part, at, self._names)
            case Audio():
                return audio_block(part, at)
            case Opaque(origin, kind, value):
                if origin == NAME:
                    return dict(value)
                self._notes.lost("item_dropped", kind)
                return None

    def _result(self, result: ToolResult, at: str) -> Block:
        content = [block for part in result.parts if (block := self._block(part, at)) is not None]
        if not self._family.takes_text_results:
            content = [_as_object(block) for block in content]
        written: Block = {"toolUseId": result.call_id, "content": content}
        if result.is_error:
            if self._family.takes_result_status:
                written["status"] = "error"
            else:
                self._notes.lost("field_unsupported", "the mark of a tool result as an error")
        return {"toolResult": written}


def _as_object(block: Block) -> Block:
    """Return a text as JSON: as the object that it is, else within one."""
    if "text" not in block:
        return block
    text = block["text"]
    try:
        found = codec.as_object(codec.decode(text))
    except (codec.JSONError, RecursionError):
        found = None
    return {"json": {"result": text} if found is None else found}


def _mark_of(part: Part) -> CacheMark | None:
    """Return the mark behind a part; one within a result moves behind it, for none may stand within."""
    match part:
        case Text(cache=mark) | Image(cache=mark) | File(cache=mark) | ToolCall(cache=mark):
            return mark
        case ToolResult(cache=mark):
            return mark or next((found for each in part.parts if (found := _mark_of(each))), None)
        case _:
            return None


def _call(call: ToolCall, at: str) -> Block:
    given: Mapping[str, Any] = {"input": call.arguments} if call.custom else _arguments(call, at)
    return {"toolUse": {"toolUseId": call.id, "name": call.name, "input": given}}


def _arguments(call: ToolCall, at: str) -> Mapping[str, Any]:
    """Decode arguments; a grammar asks for objects, so that anything else is the history's fault (B112)."""
    if not call.arguments.strip():
        return {}
    try:
        found = codec.as_object(codec.decode(call.arguments))
    except (codec.JSONError, RecursionError):
        found = None
    if found is None:
        raise refuse("arguments_invalid", f"tool call {call.id}", param=at)
    return found


def _reasoning(thinking: Thinking) -> Block | None:
    if thinking.redacted:
        data = thinking.redacted
        if thinking.maker != OWN_SEALER:
            data = base64.b64encode(data.encode()).decode()
        return {"reasoningContent": {"redactedContent": data}}
    if not (thinking.text or thinking.signature):
        return None
    said = {"text": thinking.text}
    if thinking.signature:
        said["signature"] = thinking.signature
    return {"reasoningContent": {"reasoningText": said}}


def _name_documents(blocks: list[Block]) -> None:
    """Give a turn of documents alone the text that Converse asks for: their names."""
    documents = [block["document"]["name"] for block in blocks if "document" in block]
    if documents and not any("text" in block for block in blocks):
        blocks.insert(0, {"text": ", ".join(documents)})
