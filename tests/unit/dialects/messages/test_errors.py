"""Errors stand in the format's own envelope, and providers' words in it say what they said."""

import json
from typing import Any

import pytest

from gateway.core.errors import CODES, GatewayError, InputError, UpstreamError
from gateway.dialects.base import ProviderError, unredacted
from gateway.dialects.messages.relay import AnthropicMessages
from tests.support.grammar_messages import ERRORS, breaches

DIALECT = AnthropicMessages()


@pytest.mark.bug("K35")
@pytest.mark.parametrize("code", CODES)
def test_every_error_has_a_type_that_clients_know(code: str) -> None:
    error = GatewayError(code, details={"a": 1})
    body: dict[str, Any] = json.loads(DIALECT.render_error(error, "req_1"))

    assert ("error", "req_1") == (body["type"], body["request_id"])
    assert body["error"]["type"] in ERRORS
    assert body["error"]["message"] == error.message
    assert body["error"]["gateway"] == {
        "code": code, "status": str(error.status), "request_id": "req_1", "details": {"a": 1},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (InputError("invalid_request", param="messages.0"), "invalid_request_error"),
        (GatewayError("invalid_api_key"), "authentication_error"),
        (GatewayError("permission_denied"), "permission_error"),
        (GatewayError("model_not_found"), "not_found_error"),
        (GatewayError("request_too_large"), "request_too_large"),
        (GatewayError("limit_exceeded"), "rate_limit_error"),
        (GatewayError("budget_exceeded"), "rate_limit_error"),
        (GatewayError("overloaded"), "overloaded_error"),
        (GatewayError("draining"), "overloaded_error"),
        (UpstreamError("upstream_unavailable", phase="answer", http=529), "overloaded_error"),
        (UpstreamError("upstream_timeout", phase="body"), "timeout_error"),
        (GatewayError("deadline_exceeded"), "timeout_error"),
        (UpstreamError("upstream_error", phase="answer"), "api_error"),
        (UpstreamError("upstream_auth", phase="answer"), "api_error"),
        (GatewayError("internal"), "api_error"),
        (GatewayError("internal", http=402), "billing_error"),
        (GatewayError("idempotency_mismatch"), "invalid_request_error"),
    ],
)
def test_types_follow_from_the_status(error: GatewayError, kind: str) -> None:
    assert kind == json.loads(DIALECT.render_error(error, "r"))["error"]["type"]


def test_the_field_at_fault_is_named() -> None:
    body = json.loads(DIALECT.render_error(InputError("invalid_request", param="tools.0"), "r"))

    assert "tools.0" == body["error"]["gateway"]["param"]


@pytest.mark.bug("K04", "K37")
def test_an_error_ends_a_stream_by_the_grammar() -> None:
    frames = DIALECT.render_stream_error(GatewayError("upstream_truncated"), "req_1")

    assert [] == breaches(frames, ends="error")


WORDS = UpstreamError("upstream_unavailable", phase="answer", http=529)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            ProviderError("Overloaded", "overloaded_error", keys=("message", "type")),
            {"type": "overloaded_error", "message": "Overloaded"},
        ),
        (
            ProviderError("busy", "server_busy", code="busy", param="x", extra={"details": "d"}),
            {
                "type": "overloaded_error",
                "message": "busy",
                "code": "busy",
                "param": "x",
                "details": "d",
                "provider_type": "server_busy",
            },
        ),
        (ProviderError(""), {"type": "overloaded_error", "message": WORDS.message}),
    ],
)
def test_a_providers_words_keep_their_meaning(said: ProviderError, shown: dict[str, Any]) -> None:
    body = json.loads(DIALECT.render_provider_error(said, WORDS, "req_1"))

    assert {"type": "error", "error": shown, "request_id": "req_1"} == body
    assert [] == breaches(DIALECT.render_provider_stream_error(said, WORDS, "r"), ends="error")


@pytest.mark.bug("K08")
@pytest.mark.parametrize(
    ("http", "kind"),
    [(404, "not_found_error"), (413, "request_too_large"), (502, "invalid_request_error")],
)
def test_the_type_of_another_formats_error_is_that_of_its_status(http: int, kind: str) -> None:
    """OpenAI says `invalid_request_error` of an unknown model too."""
    said = ProviderError("no", "invalid_request_error", code="x", origin="openai_chat")
    told = UpstreamError("upstream_error", phase="answer", http=http)

    shown = json.loads(DIALECT.render_provider_error(said, told, "req_1"))["error"]

    assert shown["type"] == kind


@pytest.mark.bug("K08")
@pytest.mark.parametrize(
    ("kind", "message", "http", "found"),
    [
        ("invalid_request_error", "prompt is too long: 2 tokens > 1 maximum", 400, "context"),
        ("invalid_request_error", "Your credit balance is too low to access the API", 400, "quota"),
        ("billing_error", "Payment", 402, "quota"),
        ("authentication_error", "invalid x-api-key", 401, "auth"),
        ("permission_error", "not allowed", 403, "auth"),
        ("authentication_error", "no", 0, "auth"),
        ("overloaded_error", "Overloaded", 529, "other"),
        ("rate_limit_error", "slow down", 429, "other"),
        ("invalid_request_error", "Output blocked by content filtering policy", 400, "policy"),
    ],
)
def test_refusals_are_classified(kind: str, message: str, http: int, found: str) -> None:
    body = json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()
    error = DIALECT.read_error(http, body, unredacted)

    assert (kind, message) == (error.type, error.message)
    assert found == DIALECT.error_class(error, http)
