"""Targets that surely cannot take a request are tried last, and none is asked for more than it can give (K11, K33)."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.contract.test_formats import behind, body_of, message, prompt
from tests.support.scripted_upstream import Request, ok

Json = dict[str, Any]
PICTURE: Json = {"type": "image_url", "image_url": {"url": "https://e.org/a.png"}}
SOUND: Json = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
OLD, NEW = "gpt-4-0613", "gpt-4o"
MODELS: Json = {
    "m": {
        "targets": [
            {"provider": "up", "model": OLD, "weight": 10**9},
            {"provider": "up", "model": NEW},
        ]
    }
}


def said(_: Request) -> bytes:
    """Answer a chat request."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "Hi"},
        "finish_reason": "stop",
    }
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    answer = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    return ok(json.dumps({**answer, "choices": [choice], "usage": usage}).encode())


def asking(content: object = "Hi", **more: Any) -> Json:
    return {"model": "m", "messages": [{"role": "user", "content": content}], **more}


@pytest.mark.bug("K11")
@pytest.mark.parametrize(
    ("asked", "first"),
    [
        (asking(), OLD),
        (asking(max_completion_tokens=8192), OLD),
        (asking(max_completion_tokens=8193), NEW),
        (asking(max_tokens=10_000), NEW),
        (asking("x" * (8192 * 12 + 100)), NEW),
        (asking([PICTURE]), NEW),
        (asking([SOUND]), OLD),
        (asking(max_tokens=1_000_000), OLD),
        (asking(max_tokens="many"), OLD),
    ],
    ids=["short", "most", "long", "old name", "prompt", "picture", "sound", "nobody", "no number"],
)
async def test_the_target_that_can_take_a_request_is_tried_first(
    asked: Json, first: str, tmp_path: Path
) -> None:
    async with behind(tmp_path, "openai", said, models=MODELS) as (gateway, seen):
        answer = await gateway.client.post("/v1/chat/completions", json=asked)

    assert answer.status_code == 200
    assert [body_of(request)["model"] for request in seen] == [first]


@pytest.mark.bug("K33")
@pytest.mark.parametrize(
    ("kind", "model", "limit"),
    [
        ("openai", "gpt-4o", 16_384),
        ("azure", "gpt-4o", 16_384),
        ("openai", "some-model", 64_000),
        ("openai", "gpt-5.6-sol", 64_000),
    ],
)
async def test_no_target_is_asked_for_a_longer_answer_than_it_gives(
    kind: str, model: str, limit: int, tmp_path: Path
) -> None:
    models = {"m": {"targets": [{"provider": "up", "model": model}]}}
    more = {"api_version": "2025-03-01"} if kind == "azure" else {}
    async with behind(tmp_path, kind, said, models=models, provider=more) as (gateway, seen):
        answer = await gateway.client.post("/v1/messages", json=prompt(max_tokens=64_000))

    (request,) = seen
    body = body_of(request)
    assert body.get("max_completion_tokens", body.get("max_tokens")) == limit
    assert ("max_tokens" in answer.headers.get("x-gateway-warnings", "")) == (limit < 64_000)


@pytest.mark.bug("K33")
async def test_a_caller_of_chat_gets_the_longest_answer_that_claude_gives(tmp_path: Path) -> None:
    models = {"m": {"targets": [{"provider": "up", "model": "claude-opus-4-1"}]}}
    async with behind(
        tmp_path, "anthropic", lambda _: message({"type": "text", "text": "Hi"}), models=models
    ) as (gateway, seen):
        more = await gateway.client.post("/v1/chat/completions", json=asking(max_tokens=100_000))
        await gateway.client.post("/v1/chat/completions", json=asking())

    assert [body_of(request)["max_tokens"] for request in seen] == [32_000, 32_000]
    assert "max_tokens: was changed" in more.headers["x-gateway-warnings"]
