"""The one error tree. An error is a machine code; everything a client may see follows from its row.

`message` is public: it never holds upstream bodies, keys, hosts, SQL or paths. `detail` is private and goes to
the log alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.core.status import Status


@dataclass(frozen=True, slots=True)
class Code:
    """What a machine code means: status name, HTTP status, whether repeating the same call can help.

    `policy`: the operator's own rules refuse; never retried and never failed over (X-3).
    """

    status: Status
    http: int
    should_retry: bool | None
    message: str
    policy: bool = False


CODES: dict[str, Code] = {
    "invalid_json": Code(Status.INVALID_ARGUMENT, 400, False, "The body is not valid JSON."),
    "invalid_encoding": Code(Status.INVALID_ARGUMENT, 400, False, "The body is not valid UTF-8."),
    "json_too_deep": Code(
        Status.INVALID_ARGUMENT, 400, False, "The JSON body is nested too deeply."
    ),
    "json_too_large": Code(
        Status.INVALID_ARGUMENT, 400, False, "The JSON body has too many elements."
    ),
    "invalid_request": Code(Status.INVALID_ARGUMENT, 400, False, "The request is not valid."),
    "invalid_path": Code(
        Status.INVALID_ARGUMENT, 400, False, "The path of the request is not valid."
    ),
    "invalid_http": Code(Status.INVALID_ARGUMENT, 400, False, "The request is not valid HTTP."),
    "missing_model": Code(Status.INVALID_ARGUMENT, 400, False, "The field `model` is required."),
    "unsupported_model": Code(
        Status.INVALID_ARGUMENT, 400, False, "No target of this model can serve this request."
    ),
    "invalid_api_key": Code(Status.UNAUTHENTICATED, 401, False, "No valid API key was given."),
    "model_not_found": Code(
        Status.NOT_FOUND, 404, False, "The model does not exist or this key may not use it."
    ),
    "not_found": Code(Status.NOT_FOUND, 404, False, "There is nothing at this address."),
    "method_not_allowed": Code(
        Status.INVALID_ARGUMENT, 405, False, "This method is not allowed at this address."
    ),
    "permission_denied": Code(Status.PERMISSION_DENIED, 403, False, "This is not allowed."),
    "request_timeout": Code(
        Status.DEADLINE_EXCEEDED, 408, False, "The request arrived too slowly."
    ),
    "request_too_large": Code(
        Status.INVALID_ARGUMENT, 413, False, "The body is larger than this gateway accepts."
    ),
    "target_too_long": Code(
        Status.INVALID_ARGUMENT, 414, False, "The address is longer than this gateway accepts."
    ),
    "unsupported_encoding": Code(
        Status.INVALID_ARGUMENT, 415, False, "Encoded request bodies are not accepted."
    ),
    "unsupported_media_type": Code(
        Status.INVALID_ARGUMENT, 415, False, "This content type is not accepted here."
    ),
    "headers_too_large": Code(
        Status.INVALID_ARGUMENT, 431, False, "The headers are larger than this gateway accepts."
    ),
    "client_gone": Code(Status.CANCELLED, 499, False, "The client closed the request."),
    "rate_limited": Code(
        Status.RESOURCE_EXHAUSTED, 429, None, "The provider refuses more requests for now."
    ),
    "internal": Code(Status.INTERNAL, 500, False, "The gateway failed to handle this request."),
    "upstream_auth": Code(
        Status.PERMISSION_DENIED, 502, False, "The provider refused the gateway's credentials."
    ),
    "upstream_error": Code(
        Status.INTERNAL, 502, None, "The provider failed to answer this request."
    ),
    "upstream_invalid_response": Code(
        Status.INTERNAL, 502, None, "The provider's answer could not be used."
    ),
    "upstream_truncated": Code(
        Status.UNAVAILABLE, 502, None, "The provider's answer ended before it was complete."
    ),
    "upstream_unavailable": Code(Status.UNAVAILABLE, 503, None, "The provider cannot be reached."),
    "overloaded": Code(
        Status.UNAVAILABLE, 503, True, "The gateway has more work than it can take."
    ),
    "draining": Code(Status.UNAVAILABLE, 503, True, "This gateway process is stopping."),
    "state_unavailable": Code(
        Status.UNAVAILABLE, 503, True, "A store that this request needs is not available."
    ),
    "upstream_timeout": Code(
        Status.DEADLINE_EXCEEDED, 504, None, "The provider did not answer in time."
    ),
    "deadline_exceeded": Code(
        Status.DEADLINE_EXCEEDED, 504, False, "The time for this request is used up."
    ),
    "budget_exceeded": Code(
        Status.RESOURCE_EXHAUSTED, 429, False, "The budget for this is used up.", policy=True
    ),
    "limit_exceeded": Code(
        Status.RESOURCE_EXHAUSTED, 429, True, "Too many requests for now.", policy=True
    ),
    "unpriced_model": Code(
        Status.FAILED_PRECONDITION,
        400,
        False,
        "The price of this model is not known, so that its budget cannot be kept.",
        policy=True,
    ),
    "guardrail_violation": Code(
        Status.INVALID_ARGUMENT,
        400,
        False,
        "A guardrail does not let this pass.",
        policy=True,
    ),
    "guardrail_failed": Code(
        Status.INTERNAL, 500, False, "A guardrail could not be asked.", policy=True
    ),
    "middleware_not_found": Code(
        Status.NOT_FOUND, 404, False, "There is no middleware of this name."
    ),
    "middleware_config": Code(
        Status.INVALID_ARGUMENT, 400, False, "The options of a middleware are not valid."
    ),
    "fallback_model_not_found": Code(
        Status.NOT_FOUND, 404, False, "The model to fall back to does not exist."
    ),
    "idempotency_mismatch": Code(
        Status.INVALID_ARGUMENT,
        422,
        False,
        "This idempotency key was used for another request.",
        policy=True,
    ),
    "idempotency_in_progress": Code(
        Status.ABORTED,
        409,
        True,
        "The first request with this idempotency key is still running.",
        policy=True,
    ),
    "idempotency_lost": Code(
        Status.ABORTED,
        409,
        False,
        "The answer to the first request with this idempotency key cannot be given again; what that request did "
        "is not known here. Use a new key to repeat it.",
        policy=True,
    ),
    "not_cached": Code(
        Status.DEADLINE_EXCEEDED,
        504,
        False,
        "The answer is not in the cache, and the request wants no other.",
    ),
    "config_invalid": Code(Status.INVALID_ARGUMENT, 400, False, "The configuration is not valid."),
}
"""Every machine code. The table in docs/api.md is generated from it."""


class GatewayError(Exception):
    """A failure with a machine code of `CODES`.

    `message` replaces the row's public text; `http` its HTTP status (an upstream's own status, relayed);
    `retry_after_s` becomes `retry-after`; `param` names the field at fault;
    `details` is public and machine-readable.
    `classified` False: nothing tells what kind of failure it is (always retried, never failed over). `reason` is
    `context` or `content_policy` where a provider refused a request for what it holds, `quota` where its money is
    out. `transport`: the connection failed, not the request. `spent`: a layer has repeated the call as often as
    it may. `open_choices`: those of the stream that it ended, as its watcher knows them.
    """

    classified = True
    reason = ""
    transport = False
    spent = False
    open_choices: Sequence[int] = ()

    def __init__(
        self,
        code: str,
        message: str = "",
        *,
        detail: str = "",
        param: str | None = None,
        http: int = 0,
        retry_after_s: float | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        row = CODES.get(code)
        if row is None:
            message = f"there is no code {code!r} in gateway.core.errors.CODES"
            raise ValueError(message)
        super().__init__(message or row.message)
        self.code = code
        self.status = row.status
        self.http = http or row.http
        self.message = message or row.message
        self.detail = detail
        self.param = param
        self.retry_after_s = retry_after_s
        self.should_retry = row.should_retry
        self.policy = row.policy
        self.details = details


class InputError(GatewayError):
    """The caller's request cannot be accepted as it is."""


class AuthError(GatewayError):
    """The caller is not known, or may not do this."""


class PolicyError(GatewayError):
    """The operator's own rules refuse; never repeated, never failed over (X-3)."""


class OverloadError(GatewayError):
    """There is no room for this request now."""


class StoreError(GatewayError):
    """A store that this request needs did not answer."""


_TRANSPORT = frozenset({"upstream_unavailable", "upstream_timeout", "upstream_truncated"})


class UpstreamError(GatewayError):
    """The provider failed. `phase` is credential, pool, connect, send, first_byte, body or answer.

    `sent` is False only while it is certain that no byte of the request left the gateway. An answer that cannot be
    used is not classified: the request, the provider or this gateway may be at fault (G-STAT-8).
    """

    def __init__(
        self,
        code: str,
        message: str = "",
        *,
        phase: str,
        sent: bool = True,
        detail: str = "",
        http: int = 0,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(code, message, detail=detail, http=http, retry_after_s=retry_after_s)
        self.phase = phase
        self.sent = sent
        self.classified = code != "upstream_invalid_response"
        self.transport = phase != "answer" and code in _TRANSPORT
