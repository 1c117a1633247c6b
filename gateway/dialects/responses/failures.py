"""Failures in this format: told inside streams, and read out of answers and events that hold one."""

from collections.abc import Mapping
from typing import Any

from gateway.core import codec
from gateway.core.codec import as_object
from gateway.dialects.base import ProviderError, Redactor
from gateway.dialects.openai_errors import read_error
from gateway.dialects.sse import frame

_FLAT = ("message", "code", "param")
_CANCELLED = {"message": "The response was cancelled.", "code": "cancelled"}


def error_of(event: Mapping[str, Any], secrets: Redactor) -> ProviderError:
    """Read what an `error` event says: in an object of its own, or beside its type as the SDKs have it."""
    inner = as_object(event.get("error"))
    if inner is None:
        inner = {name: event[name] for name in _FLAT if event.get(name) is not None}
    return read_error(codec.encode({"error": inner}), secrets)


def failure_of(response: Mapping[str, Any], secrets: Redactor) -> ProviderError:
    """Read why a response failed or was cancelled."""
    inner = as_object(response.get("error"))
    if not inner:
        inner = _CANCELLED if response.get("status") == "cancelled" else {}
    return read_error(codec.encode({"error": inner}), secrets)


def error_frame(body: bytes, number: int) -> bytes:
    """Return a plain error's body as the event that ends a stream.

    Its members stand in `error`, on which OpenAI's clients raise, and beside `type`, where its types want them.
    """
    error = as_object((as_object(codec.decode(body)) or {}).get("error")) or {}
    code = error.get("code")
    event = {
        "type": "error",
        "sequence_number": number,
        "code": None if code is None else str(code),
        "message": error.get("message") or "",
        "param": error.get("param"),
        "error": error,
    }
    return frame(codec.encode(event), b"error")
