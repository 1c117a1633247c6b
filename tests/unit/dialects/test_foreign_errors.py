"""Errors said in another format reach callers in the words of their own; those said in their own stay."""

import json
from typing import Any

import pytest

from gateway.dialects.base import unredacted
from gateway.dialects.registry import DIALECTS, TARGETS
from gateway.dialects.typed_errors import with_type
from gateway.engine.refusal import refuse
from tests.support.plans import account

Json = dict[str, Any]
ANTHROPIC = {
    "type": "error",
    "error": {
        "type": "invalid_request_error",
        "message": "prompt is too long: 210000 tokens > 200000 maximum",
    },
}
GEMINI = {
    "error": {
        "code": 400,
        "message": "The input token count (2) exceeds the maximum number of tokens allowed (1).",
        "status": "INVALID_ARGUMENT",
    }
}
LLAMA = {
    "error": {
        "code": 400,
        "message": "the request exceeds the available context size",
        "type": "exceed_context_size_error",
        "n_ctx": 1,
    }
}
TOO_LONG: list[tuple[str, Json]] = [
    ("anthropic_messages", ANTHROPIC),
    ("bedrock_converse", {"message": "Input is too long for requested model."}),
    ("bedrock_anthropic", {"message": "Input is too long for requested model."}),
    ("gemini", GEMINI),
    ("cohere_v2", {"message": "too many tokens: the total number of tokens must be less"}),
    ("ollama", {"error": "prompt too long; exceeded max context length by 3 tokens"}),
    ("openai_chat", LLAMA),
]
OTHERS: list[tuple[str, int, Json, str, str, str]] = [
    (
        "gemini",
        503,
        {"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}},
        "server_error",
        "upstream_unavailable",
        "api_error",
    ),
    (
        "gemini",
        429,
        {"error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED"}},
        "rate_limit_error",
        "rate_limit_exceeded",
        "rate_limit_error",
    ),
    (
        "anthropic_messages",
        529,
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        "server_error",
        "upstream_unavailable",
        "overloaded_error",
    ),
    (
        "cohere_v2",
        400,
        {"message": "wrong field"},
        "invalid_request_error",
        "invalid_request",
        "invalid_request_error",
    ),
]


def told(caller: str, target: str, http: int, said: Json) -> Json:
    """Return the error that a caller gets for what a target said."""
    side = TARGETS[target]
    read = with_type(side.read_error(http, json.dumps(said).encode(), unredacted), lambda _: None)
    error = refuse(account(), http, read, None, endpoint="chat", side=side)
    body = DIALECTS[caller].render_provider_error(error.said, error, "req_1")
    found: Json = json.loads(body)["error"]
    return found


@pytest.mark.bug("K08", "K35")
@pytest.mark.parametrize(("target", "said"), TOO_LONG)
@pytest.mark.parametrize("caller", ["openai_chat", "openai_responses"])
def test_a_prompt_that_is_too_long_has_openais_code(caller: str, target: str, said: Json) -> None:
    error = told(caller, target, 400, said)

    assert error["message"] in json.dumps(said)
    if target == caller:
        assert error == said["error"]
    else:
        assert error["code"] == "context_length_exceeded"
        assert error["type"] == "invalid_request_error"


@pytest.mark.bug("K08", "K35")
@pytest.mark.parametrize(("target", "said"), TOO_LONG)
def test_a_prompt_that_is_too_long_begins_with_anthropics_words(target: str, said: Json) -> None:
    error = told("anthropic_messages", target, 400, said)

    assert error["type"] == "invalid_request_error"
    assert error["message"].startswith("prompt is too long: ")
    assert "code" not in error
    assert error["message"].removeprefix("prompt is too long: ") in json.dumps(said)


@pytest.mark.bug("K08", "K35")
@pytest.mark.parametrize(("target", "http", "said", "kind", "code", "messages_kind"), OTHERS)
def test_types_and_codes_are_the_callers(
    target: str, http: int, said: Json, kind: str, code: str, messages_kind: str
) -> None:
    for caller in ("openai_chat", "openai_responses"):
        error = told(caller, target, http, said)
        assert (kind, code) == (error["type"], error["code"])
        assert error["message"] in json.dumps(said)
    error = told("anthropic_messages", target, http, said)
    assert messages_kind == error["type"]
    assert not isinstance(error.get("code"), int)


@pytest.mark.bug("K08")
def test_what_was_said_in_the_callers_own_format_stays() -> None:
    odd = {"error": {"message": "busy", "type": "server_busy", "param": None, "code": 503}}
    assert odd["error"] == told("openai_chat", "openai_chat", 503, odd)
    long: Json = {"error": {"message": "context length exceeded", "type": "x", "code": "own_word"}}
    assert long["error"] == told("openai_responses", "openai_chat", 400, long)
    assert ANTHROPIC["error"] == told("anthropic_messages", "anthropic_messages", 400, ANTHROPIC)
