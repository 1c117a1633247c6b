"""Errors on the OpenAI side: writes the envelope, and reads what providers of all kinds put in its place."""

import re
from collections.abc import Mapping
from typing import Any, cast

from gateway.core import codec
from gateway.core.errors import GatewayError
from gateway.core.status import Status
from gateway.dialects.base import ProviderError, Redactor
from gateway.dialects.sse import frame

_TYPES = {
    Status.CANCELLED: "cancelled",
    Status.INVALID_ARGUMENT: "invalid_request_error",
    Status.NOT_FOUND: "invalid_request_error",
    Status.ALREADY_EXISTS: "invalid_request_error",
    Status.FAILED_PRECONDITION: "invalid_request_error",
    Status.OUT_OF_RANGE: "invalid_request_error",
    Status.PERMISSION_DENIED: "permission_error",
    Status.UNAUTHENTICATED: "authentication_error",
    Status.RESOURCE_EXHAUSTED: "rate_limit_error",
    Status.ABORTED: "conflict_error",
}
_SERVER_ERRORS = 500


def type_of(error: GatewayError) -> str:
    """Return OpenAI's word for an error: the gateway's and the provider's faults are server errors."""
    if error.http >= _SERVER_ERRORS:
        return "server_error"
    return _TYPES.get(error.status, "server_error")


def render_error(error: GatewayError, request_id: str) -> bytes:
    """Return the JSON body of an error of the gateway."""
    own: dict[str, Any] = {"status": str(error.status), "request_id": request_id}
    if error.details:
        own["details"] = dict(error.details)
    return codec.encode(
        {
            "error": {
                "message": error.message,
                "type": type_of(error),
                "param": error.param,
                "code": error.code,
                "gateway": own,
            }
        }
    )


_OPENAI = frozenset({"openai_chat", "openai_responses"})
_REASON_CODES = {
    "context": "context_length_exceeded",
    "policy": "content_policy_violation",
    "quota": "insufficient_quota",
}
_FOREIGN_EXTRA = frozenset({"status", "status_code", "raw_status_code", "reason"})
"""What other formats say in members that OpenAI's words say already."""


def render_provider_error(said: ProviderError, error: GatewayError, caller: str) -> bytes:
    """Return the provider's own error object where it is the caller's; else the same words in OpenAI's shape.

    A prompt that is too long has OpenAI's code for callers of another format than the provider's, whoever says so:
    clients shorten what they send by it (K08).
    """
    if said.origin and said.origin != caller:
        is_own = said.origin in _OPENAI and not isinstance(said.code, int)
        if not is_own or (said.reason and said.code is None):
            return _foreign(said, error)
    own = {"message": said.message, "type": said.type, "param": said.param, "code": said.code}
    if said.keys:
        own = {key: own[key] for key in said.keys}
    else:
        own["message"] = said.message or error.message
        own["type"] = said.type or type_of(error)
        own["code"] = error.code if said.code is None else said.code
    return codec.encode({"error": {**own, **said.extra}})


def _foreign(said: ProviderError, error: GatewayError) -> bytes:
    """Return what a provider said in another format: its message, with OpenAI's type and code for it."""
    kind = type_of(error)
    code = _REASON_CODES.get(said.reason, error.code)
    if said.reason in {"context", "policy"}:
        kind = "invalid_request_error"
    elif said.reason == "quota":
        kind = code
    elif error.status is Status.RESOURCE_EXHAUSTED:
        code = "rate_limit_exceeded"
    extra = {name: value for name, value in said.extra.items() if name not in _FOREIGN_EXTRA}
    if said.type is not None:
        extra["provider_type"] = said.type
    own = {"message": said.message or error.message, "type": kind, "param": said.param}
    return codec.encode({"error": {**own, "code": code, **extra}})


def as_stream(body: bytes) -> bytes:
    """Return an error body as the last frame of a stream, without the terminator."""
    return frame(body)


_MAX_MESSAGE = 2048
_MAX_WORD = 128
_MAX_TEXT = 65_536
_MAX_EXTRA_BYTES = 8192
_MAX_DEPTH = 6
_MOST_COMPLAINTS = 8
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_ACCOUNT = re.compile(
    r"\b((?:org|proj|user|acct|team|sk|gsk|xai|pplx|csk|nvapi|hf|fw|key)[-_]|projects?[/:]|AIza"
    r"|project_number:|accounts/)([A-Za-z0-9*_-]{6,200})"
)
_OWN_KEYS = ("message", "type", "param", "code")
_EXTRA = frozenset(
    {
        "innererror",
        "failed_generation",
        "schema_kind",
        "n_ctx",
        "n_prompt_tokens",
        "status",
        "status_code",
        "raw_status_code",
        "details",
        "metadata",
        "retry_after",
    }
)
"""Members that may pass: they explain the refusal and name no account."""
_METADATA = frozenset({"provider_name", "raw", "reasons", "model_slug", "error_type"})
_FIRST_ERROR, _LAST_ERROR = 400, 599
_MISTAKES = frozenset({400, 413, 415, 422})
"""Statuses that blame the request alone."""


def read_error(body: bytes, secrets: Redactor, *, http: int = 0) -> ProviderError:
    """Read a provider's error answer of any shape; what cannot be understood gives an error without words.

    `http`: the status that it came with; that of a caller's mistake may explain it in a plain sentence.
    """
    try:
        value: object = codec.decode(body)
    except (codec.JSONError, RecursionError):
        # Pages of proxies name hosts and versions; their words help nobody.
        return ProviderError(_sentence(body, secrets) if http in _MISTAKES else "")
    if isinstance(value, list):
        value = next(iter(cast("list[object]", value)), None)
    said = codec.as_object(value)
    if said is None:
        return ProviderError(_clean(value, secrets) if isinstance(value, str) else "")
    inner = codec.as_object(said.get("error"))
    if inner is not None:
        return _read_object(inner, secrets, own=True)
    if isinstance(said.get("error"), str):
        return _read_object({**said, "message": said["error"]}, secrets, own=False)
    return _read_object(said, secrets, own=False)


def _sentence(body: bytes, secrets: Redactor) -> str:
    """Return a body that is words and no more: a parser's complaint about the request (xAI, servers in Rust)."""
    if len(body) > _MAX_MESSAGE or not body.isascii():
        return ""
    text = body.decode().strip()
    is_sentence = text[:1].isalpha() and " " in text and "\n" not in text
    return _clean(text, secrets) if is_sentence else ""


def _read_object(said: Mapping[str, Any], secrets: Redactor, *, own: bool) -> ProviderError:
    message = said.get("message", said.get("Message"))  # AWS's front door writes it so
    if not isinstance(message, str):
        message = _detail_text(said.get("detail", message))
    code = said.get("code")
    if isinstance(code, str):
        code = _clean(code, secrets)[:_MAX_WORD]
    elif isinstance(code, bool) or not isinstance(code, int):
        code = None
    return ProviderError(
        message=_clean(message, secrets)[:_MAX_MESSAGE],
        type=_word(said.get("type"), secrets),
        code=code,
        param=_word(said.get("param"), secrets),
        extra=_read_extra(said, secrets) if own else {},
        keys=tuple(key for key in _OWN_KEYS if key in said) if own and "message" in said else (),
        http=_status_in(said),
    )


def _detail_text(detail: object) -> str:
    """Return the words of a `detail`: a text, or a list of complaints about fields (Mistral, FastAPI)."""
    if isinstance(detail, str):
        return detail
    inner = codec.as_object(detail)
    if inner is not None:
        detail = inner["detail"] if isinstance(inner.get("detail"), str | list) else [inner]
    if not isinstance(detail, list):
        return detail if isinstance(detail, str) else ""
    items = map(codec.as_object, cast("list[object]", detail)[:_MOST_COMPLAINTS])
    return "; ".join(_complaint(item) for item in items if item is not None)


def _complaint(item: Mapping[str, Any]) -> str:
    text = item.get("msg") or item.get("message")
    place = item.get("loc")
    parts = cast("list[object]", place) if isinstance(place, list) else []
    where = ".".join(str(part) for part in parts if isinstance(part, str | int))
    if not isinstance(text, str):
        return where
    return f"{where}: {text}" if where else text


def _status_in(said: Mapping[str, Any]) -> int:
    """Return the HTTP status that an error names itself, or 0."""
    for name in ("status_code", "raw_status_code", "code", "status"):
        value = said.get(name)
        text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
        if (
            len(text) == len("400")
            and text.isdecimal()
            and _FIRST_ERROR <= int(text) <= _LAST_ERROR
        ):
            return int(text)
    return 0


def _read_extra(said: Mapping[str, Any], secrets: Redactor) -> dict[str, Any]:
    extra: dict[str, Any] = {}
    for name in _EXTRA & said.keys():
        value = said[name]
        if name == "details" and not isinstance(value, str):
            continue
        if name == "metadata":
            value = {
                key: part
                for key, part in (codec.as_object(value) or {}).items()
                if key in _METADATA
            }
            if not value:
                continue
        value = _safe(value, secrets, _MAX_DEPTH)
        if len(codec.encode(value)) <= _MAX_EXTRA_BYTES:
            extra[name] = value
    return extra


def _safe(value: object, secrets: Redactor, depth: int) -> object:
    """Return a JSON value with every text cleaned; what is nested too deeply becomes null."""
    if isinstance(value, str):
        return _clean(value, secrets)
    if isinstance(value, dict | list):
        if depth == 0:
            return None
        if isinstance(value, list):
            return [_safe(item, secrets, depth - 1) for item in cast("list[object]", value)]
        fields = cast("dict[str, object]", value)
        return {
            _clean(key, secrets): _safe(item, secrets, depth - 1) for key, item in fields.items()
        }
    return value


def _word(value: object, secrets: Redactor) -> str | None:
    return _clean(value, secrets)[:_MAX_WORD] if isinstance(value, str) else None


def _clean(text: str, secrets: Redactor) -> str:
    """Return a text without control characters, known secrets, and what names an account or a key."""
    return _ACCOUNT.sub(_hide, secrets(_CONTROL.sub("", text[:_MAX_TEXT])))


def _hide(found: re.Match[str]) -> str:
    kind, name = found.groups()
    return f"{kind}[hidden]" if _has_digits(name) else found.group()


def _has_digits(name: str) -> bool:
    return "*" in name or any(character.isdigit() for character in name)
