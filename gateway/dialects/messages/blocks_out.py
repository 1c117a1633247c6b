"""Parts of messages and answers, written as content blocks."""

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Sequence
from typing import Any

from gateway.core import codec
from gateway.core.message import (
    Audio,
    Bag,
    CacheMark,
    File,
    Image,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from gateway.dialects.losses import Notes, refuse
from gateway.dialects.messages.blocks_in import DIALECT, PDF
from gateway.dialects.messages.events import BROKEN
from gateway.dialects.within import Within, put_back

_MAGIC = (
    ("/9j/", "image/jpeg"),
    ("iVBOR", "image/png"),
    ("R0lGOD", "image/gif"),
    ("UklGR", "image/webp"),
    ("JVBER", PDF),
)
_Marked = Text | Image | File | ToolCall | ToolResult
_PICTURES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_PLAIN = re.compile(r"text/|application/(?:json|xml|x-?yaml|javascript)")


class BlockWriter:
    """Writes the parts of one request; `origin` is the dialect that it was read from.

    Raises InputError `invalid_request` for what must not be lost.
    """

    def __init__(self, origin: str, notes: Notes) -> None:
        self._own = origin == DIALECT
        self._notes = notes

    def write_all(self, parts: Sequence[Part]) -> list[dict[str, Any]]:
        """Return the blocks of these parts."""
        return [block for part in parts if (block := self.write(part)) is not None]

    def write(self, part: Part) -> dict[str, Any] | None:
        """Return the block of a part, None for one that was left out."""
        match part:
            case Text():
                return self._text(part)
            case ToolCall():
                return self._call(part)
            case ToolResult():
                return self._result(part)
            case Thinking():
                return self._thinking(part)
            case Image():
                return self._image(part)
            case File():
                return self._file(part)
            case Refusal():
                return {"type": "text", "text": part.text}
            case Opaque():
                return self._opaque(part)
            case Audio():
                raise refuse("part_unsupported", "audio")

    def _text(self, part: Text) -> dict[str, Any]:
        block: dict[str, Any] = {"type": "text", "text": part.text}
        cited = [citation.value for citation in part.citations if citation.origin == DIALECT]
        if cited:
            block["citations"] = cited
        return self._full(block, part)

    def _thinking(self, part: Thinking) -> dict[str, Any] | None:
        if part.maker != "anthropic":
            self._notes.lost("thinking_dropped", "reasoning")
            return None
        if part.redacted:
            return self.with_rest({"type": "redacted_thinking", "data": part.redacted}, part.extra)
        block = {"type": "thinking", "thinking": part.text, "signature": part.signature}
        return self.with_rest(block, part.extra)

    def _call(self, part: ToolCall) -> dict[str, Any]:
        given = {"input": part.arguments} if part.custom else read_arguments(part.arguments)
        if given is None:
            raise refuse("arguments_invalid", f"the call {part.id} of {part.name}")
        block = {"type": "tool_use", "id": part.id, "name": part.name, "input": given}
        return self._full(block, part)

    def _result(self, part: ToolResult) -> dict[str, Any]:
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": part.call_id}
        match part.parts:
            case ():
                pass
            case (Text(text=text, cache=None, citations=(), extra=extra),) if not extra:
                block["content"] = text
            case several:
                block["content"] = self.write_all(several)
        if part.is_error:
            block["is_error"] = True
        return self._full(block, part)

    def _image(self, part: Image) -> dict[str, Any]:
        if part.detail not in {"", "auto"}:
            self._notes.lost("field_unsupported", "detail")
        if part.file_id:
            source = self._file_id(part.file_id)
        elif part.url:
            source = {"type": "url", "url": part.url}
        else:
            source = _picture(part.media_type, part.data)
        block = {"type": "image", "source": source}
        return self._full(block, part)

    def _file(self, part: File) -> dict[str, Any]:
        kind = part.media_type.partition(";")[0].strip().lower()
        kept = part.extra.get("source") if self._own else None
        if kind in _PICTURES and (part.data or part.url):
            return self._image(Image(kind, part.data, part.url, cache=part.cache, extra=part.extra))
        block: dict[str, Any] = {"type": "document"}
        if isinstance(kept, dict) and not isinstance(kept, Within):
            block["source"] = kept
        elif part.file_id:
            block["source"] = self._file_id(part.file_id)
        elif part.url and kind in {"", PDF}:
            block["source"] = {"type": "url", "url": part.url}
        else:
            block["source"] = _document(kind, part)
        if part.name:
            block["title"] = part.name
        return self._full(block, part)

    def _file_id(self, file_id: str) -> dict[str, Any]:
        if not self._own:
            raise refuse("part_unsupported", f"the file {file_id} of another provider")
        return {"type": "file", "file_id": file_id}

    def _opaque(self, part: Opaque) -> dict[str, Any] | None:
        if part.origin == DIALECT:
            return dict(part.value)
        self._notes.lost("item_dropped", part.kind)
        return None

    def _full(self, block: dict[str, Any], part: _Marked) -> dict[str, Any]:
        """Return a block with its marker, and what only this format knows, of a caller who speaks it."""
        if part.cache is not None:
            block["cache_control"] = write_mark(part.cache)
        return self.with_rest(block, part.extra)

    def with_rest(self, block: dict[str, Any], extra: Bag) -> dict[str, Any]:
        """Return a block or message with the members that only this format knows, of a caller who speaks it."""
        return put_back(block, extra, self._notes) if self._own and extra else block


def read_arguments(arguments: str) -> dict[str, Any] | None:
    """Return the arguments of a call as an object, {} for none; None when they are no object."""
    if not arguments.strip():
        return {}
    try:
        return codec.as_object(codec.decode(arguments))
    except BROKEN:
        return None


def _picture(media_type: str, data: str) -> dict[str, Any]:
    kind = _kind(media_type.partition(";")[0].strip().lower(), data)
    kind = "image/jpeg" if kind == "image/jpg" else kind
    if kind not in _PICTURES:
        raise refuse("part_unsupported", f"a picture of the type {media_type or 'unknown'}")
    return {"type": "base64", "media_type": kind, "data": data}


def _document(kind: str, part: File) -> dict[str, Any]:
    if part.url:
        raise refuse("part_unsupported", f"the address of a file of the type {kind}")
    if not part.data:
        return {"type": "text", "media_type": "text/plain", "data": part.text}
    kind = _kind(kind, part.data)
    if kind == PDF:
        return {"type": "base64", "media_type": kind, "data": part.data}
    if _PLAIN.match(kind):
        try:
            text = b64decode(part.data, validate=True).decode()
        except (NotBase64, UnicodeDecodeError):
            raise refuse("part_unsupported", f"the file {part.name or kind}") from None
        return {"type": "text", "media_type": "text/plain", "data": text}
    raise refuse("part_unsupported", f"a file of the type {kind or 'unknown'}")


def _kind(told: str, data: str) -> str:
    """Return the type of base64 data: as told, else by how it begins."""
    if told and told not in {"application/octet-stream", "image/*"}:
        return told
    return next((kind for magic, kind in _MAGIC if data.startswith(magic)), told)


def write_mark(cache: CacheMark) -> dict[str, Any]:
    """Return a cache marker."""
    return {"type": "ephemeral", "ttl": cache.ttl} if cache.ttl else {"type": "ephemeral"}
