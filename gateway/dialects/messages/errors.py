"""Errors in the envelope of Messages, the gateway's own and what providers said, and what kind they are."""

from dataclasses import replace
from typing import Any

from gateway.core import codec
from gateway.core.errors import GatewayError, UpstreamError
from gateway.core.status import Status
from gateway.dialects import openai_classes, openai_errors
from gateway.dialects.base import AnswerIsError, ProviderError, Redactor
from gateway.dialects.sse import frame

_BY_HTTP = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_BY_STATUS = {
    Status.NOT_FOUND: "not_found_error",
    Status.PERMISSION_DENIED: "permission_error",
    Status.UNAUTHENTICATED: "authentication_error",
    Status.RESOURCE_EXHAUSTED: "rate_limit_error",
    Status.DEADLINE_EXCEEDED: "timeout_error",
}
_KNOWN = frozenset({*_BY_HTTP.values(), "api_error"})
_CLASSES = {"billing_error": "quota", "authentication_error": "auth", "permission_error": "auth"}
_TO_HTTP = {name: http for http, name in _BY_HTTP.items()} | {"api_error": 500}
_SERVER_ERRORS = 500
_OWN_FORMATS = frozenset({"", "anthropic_messages"})
_TOO_LONG = "prompt is too long"


def type_of(error: GatewayError) -> str:
    """Return the format's word for an error: by its HTTP status, then by its name."""
    if error.code in {"overloaded", "draining"}:
        return "overloaded_error"
    known = _BY_HTTP.get(error.http)
    if known is not None:
        return known
    if error.http >= _SERVER_ERRORS:
        return "api_error"
    return _BY_STATUS.get(error.status, "invalid_request_error")


def render_error(error: GatewayError, request_id: str) -> bytes:
    """Return the JSON body of an error of the gateway; what only a machine needs stands under `gateway`."""
    own: dict[str, Any] = {
        "code": error.code,
        "status": str(error.status),
        "request_id": request_id,
    }
    if error.param is not None:
        own["param"] = error.param
    if error.details:
        own["details"] = dict(error.details)
    said = {"type": type_of(error), "message": error.message, "gateway": own}
    return _envelope(said, request_id)


def render_provider_error(said: ProviderError, error: GatewayError, request_id: str) -> bytes:
    """Return a provider's own words in this envelope; its type where the format knows it and the status allows it.

    A prompt that is too long begins with Anthropic's words for it: clients shorten what they send by them (K08).
    """
    is_own = said.origin in _OWN_FORMATS
    message = said.message or error.message
    is_named = said.type in _KNOWN and (is_own or error.http not in _BY_HTTP)
    kind = said.type if said.type is not None and is_named else type_of(error)
    if not is_own and said.reason == "context":
        kind = "invalid_request_error"
        if _TOO_LONG not in message.lower():
            message = f"{_TOO_LONG}: {message}"
    own: dict[str, Any] = {"type": kind, "message": message}
    extra = {key: value for key, value in said.extra.items() if key not in own}
    code = said.code if is_own or isinstance(said.code, str) else None
    named = (("code", code), ("param", said.param))
    extra.update({key: value for key, value in named if value is not None})
    if said.type is not None and said.type != kind:
        extra["provider_type"] = said.type
    return _envelope({**own, **extra}, request_id)


def as_stream(body: bytes) -> bytes:
    """Return an error body as the last event of a stream; no `message_stop` comes after it."""
    return frame(body, b"error")


def read_error(body: bytes, secrets: Redactor) -> ProviderError:
    """Read an error of any shape; where nothing else tells a status, the format's own type does."""
    said = openai_errors.read_error(body, secrets)
    http = said.http or _TO_HTTP.get(said.type or "", 0)
    return said if http == said.http else replace(said, http=http)


def not_an_answer(body: bytes, secrets: Redactor, detail: str) -> UpstreamError:
    """Return the error for a success answer that is none: an AnswerIsError where it holds an error instead."""
    try:
        value = codec.as_object(codec.decode(body)) or {}
    except (codec.JSONError, RecursionError, UnicodeDecodeError):
        value = {}
    if value.get("error") or value.get("type") == "error":
        return AnswerIsError(read_error(body, secrets))
    return UpstreamError("upstream_invalid_response", phase="answer", detail=detail)


def error_class(said: ProviderError, http: int) -> str:
    """Classify an error: context, policy, quota, auth or other; by the format's own types first (K08)."""
    found = openai_classes.error_class(said, http)
    if found == "other" or (found == "auth" and said.type == "billing_error"):
        return _CLASSES.get(said.type or "", found)
    return found


def _envelope(said: dict[str, Any], request_id: str) -> bytes:
    return codec.encode({"type": "error", "error": said, "request_id": request_id})
