"""Pictures, sounds and documents inside of addresses: `data:image/png;base64,...`, read and written."""

import base64
import binascii
from urllib.parse import unquote_to_bytes

from gateway.core.errors import InputError

_BEGINNINGS = (
    ("iVBOR", "image/png"),
    ("/9j/", "image/jpeg"),
    ("R0lGOD", "image/gif"),
    ("UklGR", "image/webp"),
    ("JVBERi", "application/pdf"),
)
_USUAL = {"image/jpg": "image/jpeg", "audio/x-wav": "audio/wav"}
_BY_ENDING = {
    "csv": "text/csv",
    "gif": "image/gif",
    "html": "text/html",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "json": "application/json",
    "md": "text/markdown",
    "mov": "video/quicktime",
    "mp4": "video/mp4",
    "mpeg": "video/mpeg",
    "pdf": "application/pdf",
    "png": "image/png",
    "txt": "text/plain",
    "webm": "video/webm",
    "webp": "image/webp",
    "xml": "application/xml",
}


def is_data(url: str) -> bool:
    """Tell whether an address holds its own content."""
    return url[:5].lower() == "data:"


def split_data(url: str, at: str) -> tuple[str, str]:
    """Return media type and base64 of a data address; the type is "" where neither it nor the content tells.

    Raises InputError for an address without content, or one whose content cannot be read.
    """
    head, comma, data = url[5:].partition(",")
    if not comma:
        raise InputError("invalid_request", f"{at}: the data URL holds no data", param=at)
    kind, *parameters = (part.strip() for part in head.split(";"))
    if "base64" not in (parameter.lower() for parameter in parameters):
        data = base64.b64encode(unquote_to_bytes(data)).decode()
    kind = kind.lower()
    return _USUAL.get(kind, kind) or type_of(data), data


def type_of(data: str) -> str:
    """Return the media type that base64 content begins like, or ""."""
    return next((kind for begin, kind in _BEGINNINGS if data.startswith(begin)), "")


def type_named(name: str) -> str:
    """Return the media type that a file's name or address ends like, or ""."""
    ending = name.partition("?")[0].partition("#")[0].rpartition(".")[2].lower()
    return _BY_ENDING.get(ending, "")


def join_data(media_type: str, data: str) -> str:
    """Return a data address."""
    return f"data:{media_type or 'application/octet-stream'};base64,{data}"


def text_of(data: str) -> str | None:
    """Return the text that base64 holds, or None when it holds none."""
    try:
        return base64.b64decode(data, validate=True).decode()
    except (binascii.Error, ValueError):
        return None


def base64_of(text: str) -> str:
    """Return a text as base64."""
    return base64.b64encode(text.encode()).decode()
