"""Chat completions relayed: reasoning of other providers is refused by some, and goes to none of them (K32)."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.contract.test_formats import behind, body_of
from tests.support.scripted_upstream import Request, ok

Json = dict[str, Any]
MESSAGE = {"role": "assistant", "content": "Hi"}
ANSWER = ok(
    json.dumps(
        {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": "x",
            "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }
    ).encode()
)
FUNCTION = {"name": "f", "arguments": "{}"}
CALL: Json = {"id": "abcdefghi", "type": "function", "function": FUNCTION}
DETAIL = {"type": "reasoning.text", "text": "hm", "signature": "c2ln", "format": "anthropic"}
TURN: Json = {"role": "assistant", "content": "Wait", "tool_calls": [CALL]}
THOUGHT: Json = {
    **TURN,
    "reasoning_content": "hm",
    "reasoning_details": [DETAIL],
    "thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}],
    "tool_calls": [{**CALL, "extra_content": {"google": {"thought_signature": "c2ln"}}}],
}
OPEN: Json = {**TURN, "reasoning_content": "hm"}


def history(turn: Json) -> list[Json]:
    """Return a conversation with this turn of the model."""
    result = {"role": "tool", "tool_call_id": CALL["id"], "content": "out"}
    return [{"role": "user", "content": "Hi"}, turn, result]


@pytest.mark.bug("K32")
@pytest.mark.parametrize(
    ("kind", "left"),
    [
        *((kind, TURN) for kind in ("openai", "groq", "mistral")),
        *((kind, OPEN) for kind in ("deepseek", "openrouter", "vllm", "xai")),
        ("openai_compatible", THOUGHT),
    ],
)
async def test_a_provider_gets_the_reasoning_that_it_takes(
    kind: str, left: Json, tmp_path: Path
) -> None:
    def play(request: Request) -> bytes:
        del request
        return ANSWER

    async with behind(tmp_path, kind, play) as (gateway, asked):
        answer = await gateway.client.post(
            "/v1/chat/completions", json={"model": "m", "messages": history(THOUGHT)}
        )

    assert answer.status_code == 200
    assert body_of(asked[0])["messages"] == history(left)
    told = answer.headers.get("x-gateway-warnings", "")
    assert ("is not sealed for this target" in told) is (left is not THOUGHT)


BLOCKS: Json = {**TURN, "thinking_blocks": THOUGHT["thinking_blocks"]}
PARTS: Json = {
    **TURN,
    "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Wait"}],
}
WORDS: Json = {**TURN, "content": [{"type": "text", "text": "Wait"}]}


@pytest.mark.bug("K32")
@pytest.mark.parametrize(
    ("kind", "turn", "left"),
    [
        ("openai", BLOCKS, TURN),
        ("xai", BLOCKS, TURN),
        ("openai", PARTS, WORDS),
        ("mistral", PARTS, PARTS),
    ],
    ids=["blocks", "blocks where reasoning is open", "parts", "parts where they are known"],
)
async def test_each_way_to_tell_reasoning_is_found_alone(
    kind: str, turn: Json, left: Json, tmp_path: Path
) -> None:
    def play(request: Request) -> bytes:
        del request
        return ANSWER

    async with behind(tmp_path, kind, play) as (gateway, asked):
        answer = await gateway.client.post(
            "/v1/chat/completions", json={"model": "m", "messages": history(turn)}
        )

    assert body_of(asked[0])["messages"] == history(left)
    told = answer.headers.get("x-gateway-warnings", "")
    assert ("is not sealed for this target" in told) is (left != turn)
