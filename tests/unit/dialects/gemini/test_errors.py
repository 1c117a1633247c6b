"""Errors of Google's APIs: what they say, and of which class they are (K08)."""

import json
from typing import Any

import pytest

from gateway.dialects.base import ProviderError, unredacted
from gateway.dialects.gemini.side import GeminiTarget

GEMINI = GeminiTarget()
Json = dict[str, Any]


def read(
    message: str, status: str, code: int = 400, *details: Json, listed: bool = False
) -> ProviderError:
    error: Json = {
        "error": {"code": code, "message": message, "status": status, "details": details}
    }
    body = json.dumps([error] if listed else error).encode()
    return GEMINI.read_error(code, body, unredacted)


def info(reason: str) -> Json:
    return {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}


@pytest.mark.bug("K08")
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (read("API key not valid.", "INVALID_ARGUMENT", 400, info("API_KEY_INVALID")), "auth"),
        (read("API key expired. Please renew the API key.", "INVALID_ARGUMENT"), "auth"),
        (read("No.", "UNAUTHENTICATED", 401, info("ACCESS_TOKEN_TYPE_UNSUPPORTED")), "auth"),
        (read("Enable billing on the project.", "FAILED_PRECONDITION"), "quota"),
        (read("Billing is off.", "PERMISSION_DENIED", 403, info("BILLING_DISABLED")), "quota"),
        (read("User location is not supported.", "FAILED_PRECONDITION"), "other"),
        (
            read(
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
                "INVALID_ARGUMENT",
            ),
            "context",
        ),
        (
            read(
                "You exceeded your current quota, please check your plan and billing details.",
                "RESOURCE_EXHAUSTED",
                429,
            ),
            "other",
        ),
        (read("The model is overloaded.", "UNAVAILABLE", 503), "other"),
        (read("Request contains an invalid argument.", "INVALID_ARGUMENT"), "other"),
    ],
)
def test_each_error_has_its_class(error: ProviderError, kind: str) -> None:
    assert kind == GEMINI.error_class(error, error.http)


def test_an_error_keeps_its_words_and_names_its_field() -> None:
    violation = {"fieldViolations": [{"field": "contents[0].parts", "description": "bad"}]}
    for listed in (True, False):
        error = read("Bad.", "INVALID_ARGUMENT", 400, violation, info("ODD"), listed=listed)
        assert (error.message, error.type, error.code, error.param) == (
            "Bad.", "INVALID_ARGUMENT", 400, "contents[0].parts"
        )  # fmt: skip
        assert error.extra == {"status": "INVALID_ARGUMENT", "reason": "ODD"}
        assert error.keys == ()


@pytest.mark.bug("K28")
def test_what_names_an_account_is_hidden() -> None:
    error = read(
        "Permission denied on projects/acme-1234567/locations/eu.", "PERMISSION_DENIED", 403
    )
    assert "acme" not in error.message


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b"{}", b'{"error": "text"}', b"\xff", b"1"]
)
def test_any_other_body_is_read_without_failing(body: bytes) -> None:
    error = GEMINI.read_error(500, body, unredacted)
    assert GEMINI.error_class(error, 500) == "other"
