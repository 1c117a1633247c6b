"""Failures in this format: told inside streams, and read out of answers and events that hold one."""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.core import codec
from gateway.core.codec import as_object
from gateway.dialects.base import ProviderError, Redactor
from gateway.dialects.openai_errors import read_error
from gateway.dialects.responses.script import Script, Unfinished

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


def as_failed(body: bytes, choices: Sequence[int]) -> bytes:
    """Return a plain error's body as the events that end a stream: `error`, then the response that failed.

    The error's members stand in `error`, on which OpenAI's clients raise, and beside `type`, where its types want
    them. The response is told where one has begun: `choices` of its watcher know it, and the numbers (B123).
    """
    error = as_object((as_object(codec.decode(body)) or {}).get("error")) or {}
    code, message = error.get("code"), str(error.get("message") or "")
    word = None if code is None else str(code)
    script = choices.script if isinstance(choices, Unfinished) else Script({})
    said = {"code": word, "message": message, "param": error.get("param"), "error": error}
    script.emit("error", said)
    if script.head:
        failed = script.response(
            "failed", error={"code": word or "server_error", "message": message}
        )
        script.emit("response.failed", {"response": failed})
    return script.take()
