"""From a provider's error answer to the error a caller sees: one classifier for all providers (K08)."""

from dataclasses import replace

from gateway.chain.plan import Account
from gateway.core.errors import UpstreamError
from gateway.core.status import Status, classify_http
from gateway.dialects.base import ProviderError, Speaks
from gateway.engine.wishes import read_wait, wait_in_words

__all__ = ["Refusal", "read_wait", "refuse", "refuse_in_stream"]

_OWN_STATUS = frozenset({400, 404, 408, 409, 413, 415, 422, 429, 500, 502, 503, 504, 529})
"""Statuses of a provider that the caller sees as they are."""
_CREDENTIAL = frozenset({401, 402, 403})
_CODES = {
    Status.INVALID_ARGUMENT: "invalid_request",
    Status.NOT_FOUND: "model_not_found",
    Status.RESOURCE_EXHAUSTED: "rate_limited",
    Status.DEADLINE_EXCEEDED: "upstream_timeout",
    Status.UNAVAILABLE: "upstream_unavailable",
}
_OBJECTS = frozenset({"files", "batches", "models"})
_FINAL = frozenset({Status.INVALID_ARGUMENT, Status.NOT_FOUND})
_TOO_MANY = 429
_REASONS = {"context": "context", "policy": "content_policy", "quota": "quota"}


class Refusal(UpstreamError):
    """A provider answered with an error. `said` is what it said, cleaned; `upstream_http` its own status.

    `kind` is how its dialect classes it. `is_credential`: the gateway's own key was refused, by whatever
    status; the next key may work. `failed_probe`: the target was known to fail and was tried with this request.
    """

    failed_probe = False

    def __init__(
        self,
        said: ProviderError,
        upstream_http: int,
        status: Status,
        wait_s: float | None,
        *,
        kind: str,
        is_model_call: bool,
    ) -> None:
        is_credential = kind == "auth"
        if is_credential:
            code, http = "upstream_auth", 0
        else:
            code = _CODES.get(status, "upstream_error")
            if status is Status.NOT_FOUND and not is_model_call:
                code = "not_found"
            http = upstream_http if upstream_http in _OWN_STATUS else 0
        super().__init__(code, phase="answer", http=http, retry_after_s=wait_s)
        self.status = status
        self.said = said
        self.upstream_http = upstream_http
        self.is_credential = is_credential
        self.reason = _REASONS.get(kind, "")
        if status in _FINAL or (upstream_http == _TOO_MANY and kind == "quota"):
            self.should_retry = False

    @property
    def is_quota(self) -> bool:
        """Whether this key must rest."""
        return self.status is Status.RESOURCE_EXHAUSTED


def refuse(
    account: Account,
    http: int,
    said: ProviderError,
    wait_s: float | None,
    *,
    endpoint: str,
    side: Speaks | None = None,
) -> Refusal:
    """Build the error for an answer, by the provider's own `status_map` first; `side` reads it, if given."""
    status = account.status_map.get(http) or classify_http(http)
    if status is Status.OK:
        status = Status.INTERNAL
    speaker = side or account.dialect
    kind = "auth" if http in _CREDENTIAL else speaker.error_class(said, http)
    said = replace(said, origin=speaker.name, reason=kind if kind in _REASONS else "")
    is_model_call = endpoint not in _OBJECTS
    return Refusal(said, http, status, wait_s, kind=kind, is_model_call=is_model_call)


_WORDS: tuple[tuple[str, int], ...] = (
    ("rate_limit", 429),
    ("quota", 429),
    ("overloaded", 503),
    ("unavailable", 503),
    ("timeout", 504),
    ("invalid_request", 400),
    ("tool_use_failed", 400),
)


def refuse_in_stream(
    account: Account, said: ProviderError, *, endpoint: str, side: Speaks | None = None
) -> Refusal:
    """Build the error for an error event under status 200: its own code tells the status, else its words."""
    wait_s = wait_in_words(said.message.encode())
    return refuse(account, _status_said(said), said, wait_s, endpoint=endpoint, side=side)


def _status_said(said: ProviderError) -> int:
    if said.http:
        return said.http
    for value in (said.code, said.type):
        text = str(value or "")
        if text.isdigit() and 400 <= int(text) <= 599:
            return int(text)
        for word, http in _WORDS:
            if word in text:
                return http
    return 502
