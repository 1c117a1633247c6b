"""One classifier: what a failure is, for layers and for callers (K08)."""

from dataclasses import replace

import pytest

from gateway.core.errors import UpstreamError
from gateway.core.status import Status, classify_http
from gateway.dialects.base import ProviderError
from gateway.engine.refusal import refuse, refuse_in_stream
from tests.support.plans import account

ACCOUNT = account()


@pytest.mark.bug("K08")
@pytest.mark.contract("G-STAT-1", "G-STAT-2")
@pytest.mark.parametrize("http", range(400, 600))
def test_every_status_of_a_provider_has_one_class(http: int) -> None:
    error = refuse(ACCOUNT, http, ProviderError(""), None, endpoint="chat")

    assert error.status is classify_http(http)
    assert (error.classified, error.transport, error.policy) == (True, False, False)
    assert (error.code == "upstream_auth") == (http in {401, 402, 403})


@pytest.mark.bug("K08")
@pytest.mark.parametrize(
    ("http", "said", "reason"),
    [
        (400, ProviderError("", code="context_length_exceeded"), "context"),
        (400, ProviderError("prompt is too long: 9 tokens > 8 maximum"), "context"),
        (400, ProviderError("", code="content_filter"), "content_policy"),
        (400, ProviderError("no", type="content_policy_violation"), "content_policy"),
        (429, ProviderError("", code="insufficient_quota"), "quota"),
        (429, ProviderError("Rate limit reached, try again in 1s"), ""),
        (500, ProviderError("maximum context length"), ""),
        (400, ProviderError("wrong field"), ""),
    ],
)
def test_what_a_request_holds_is_told_from_what_it_is(
    http: int, said: ProviderError, reason: str
) -> None:
    assert refuse(ACCOUNT, http, said, None, endpoint="chat").reason == reason


@pytest.mark.contract("G-STAT-9")
def test_a_quota_that_is_out_is_not_worth_repeating_and_a_limit_of_a_while_is() -> None:
    out, limited = ProviderError("", code="insufficient_quota"), ProviderError("slow down")

    assert refuse(ACCOUNT, 429, out, None, endpoint="chat").should_retry is False
    assert refuse_in_stream(ACCOUNT, out, endpoint="chat").should_retry is False
    assert refuse(ACCOUNT, 429, limited, None, endpoint="chat").should_retry is not False


@pytest.mark.contract("G-STAT-6")
def test_no_error_is_fine() -> None:
    generous = replace(ACCOUNT, status_map={500: Status.OK})

    error = refuse(generous, 500, ProviderError(""), None, endpoint="chat")

    assert (error.status, error.http) == (Status.INTERNAL, 500)


@pytest.mark.bug("K08")
def test_an_error_inside_a_stream_is_classed_like_one_in_its_place() -> None:
    said = ProviderError("Rate limit reached, try again in 1.5s", code="rate_limit_exceeded")

    error = refuse_in_stream(ACCOUNT, said, endpoint="chat")

    assert (error.status, error.retry_after_s) == (Status.RESOURCE_EXHAUSTED, 1.5)


@pytest.mark.bug("K08")
@pytest.mark.contract("G-STAT-8")
@pytest.mark.parametrize(
    ("code", "phase", "status", "transport", "classified"),
    [
        ("upstream_unavailable", "connect", Status.UNAVAILABLE, True, True),
        ("upstream_unavailable", "first_byte", Status.UNAVAILABLE, True, True),
        ("upstream_timeout", "connect", Status.DEADLINE_EXCEEDED, True, True),
        ("upstream_timeout", "body", Status.DEADLINE_EXCEEDED, True, True),
        ("upstream_truncated", "body", Status.UNAVAILABLE, True, True),
        ("upstream_invalid_response", "first_byte", Status.INTERNAL, False, False),
        ("upstream_invalid_response", "answer", Status.INTERNAL, False, False),
        ("upstream_unavailable", "answer", Status.UNAVAILABLE, False, True),
        ("deadline_exceeded", "first_byte", Status.DEADLINE_EXCEEDED, False, True),
        ("overloaded", "pool", Status.UNAVAILABLE, False, True),
    ],
)
def test_a_connection_that_failed_is_told_from_an_answer_that_is_none(
    code: str, phase: str, status: Status, transport: bool, classified: bool
) -> None:
    error = UpstreamError(code, phase=phase)

    assert (error.status, error.transport, error.classified) == (status, transport, classified)
