"""Whose fault a failed call was: the target's, its credential's, a quota's, or nobody's here (K12).

A caller's mistake, a prompt that is too long or not allowed, a client that left and a limit of this gateway say
nothing about a provider.
"""

import re
from enum import Enum

from gateway.core.errors import GatewayError, UpstreamError
from gateway.core.status import Status
from gateway.dialects.base import Speaks
from gateway.engine.refusal import Refusal


class Blame(Enum):
    """What a failure counts against.

    HOST: the breaker of all that is reached there. TARGET: its breaker. OVERLOAD: the number of calls at once.
    QUOTA: the credential waits as told, and the number of calls at once. KEY: the credential's breaker. NOBODY:
    nothing.
    """

    NOBODY = 0
    TARGET = 1
    OVERLOAD = 2
    QUOTA = 3
    KEY = 4
    HOST = 5


_FAULTS = frozenset({Status.INTERNAL, Status.UNAVAILABLE, Status.DEADLINE_EXCEEDED})
_BROKEN = frozenset(
    {
        "upstream_unavailable",
        "upstream_timeout",
        "upstream_invalid_response",
        "upstream_truncated",
        "upstream_error",
    }
)
_FORBIDDEN, _UNAVAILABLE, _OVERLOADED = 403, 503, 529
_CALLERS = frozenset({"context", "policy"})
_FULL = re.compile(
    r"over_?load|capacity|too many|busy|throttl|slow ?down|queue|high (?:demand|load|traffic)"
    r"|concurren|rate.?limit",
    re.IGNORECASE,
)


def blame(error: GatewayError, dialect: Speaks) -> Blame:
    """Tell whose fault an error of a call is; `dialect` reads what the provider said."""
    if isinstance(error, Refusal):
        return _of_refusal(error, dialect)
    if isinstance(error, UpstreamError) and (
        error.code == "upstream_auth" or error.phase == "credential"
    ):
        return Blame.KEY  # no token could be had for it
    if not isinstance(error, UpstreamError) or error.code not in _BROKEN:
        return Blame.NOBODY
    if error.phase == "connect":
        return Blame.HOST
    if error.code == "upstream_timeout" and error.phase == "send":
        return Blame.NOBODY  # as likely a caller who sends its body slowly
    return Blame.TARGET


def _of_refusal(error: Refusal, dialect: Speaks) -> Blame:
    http, said = error.upstream_http, error.said
    if error.reason in {"context", "content_policy"}:
        return Blame.NOBODY
    if http == _FORBIDDEN and dialect.error_class(said, http) in _CALLERS:
        return Blame.NOBODY  # some providers refuse prompts by the status of a bad key
    if error.is_credential or error.reason == "quota":
        return Blame.KEY
    if error.status is Status.RESOURCE_EXHAUSTED:
        return Blame.QUOTA
    if error.status not in _FAULTS:
        return Blame.NOBODY
    if http == _OVERLOADED or (
        http == _UNAVAILABLE and _FULL.search(f"{said.code or ''} {said.type or ''} {said.message}")
    ):
        return Blame.OVERLOAD
    return Blame.TARGET


def blame_code(code: str) -> Blame:
    """Tell whose fault it is that an answer ended early, by its machine code alone."""
    return Blame.TARGET if code in _BROKEN else Blame.NOBODY
