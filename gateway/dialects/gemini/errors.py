"""Errors as Google's APIs tell them: a status word, and details that say the reason, the field and the wait."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from gateway.core import codec
from gateway.dialects import openai_classes, openai_errors
from gateway.dialects.base import ProviderError, Redactor

_AUTH = frozenset(
    {
        "API_KEY_INVALID",
        "API_KEY_SERVICE_BLOCKED",
        "API_KEY_HTTP_REFERRER_BLOCKED",
        "API_KEY_IP_ADDRESS_BLOCKED",
        "ACCESS_TOKEN_EXPIRED",
        "CREDENTIALS_MISSING",
        "CONSUMER_SUSPENDED",
        "CONSUMER_INVALID",
        "SERVICE_DISABLED",
    }
)
_QUOTA = frozenset({"BILLING_DISABLED"})
_MOST_DETAILS = 16
_TOO_MANY = 429


def read_error(body: bytes, secrets: Redactor) -> ProviderError:
    """Read an error answer: an object, or a list that holds one. `type` is the status word, `param` the field."""
    said = openai_errors.read_error(body, secrets)
    inner = _error_in(body)
    if inner is None:
        return said
    status = inner.get("status")
    extra = {name: value for name, value in said.extra.items() if name != "details"}
    param = said.param
    for detail in _details(inner):
        reason = detail.get("reason")
        if isinstance(reason, str) and reason:
            extra.setdefault("reason", secrets(reason)[:128])
        for violation in _objects(detail.get("fieldViolations")):
            field = violation.get("field")
            if param is None and isinstance(field, str):
                param = secrets(field)[:128]
    return replace(
        said,
        type=status[:128] if isinstance(status, str) else said.type,
        param=param,
        extra=extra,
        keys=(),
    )


def error_class(error: ProviderError, http: int) -> str:
    """Classify what a provider said: context, policy, quota, auth or other."""
    reason = error.extra.get("reason")
    if reason in _AUTH or error.type == "UNAUTHENTICATED":
        return "auth"
    if reason in _QUOTA or (error.type == "FAILED_PRECONDITION" and _is_billing(error.message)):
        return "quota"
    if http == _TOO_MANY:
        return "other"  # the words about plans and billing are those of every limit by the minute
    return openai_classes.error_class(error, http)


def holds_error(body: bytes) -> bool:
    """Tell whether a body, or the first of a list, is an error."""
    return bool(_error_in(body))


def _is_billing(message: str) -> bool:
    return "billing" in message.lower()


def _error_in(body: bytes) -> Mapping[str, Any] | None:
    try:
        value: object = codec.decode(body)
    except (codec.JSONError, RecursionError, UnicodeDecodeError):
        return None
    if isinstance(value, list):
        value = next(iter(cast("list[object]", value)), None)
    return codec.as_object((codec.as_object(value) or {}).get("error"))


def _details(inner: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for at, detail in enumerate(_objects(inner.get("details"))):
        if at == _MOST_DETAILS:
            return
        yield detail


def _objects(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, list):
        for item in cast("list[object]", value):
            found = codec.as_object(item)
            if found is not None:
                yield found
