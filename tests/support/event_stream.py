"""Writes frames of AWS's event streams, for upstreams that are made up."""

import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any


def frame(payload: bytes, headers: Mapping[str, str | bytes]) -> bytes:
    """Return one frame; a header that is bytes stands as it is behind its name, type included."""
    head = b"".join(_header(name, value) for name, value in headers.items())
    prelude = struct.pack(">II", len(head) + len(payload) + 16, len(head))
    body = prelude + struct.pack(">I", zlib.crc32(prelude)) + head + payload
    return body + struct.pack(">I", zlib.crc32(body))


def event(kind: str, payload: Mapping[str, Any]) -> bytes:
    """Return an event of this kind."""
    headers = {
        ":event-type": kind,
        ":content-type": "application/json",
        ":message-type": "event",
    }
    return frame(json.dumps(payload, ensure_ascii=False).encode(), headers)


def exception(kind: str, payload: Mapping[str, Any]) -> bytes:
    """Return an exception: an error that its service knows."""
    headers = {
        ":exception-type": kind,
        ":content-type": "application/json",
        ":message-type": "exception",
    }
    return frame(json.dumps(payload).encode(), headers)


def error(code: str, message: str) -> bytes:
    """Return an error that the service does not know."""
    return frame(b"", {":error-code": code, ":error-message": message, ":message-type": "error"})


def ends(body: bytes) -> list[int]:
    """Return where each frame ends, in bytes."""
    found: list[int] = []
    at = 0
    while at < len(body):
        at += struct.unpack_from(">I", body, at)[0]
        found.append(at)
    return found


def _header(name: str, value: str | bytes) -> bytes:
    head = bytes([len(name)]) + name.encode()
    if isinstance(value, bytes):
        return head + value
    text = value.encode()
    return head + b"\x07" + struct.pack(">H", len(text)) + text
