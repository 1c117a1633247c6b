"""Files inside of requests and answers, in base64 or in addresses, and what they say where they are texts."""

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote_to_bytes

from gateway.dialects.chat.data_url import type_named

BYTES = frozenset({"data", "file_data", "bytes"})
"""Where formats put files."""
_TYPES = ("media_type", "mime_type", "mimeType", "format")
_NAMES = ("filename", "file_name", "name", "title")
_TEXTS = ("text/", "message/")
_TEXT_WORDS = frozenset({
    "json", "xml", "yaml", "csv", "toml", "sql", "javascript", "ecmascript", "typescript", "graphql", "markdown",
    "html", "rtf", "ndjson", "jsonl", "jsonlines", "sh", "python", "form-urlencoded",
})  # fmt: skip
_BINARY = (
    "image/",
    "audio/",
    "video/",
    "font/",
    "application/pdf",
    "application/zip",
    "application/vnd.",
    "application/msword",
)
_PLAIN = str.maketrans("-_", "+/", " \t\r\n=")
_SNIFFED = 4_096
_MARKS = (
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)


class UnreadError(Exception):
    """A file that is said to be a text, and cannot be read as one."""


def text_in_address(address: str) -> str | None:
    """Return what a file in an address says; None for one that is no text. Raises UnreadError."""
    head, comma, data = address[5:].partition(",")
    if not comma:
        return None
    kind, *parameters = (part.strip().lower() for part in head.split(";"))
    if "base64" in parameters:
        return _text_of(kind, data)
    return None if _is_binary(kind) else _decoded(unquote_to_bytes(data))


def text_in_member(holder: Mapping[str, Any], text: str, *, guess: bool) -> str | None:
    """Return what a file says that stands beside its type; None for no text. Raises UnreadError.

    `guess`: one of no type may be a text.
    """
    kind = _kind_of(holder)
    return _text_of(kind, text) if kind or guess else None


def _kind_of(holder: Mapping[str, Any]) -> str:
    for name in _TYPES:
        kind = holder.get(name)
        if isinstance(kind, str) and "/" in kind:
            return kind.strip().lower()
    names = (holder.get(name) for name in _NAMES)
    return next((type_named(name) for name in names if isinstance(name, str)), "")


def _text_of(kind: str, data: str) -> str | None:
    if _is_binary(kind):
        return None
    if _is_text(kind):
        try:
            return _decoded(_bytes_of(data))
        except (Base64Error, ValueError):
            raise UnreadError from None
    try:  # the type does not tell: its beginning does
        _bytes_of(data[:_SNIFFED].translate(_PLAIN)[: _SNIFFED // 8 * 4]).decode()
    except UnicodeDecodeError as error:
        if error.reason != "unexpected end of data":
            return None
    except (Base64Error, ValueError):
        return None
    try:
        text = _bytes_of(data).decode()
    except (Base64Error, ValueError):
        return None
    return None if "\0" in text else text


def _is_binary(kind: str) -> bool:
    return kind.startswith(_BINARY) and not _is_text(kind)


def _is_text(kind: str) -> bool:
    media = kind.partition(";")[0].strip()
    if media.startswith(_TEXTS):
        return True
    words = media.partition("/")[2].replace("+", " ").replace("x-", " ").replace(".", " ").split()
    return not _TEXT_WORDS.isdisjoint(words)


def _bytes_of(data: str) -> bytes:
    """Return what base64 of either alphabet holds, blanks and missing ends or not."""
    plain = data.translate(_PLAIN)
    return b64decode(plain + "=" * (-len(plain) % 4), validate=True)


def _decoded(content: bytes) -> str:
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return content.decode(encoding)
    if b"\0" in content:
        raise UnreadError
    return content.decode("utf-8", "replace")
