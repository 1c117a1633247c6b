"""Neutral parts as parts of a content."""

import base64
import mimetypes
from collections.abc import Mapping
from typing import Any

from gateway.core import codec
from gateway.core.message import (
    Audio,
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

_ORIGIN = "gemini"
_BESIDE = frozenset({"groundingMetadata", "urlContextMetadata"})
"""Items of an answer that are no parts and are not sent back."""
_SOUNDS = {"mp3": "audio/mpeg", "wav": "audio/wav", "pcm16": "audio/l16"}
FORMATS = {"mpeg": "mp3", "x-wav": "wav"}
"""Formats of sounds by what their media types call them."""
_PLAIN = "text/plain"
_ANY = "application/octet-stream"
_VIDEOS = ("https://youtu.be/", "https://www.youtube.com/", "https://youtube.com/")
_FILES = "https://generativelanguage.googleapis.com/"


def write_part(part: Part, notes: Notes) -> dict[str, Any] | None:
    """Return a part of a message that is no call and no result; None for what is not sent."""
    match part:
        case Text():
            sealed = part.signature and part.maker == _ORIGIN
            return {"text": part.text, **({"thoughtSignature": part.signature} if sealed else {})}
        case Refusal():
            return {"text": part.text}
        case Thinking():
            return _thinking(part)
        case Image():
            return _image(part, notes)
        case Audio():
            if not part.data:
                raise refuse("part_unsupported", "audio.id")
            kind = _SOUNDS.get(part.format, f"audio/{part.format}")
            return {"inlineData": {"mimeType": kind, "data": part.data}}
        case File():
            return _file(part)
        case Opaque():
            if part.origin != _ORIGIN:
                notes.lost("item_dropped", part.kind)
                return None
            return None if part.kind in _BESIDE else dict(part.value)
        case ToolCall() | ToolResult():
            raise refuse("part_unsupported", "a tool call or result in the wrong place")


def write_call(call: ToolCall, *, with_id: bool) -> dict[str, Any]:
    """Return a call; its arguments are a JSON object, byte for byte as the model wrote them."""
    arguments = call.arguments.strip()
    function: dict[str, Any] = {
        "name": call.name,
        "args": codec.Raw(arguments.encode()) if arguments else {},
    }
    if with_id:
        function["id"] = call.id
    part: dict[str, Any] = {"functionCall": function}
    if call.signature and call.maker == _ORIGIN:
        part["thoughtSignature"] = call.signature
    return part


def write_result(result: ToolResult, name: str, notes: Notes, *, with_id: bool) -> dict[str, Any]:
    """Return what a tool returned: a JSON object as it is, other texts as its output; media beside it."""
    texts: list[str] = []
    media: list[dict[str, Any]] = []
    for part in result.parts:
        if isinstance(part, Text):
            texts.append(part.text)
            continue
        written = write_part(part, notes)
        if written is not None:
            media.append(written)
    function: dict[str, Any] = {"name": name, "response": _response(result, "\n".join(texts))}
    if media:
        function["parts"] = media
    if with_id:
        function["id"] = result.call_id
    return {"functionResponse": function}


def _response(result: ToolResult, text: str) -> Mapping[str, Any] | codec.Raw:
    if result.is_error:
        return {"error": text}
    if text.lstrip().startswith("{"):
        try:
            if codec.as_object(codec.decode(text)) is not None:
                return codec.Raw(text.strip().encode())
        except (codec.JSONError, RecursionError, UnicodeError):
            pass
    return {"output": text}


def _thinking(part: Thinking) -> dict[str, Any] | None:
    """Return sealed thoughts; a seal without words came in an empty text, and goes back in one (K32)."""
    if part.maker != _ORIGIN or not part.signature:
        return None
    if not part.text:
        return {"text": "", "thoughtSignature": part.signature}
    return {"text": part.text, "thought": True, "thoughtSignature": part.signature}


def _image(part: Image, notes: Notes) -> dict[str, Any]:
    if part.detail not in {"", "auto"}:
        notes.lost("field_unsupported", "detail")
    if part.data:
        return {"inlineData": {"mimeType": part.media_type or "image/png", "data": part.data}}
    return _by_address(part.url or part.file_id, part.media_type or _guess(part.url, "image/jpeg"))


def _file(part: File) -> dict[str, Any]:
    if part.text:
        encoded = base64.b64encode(part.text.encode()).decode()
        return {"inlineData": {"mimeType": part.media_type or _PLAIN, "data": encoded}}
    if part.data:
        kind = part.media_type or _guess(part.name, _ANY)
        return {"inlineData": {"mimeType": kind, "data": part.data}}
    return _by_address(part.url or part.file_id, part.media_type or _guess(part.url, ""))


def _by_address(address: str, kind: str) -> dict[str, Any]:
    """Return a file by its address: of the provider's own store, of a bucket, or on the web."""
    if address.startswith("files/"):
        address = f"{_FILES}v1beta/{address}"
    if not address.startswith(("https://", "gs://")):
        raise refuse("part_unsupported", "a file by an address that is neither https nor gs")
    return {"fileData": {"fileUri": address, **({"mimeType": kind} if kind else {})}}


def _guess(name: str, otherwise: str) -> str:
    if name.startswith(_VIDEOS):
        return "video/mp4"
    path = name.partition("?")[0].partition("#")[0]
    return mimetypes.guess_type(path)[0] or otherwise
