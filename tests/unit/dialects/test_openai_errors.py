"""Errors: the envelope that clients know, and what providers of all kinds say in its place."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.errors import CODES, GatewayError, UpstreamError
from gateway.dialects.base import ProviderError
from gateway.dialects.openai_errors import read_error, type_of
from gateway.dialects.registry import DIALECTS
from tests.support.recordings import Recording, is_object, load
from tests.support.same import says

DIALECT = DIALECTS["openai_chat"]
REFUSED = UpstreamError("invalid_request", phase="answer", http=400)


def plain(text: str) -> str:
    return text


def read(value: object) -> ProviderError:
    return read_error(json.dumps(value).encode(), plain)


def passed_on(value: object) -> Any:
    return json.loads(DIALECT.render_provider_error(read(value), REFUSED, "req_1"))


@pytest.mark.bug("K35")
@pytest.mark.parametrize("code", CODES)
def test_every_code_has_an_envelope(code: str) -> None:
    error = GatewayError(code, param="model")

    body = json.loads(DIALECT.render_error(error, "req_1"))

    assert body == {
        "error": {
            "message": error.message,
            "type": type_of(error),
            "param": "model",
            "code": code,
            "gateway": {"status": error.status.value, "request_id": "req_1"},
        }
    }


@pytest.mark.parametrize(
    ("code", "http", "kind"),
    [
        ("invalid_json", 0, "invalid_request_error"),
        ("request_too_large", 0, "invalid_request_error"),
        ("unsupported_media_type", 0, "invalid_request_error"),
        ("method_not_allowed", 0, "invalid_request_error"),
        ("headers_too_large", 0, "invalid_request_error"),
        ("model_not_found", 0, "invalid_request_error"),
        ("invalid_api_key", 0, "authentication_error"),
        ("permission_denied", 0, "permission_error"),
        ("rate_limited", 0, "rate_limit_error"),
        ("client_gone", 0, "cancelled"),
        ("internal", 0, "server_error"),
        ("upstream_auth", 0, "server_error"),
        ("upstream_timeout", 0, "server_error"),
        ("overloaded", 0, "server_error"),
        ("upstream_error", 500, "server_error"),
    ],
)
def test_the_type_follows_the_status(code: str, http: int, kind: str) -> None:
    assert type_of(GatewayError(code, http=http)) == kind


@pytest.mark.bug("K04")
def test_an_error_in_a_stream_is_one_frame_without_the_terminator() -> None:
    frames = DIALECT.render_stream_error(GatewayError("upstream_truncated"), "req_1")

    assert frames.startswith(b'data: {"error":{')
    assert frames.endswith(b"}\n\n")
    assert frames.count(b"\n\n") == 1
    said = DIALECT.render_provider_stream_error(read({"error": {"message": "No."}}), REFUSED, "r")
    assert said == b'data: {"error":{"message":"No."}}\n\n'


def _errors() -> list[Recording]:
    return [item for item in load() if item.status >= 400 and _is_object_of_json(item.body)]


def _is_object_of_json(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body), dict)
    except ValueError:
        return False


@pytest.mark.bug("K08", "K35")
@pytest.mark.parametrize("recording", _errors(), ids=lambda item: item.id)
def test_an_error_of_the_usual_shape_is_passed_on_as_it_is(recording: Recording) -> None:
    sent = json.loads(recording.body)
    said = DIALECT.read_error(recording.status, recording.body, plain)

    body = json.loads(DIALECT.render_provider_error(said, REFUSED, "req_1"))

    if isinstance(sent.get("error"), dict):
        own = sent["error"]
        assert says(body["error"].pop("message"), own)
        # Names of accounts, the provider's own text of an error and an envelope's word are not passed on.
        assert body["error"].items() <= own.items() or is_part(body["error"], own)
        assert {"type", "code", "param"} & own.keys() <= body["error"].keys()
    else:
        assert {"message", "type", "param", "code"} <= body["error"].keys()
        assert body["error"]["message"] == said.message or not said.message


def is_part(told: Any, own: Any) -> bool:
    """Tell whether everything that is told is the provider's own, maybe with less inside."""
    if is_object(told) and is_object(own):
        return all(name in own and is_part(value, own[name]) for name, value in told.items())
    return told == own


@pytest.mark.bug("K08")
@pytest.mark.parametrize(
    ("value", "message", "code", "http"),
    [
        ({"detail": "Invalid API Key"}, "Invalid API Key", None, 0),
        ({"detail": [{"loc": ["body", "n"], "msg": "too many"}]}, "body.n: too many", None, 0),
        ({"detail": {"msg": "no", "type": "x"}}, "no", None, 0),
        ({"detail": {"detail": {"detail": "deep"}}}, "", None, 0),
        ({"object": "error", "message": "No.", "code": "3051"}, "No.", "3051", 0),
        ({"object": "error", "message": {"detail": [{"msg": "No."}]}}, "No.", None, 0),
        ({"error": "Wrong key.", "code": "invalid-argument"}, "Wrong key.", "invalid-argument", 0),
        ({"error": {"code": 429, "message": "Slow."}, "user_id": "u"}, "Slow.", 429, 429),
        ({"error": {"message": "No.", "code": "401"}}, "No.", "401", 401),
        ({"error": {"message": "No.", "status_code": 400}}, "No.", None, 400),
        ({"id": "1", "message": "Gone."}, "Gone.", None, 0),
        (
            [{"error": {"code": 400, "message": "No.", "status": "INVALID_ARGUMENT"}}],
            "No.",
            400,
            400,
        ),
        ({"error": {"message": None, "code": True}}, "", None, 0),
        ({"error": None, "message": "No."}, "No.", None, 0),
        ("No.", "No.", None, 0),
        ({}, "", None, 0),
        ([], "", None, 0),
        (None, "", None, 0),
        (7, "", None, 0),
    ],
)
def test_every_shape_is_read(value: object, message: str, code: object, http: int) -> None:
    said = read(value)

    assert (said.message, said.code, said.http) == (message, code, http)


@pytest.mark.parametrize(
    "body", [b"", b"<html>502 nginx/1.2 at 10.0.0.1</html>", b"{", b"\xff", b"[" * 9999]
)
def test_what_cannot_be_read_gives_our_own_words(body: bytes) -> None:
    said = DIALECT.read_error(502, body, plain)

    rendered = json.loads(DIALECT.render_provider_error(said, REFUSED, "req_1"))
    assert rendered["error"]["message"] == REFUSED.message
    assert rendered["error"]["type"] == "invalid_request_error"
    assert rendered["error"]["code"] == "invalid_request"


@pytest.mark.parametrize("http", [400, 413, 415, 422])
def test_a_parsers_complaint_about_the_request_is_passed_on(http: int) -> None:
    body = b"Failed to parse the body of org-AbCd1234efgh56: missing field `content`\n"

    said = DIALECT.read_error(http, body, plain)

    assert said.message == "Failed to parse the body of org-[hidden]: missing field `content`"


@pytest.mark.parametrize(
    ("http", "body"),
    [
        (500, b"upstream connect error, 10.0.0.1"),
        (404, b"404 page not found"),
        (400, b"<html>nginx</html>"),
        (400, b"two\nlines"),
        (400, b"{"),
        (400, b"x" * 5000),
        (400, "\u00fc".encode()),
    ],
)
def test_words_that_explain_no_request_stay_here(http: int, body: bytes) -> None:
    assert DIALECT.read_error(http, body, plain).message == ""


def test_the_message_of_the_front_door_of_aws_is_read() -> None:
    assert passed_on({"Message": "Too large"})["error"]["message"] == "Too large"


@pytest.mark.bug("K28")
def test_what_names_an_account_stays_here() -> None:
    body = passed_on(
        {
            "error": {
                "message": "Limit of org-AbCd1234efgh56 in project_number:123456789012 for sk-proj-12**89",
                "code": 429,
                "account": "a-1",
                "metadata": {"provider_name": "X", "raw": "see org_01jabc9xyz", "user_id": "u-1"},
                "details": [{"consumer": "projects/123456789012"}],
            },
            "user_id": "user-99",
        }
    )

    assert body == {
        "error": {
            "message": "Limit of org-[hidden] in project_number:[hidden] for sk-[hidden]",
            "code": 429,
            "metadata": {"provider_name": "X", "raw": "see org_[hidden]"},
        }
    }


@pytest.mark.bug("K28")
def test_secrets_are_taken_out_at_every_depth() -> None:
    value = {"error": {"message": "k3y", "type": "k3y", "code": "k3y", "param": "k3y"}}
    value["error"]["innererror"] = {"a": ["k3y", {"k3y": "k3y"}]}  # pyright: ignore[reportArgumentType]

    said = read_error(json.dumps(value).encode(), lambda text: text.replace("k3y", "*"))

    assert b"k3y" not in DIALECT.render_provider_error(said, REFUSED, "req_1")


def test_words_that_are_no_account_stay() -> None:
    text = "user_location is unknown; use key-value pairs; project/model; accounts/fireworks"

    assert read({"error": {"message": text}}).message == text


def test_control_characters_are_taken_out_and_lines_stay() -> None:
    assert (
        read({"error": {"message": "a\x00b\x1b[31m\u202ec\nd\te\x85"}}).message == "ab[31mc\nd\te"
    )


def test_long_words_are_cut() -> None:
    said = read(
        {"error": {"message": "x" * 9999, "type": "t" * 999, "failed_generation": "g" * 99999}}
    )

    assert len(said.message) == 2048
    assert said.type is not None
    assert len(said.type) == 128
    assert said.extra == {}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "error",
                    "message",
                    "type",
                    "code",
                    "param",
                    "detail",
                    "metadata",
                    "innererror",
                    "x",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_no_error_is_odd_enough_to_fail(value: object) -> None:
    said = read(value)

    body = json.loads(DIALECT.render_provider_error(said, REFUSED, "req_1"))
    assert isinstance(body["error"]["message"], str)
    assert DIALECT.error_class(said, 400) in {"context", "policy", "quota", "auth", "other"}


@given(st.binary(max_size=200))
def test_no_bytes_are_odd_enough_to_fail(body: bytes) -> None:
    DIALECT.read_error(500, body, plain)
