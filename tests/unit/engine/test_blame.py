"""Whose fault each class of failure is, and what that does to the health of a target and its credential."""

import pytest

from gateway.core.errors import (
    CODES,
    GatewayError,
    InputError,
    OverloadError,
    StoreError,
    UpstreamError,
)
from gateway.dialects.base import ProviderError
from gateway.dialects.registry import DIALECTS
from gateway.engine.blame import Blame, blame, blame_code
from gateway.engine.refusal import Refusal, refuse
from tests.support.plans import account


def refused(
    http: int, message: str = "because", code: str | None = None, wait_s: float | None = None
) -> Refusal:
    said = ProviderError(message, type="t", code=code)
    return refuse(account(), http, said, wait_s, endpoint="chat")


def failed(code: str, phase: str, *, sent: bool = True) -> UpstreamError:
    return UpstreamError(code, phase=phase, sent=sent)


CASES: dict[str, tuple[GatewayError, Blame]] = {
    "refused connection": (failed("upstream_unavailable", "connect", sent=False), Blame.HOST),
    "reset before the head": (failed("upstream_unavailable", "first_byte"), Blame.TARGET),
    "slow connect": (failed("upstream_timeout", "connect", sent=False), Blame.HOST),
    "no first byte": (failed("upstream_timeout", "first_byte"), Blame.TARGET),
    "silent body": (failed("upstream_timeout", "body"), Blame.TARGET),
    "slow upload": (failed("upstream_timeout", "send"), Blame.NOBODY),
    "cut": (failed("upstream_truncated", "body"), Blame.TARGET),
    "no token for it": (failed("upstream_auth", "credential", sent=False), Blame.KEY),
    "nobody to ask for one": (failed("upstream_unavailable", "credential", sent=False), Blame.KEY),
    "a token that is late": (failed("upstream_timeout", "credential", sent=False), Blame.KEY),
    "nonsense": (failed("upstream_invalid_response", "answer"), Blame.TARGET),
    "our own pool is full": (failed("overloaded", "pool", sent=False), Blame.NOBODY),
    "we are leaving": (failed("draining", "pool", sent=False), Blame.NOBODY),
    "the caller's deadline": (failed("deadline_exceeded", "first_byte"), Blame.NOBODY),
    "the caller's body": (InputError("request_too_large"), Blame.NOBODY),
    "the client left": (GatewayError("client_gone"), Blame.NOBODY),
    "a tenant's limit": (GatewayError("limit_exceeded"), Blame.NOBODY),
    "a tenant's budget": (GatewayError("budget_exceeded"), Blame.NOBODY),
    "our store": (StoreError("state_unavailable"), Blame.NOBODY),
    "our load": (OverloadError("overloaded"), Blame.NOBODY),
    "a bug": (GatewayError("internal"), Blame.NOBODY),
    "400": (refused(400), Blame.NOBODY),
    "400 context": (refused(400, code="context_length_exceeded"), Blame.NOBODY),
    "500 context": (refused(500, code="context_length_exceeded"), Blame.NOBODY),
    "400 policy": (refused(400, code="content_filter"), Blame.NOBODY),
    "400 with a refused key": (refused(400, "Incorrect API key provided"), Blame.KEY),
    "401": (refused(401), Blame.KEY),
    "402": (refused(402), Blame.KEY),
    "403": (refused(403), Blame.KEY),
    "403 flagged prompt": (refused(403, "Your input was flagged by moderation"), Blame.NOBODY),
    "404": (refused(404), Blame.NOBODY),
    "408": (refused(408), Blame.TARGET),
    "409": (refused(409), Blame.NOBODY),
    "413": (refused(413), Blame.NOBODY),
    "418": (refused(418), Blame.NOBODY),
    "422": (refused(422), Blame.NOBODY),
    "429": (refused(429), Blame.QUOTA),
    "429 money is out": (refused(429, code="insufficient_quota"), Blame.KEY),
    "500": (refused(500), Blame.TARGET),
    "501": (refused(501), Blame.NOBODY),
    "502": (refused(502), Blame.TARGET),
    "503": (refused(503), Blame.TARGET),
    "503 overloaded": (refused(503, "The engine is currently overloaded"), Blame.OVERLOAD),
    "503 busy": (refused(503, code="server_busy"), Blame.OVERLOAD),
    "504": (refused(504), Blame.TARGET),
    "520": (refused(520), Blame.TARGET),
    "529": (refused(529), Blame.OVERLOAD),
}


@pytest.mark.bug("K12")
@pytest.mark.parametrize("case", CASES)
def test_each_failure_is_blamed_on_what_failed(case: str) -> None:
    error, whose = CASES[case]

    assert blame(error, DIALECTS["openai_chat"]) is whose


@pytest.mark.bug("K12")
def test_an_answer_that_ends_early_is_blamed_by_its_code() -> None:
    blamed = {code for code in CODES if blame_code(code) is Blame.TARGET}

    assert blamed == {
        "upstream_unavailable",
        "upstream_timeout",
        "upstream_invalid_response",
        "upstream_truncated",
        "upstream_error",
    }
    assert {blame_code(code) for code in CODES} == {Blame.TARGET, Blame.NOBODY}
