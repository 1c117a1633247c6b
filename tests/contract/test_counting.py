"""Tokens of a prompt: counted by whoever serves the model, in the caller's form, or estimated and said to be so."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.contract.test_formats import behind, body_of, prompt
from tests.support.scripted_upstream import Request, ok

Json = dict[str, Any]
CLAUDE = "anthropic.claude-sonnet-4-5-20250929-v1:0"
TOOL: Json = {
    "name": "weather",
    "description": "d",
    "input_schema": {"type": "object", "properties": {}},
}
REFUSED = (
    b"HTTP/1.1 403 Forbidden\r\ncontent-type: application/json\r\ncontent-length: 17\r\n\r\n"
    b'{"message": "no"}'
)


def models(model: str) -> Json:
    """Return the model `m` at a provider, by the provider's own name."""
    return {"m": {"targets": [{"provider": "up", "model": model}]}}


def counting(**more: Any) -> Json:
    """Return a request to count."""
    asked = prompt(system="Be brief.", tools=[TOOL], **more)
    del asked["max_tokens"]
    return asked


def _invoked(body: Json) -> Json:
    inner: Json = json.loads(base64.b64decode(body["input"]["invokeModel"]["body"]))
    assert inner.pop("max_tokens") > 0
    return inner


def _gemini(body: Json) -> Json:
    question: Json = body["generateContentRequest"]
    assert question.pop("model") == "models/gemini-2.5-flash"
    return question


def _vertex_gemini(body: Json) -> Json:
    return body


def _responses(body: Json) -> Json:
    assert body.pop("model") == "gpt-5"
    return body


def _conversed(body: Json) -> Json:
    question: Json = body["input"]["converse"]
    return question


def _vertex_claude(body: Json) -> Json:
    assert body.pop("model") == "claude-sonnet-4-5@20250929"
    return body


_OWN = {"messages", "system", "tools"}
_GEMINI = {"contents", "systemInstruction", "tools"}
_RESPONSES = {"input", "instructions", "tools"}


@pytest.mark.parametrize(
    ("kind", "model", "path", "said", "inner", "known"),
    [
        (
            "openai",
            "gpt-5",
            "/responses/input_tokens",
            {"object": "response.input_tokens", "input_tokens": 42},
            _responses,
            _RESPONSES,
        ),
        (
            "gemini",
            "gemini-2.5-flash",
            "/models/gemini-2.5-flash:countTokens",
            {"totalTokens": 42},
            _gemini,
            _GEMINI,
        ),
        (
            "vertex",
            "gemini-2.5-flash",
            "/publishers/google/models/gemini-2.5-flash:countTokens",
            {"totalTokens": 42, "totalBillableCharacters": 9},
            _vertex_gemini,
            _GEMINI,
        ),
        (
            "vertex",
            "claude-sonnet-4-5@20250929",
            "/publishers/anthropic/models/count-tokens:rawPredict",
            {"input_tokens": 42},
            _vertex_claude,
            {*_OWN, "anthropic_version"},
        ),
        (
            "bedrock",
            f"eu.{CLAUDE}",
            f"/model/{CLAUDE.replace(':', '%3A')}/count-tokens",
            {"inputTokens": 42},
            _invoked,
            {*_OWN, "anthropic_version"},
        ),
        (
            "bedrock",
            "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.amazon.nova-lite-v1:0",
            "/model/amazon.nova-lite-v1%3A0/count-tokens",
            {"inputTokens": 42},
            _conversed,
            {"messages", "system", "toolConfig"},
        ),
    ],
)
async def test_tokens_are_counted_by_the_providers_own_call(
    kind: str,
    model: str,
    path: str,
    said: Json,
    inner: Callable[[Json], Json],
    known: set[str],
    tmp_path: Path,
) -> None:
    def play(_: Request) -> bytes:
        return ok(json.dumps(said).encode())

    async with behind(tmp_path, kind, play, models=models(model)) as (gateway, asked):
        counted = await gateway.client.post("/v1/messages/count_tokens", json=counting())

    assert counted.json() == {"input_tokens": 42}
    assert "x-gateway-warnings" not in counted.headers
    assert [request.target for request in asked] == [f"/v1{path}".encode()]
    question = inner(body_of(asked[0]))
    assert set(question) == known
    assert "Be brief." in json.dumps(question)
    assert "weather" in json.dumps(question)


@pytest.mark.parametrize("kind", ["gemini", "bedrock", "openai"])
@pytest.mark.parametrize("answer", [REFUSED, ok(b'{"error": {"message": "no"}}'), ok(b"{}")])
async def test_what_a_provider_does_not_count_is_estimated_and_harms_no_other_call(
    kind: str, answer: bytes, tmp_path: Path
) -> None:
    async with behind(tmp_path, kind, lambda _: answer, models=models(CLAUDE)) as (gateway, asked):
        estimates = [
            await gateway.client.post("/v1/messages/count_tokens", json=counting())
            for _ in range(12)
        ]

    for estimated in estimates:
        assert estimated.status_code == 200
        assert estimated.json()["input_tokens"] > 0
        assert "input_tokens is an estimate" in estimated.headers["x-gateway-warnings"]
    assert len(asked) == 12


BROKEN = (
    b"HTTP/1.1 500 No\r\ncontent-type: application/json\r\ncontent-length: 65\r\n\r\n"
    b'{"type": "error", "error": {"type": "api_error", "message": "no"}}'[:65]
)
MESSAGE = b'{"id": "m", "type": "message", "role": "assistant", "content": []}'


@pytest.mark.parametrize("answer", [BROKEN, ok(b"<html>"), ok(MESSAGE), ok(b"{}")])
async def test_a_provider_of_messages_that_fails_to_count_is_stood_in_for(
    answer: bytes, tmp_path: Path
) -> None:
    async with behind(tmp_path, "anthropic", lambda _: answer, models=models("claude")) as (
        gateway,
        _,
    ):
        counted = await gateway.client.post("/v1/messages/count_tokens", json=counting())

    assert counted.status_code == 200
    assert counted.json()["input_tokens"] > 0
    assert "input_tokens is an estimate" in counted.headers["x-gateway-warnings"]


async def test_what_a_provider_of_messages_refuses_to_count_is_refused(tmp_path: Path) -> None:
    said = b'{"type": "error", "error": {"type": "invalid_request_error", "message": "too odd"}}'
    refused = b"HTTP/1.1 400 No\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
    answer = refused % (len(said), said)
    async with behind(tmp_path, "anthropic", lambda _: answer, models=models("claude")) as (
        gateway,
        _,
    ):
        counted = await gateway.client.post("/v1/messages/count_tokens", json=counting())

    assert (counted.status_code, counted.json()["error"]["message"]) == (400, "too odd")


@pytest.mark.parametrize(
    ("provider", "is_asked"),
    [
        ({"kind": "openai", "dialect": "openai_responses"}, True),
        ({"kind": "openai", "dialect": "openai_chat"}, False),
        ({"kind": "openai_compatible"}, False),
        ({"kind": "groq"}, False),
    ],
)
async def test_only_servers_that_count_as_openai_does_are_asked(
    provider: Json, is_asked: bool, tmp_path: Path
) -> None:
    counts = ok(b'{"object": "response.input_tokens", "input_tokens": 42}')
    async with behind(
        tmp_path, provider["kind"], lambda _: counts, models=models("gpt-5"), provider=provider
    ) as (gateway, asked):
        counted = await gateway.client.post("/v1/messages/count_tokens", json=counting())

    assert (len(asked) == 1) == is_asked
    assert (counted.json() == {"input_tokens": 42}) == is_asked
    assert ("x-gateway-warnings" in counted.headers) != is_asked


async def test_a_count_asks_for_no_answer_and_keeps_what_shapes_the_prompt(tmp_path: Path) -> None:
    counts = ok(b'{"object": "response.input_tokens", "input_tokens": 42}')
    asks: Json = {
        "tool_choice": {"type": "tool", "name": "weather"},
        "thinking": {"type": "adaptive"},
        "output_config": {
            "format": {"type": "json_schema", "schema": {"type": "object", "properties": {}}}
        },
    }
    async with behind(tmp_path, "openai", lambda _: counts, models=models("gpt-5")) as (
        gateway,
        asked,
    ):
        counted = await gateway.client.post(
            "/v1/messages/count_tokens", json=counting(**asks, metadata={"user_id": "u"})
        )

    assert counted.json() == {"input_tokens": 42}
    body = body_of(asked[0])
    assert body["tool_choice"] == {"type": "function", "name": "weather"}
    assert body["text"]["format"]["type"] == "json_schema"
    assert not {"store", "include", "stream", "user", "max_output_tokens"} & set(body)


@pytest.mark.bug("K32")
@pytest.mark.parametrize(
    ("kind", "model", "path"),
    [
        ("anthropic", "claude", "/v1/messages/count_tokens"),
        ("vertex", "claude", "/v1/publishers/anthropic/models/count-tokens:rawPredict"),
        ("bedrock", CLAUDE, f"/v1/model/{CLAUDE.replace(':', '%3A')}/count-tokens"),
    ],
)
async def test_state_of_other_makers_is_neither_counted_nor_sent(
    kind: str, model: str, path: str, tmp_path: Path
) -> None:
    block = {"type": "thinking", "thinking": "hm", "signature": "gw1.gemini.c2VhbA=="}
    turns = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [block, {"type": "text", "text": "Yes?"}]},
        {"role": "user", "content": "Go on"},
    ]

    def play(_: Request) -> bytes:
        return ok(b'{"input_tokens": 42, "inputTokens": 42}')

    async with behind(tmp_path, kind, play, models=models(model)) as (gateway, asked):
        counted = await gateway.client.post(
            "/v1/messages/count_tokens", json=counting(messages=turns)
        )
        await gateway.client.post("/v1/messages", json=prompt(messages=turns))

    assert counted.json() == {"input_tokens": 42}
    assert asked[0].target == path.encode()
    assert b"gw1." not in asked[1].body
    body = body_of(asked[0])
    question = _invoked(body) if kind == "bedrock" else body
    assert "gw1." not in json.dumps(question)
    assert "max_tokens" not in question


@pytest.mark.bug("K16")
@pytest.mark.parametrize(
    "model", ["cohere.embed-english-v3", "amazon.nova-2-multimodal-embeddings-v1:0"]
)
async def test_embeddings_whose_answer_counts_nothing_are_counted_by_its_head(
    model: str, tmp_path: Path
) -> None:
    vector: Json = {"id": "e", "embeddings": [[0.5]], "response_type": "embeddings_floats"}
    if "nova" in model:
        vector = {"embeddings": [{"embeddingType": "TEXT", "embedding": [0.5]}]}
    answer = ok(json.dumps(vector).encode(), b"x-amzn-bedrock-input-token-count: 42")
    async with behind(tmp_path, "bedrock", lambda _: answer, models=models(model)) as (gateway, _):
        said = await gateway.client.post("/v1/embeddings", json={"model": "m", "input": ["Hi"]})

    assert said.status_code == 200, said.text
    assert said.json()["usage"] == {"prompt_tokens": 42, "total_tokens": 42}
