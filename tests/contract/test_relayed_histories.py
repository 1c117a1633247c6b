"""Chat completions relayed to providers that insist on more than OpenAI does: repaired, or byte for byte (K33)."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.contract.test_foreign_reasoning import ANSWER
from tests.contract.test_formats import behind, body_of
from tests.support.scripted_upstream import Request

Json = dict[str, Any]
FUNCTION = {"name": "f", "arguments": "{}"}
LONG = "call_PTLP8xhu3uwZk4l3nlnrrJha"


def history(call_id: str) -> list[Json]:
    """Return a conversation with a call whose result the user talks over."""
    call = {"id": call_id, "type": "function", "function": FUNCTION}
    return [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Wait", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": "out"},
        {"role": "user", "content": "And?"},
    ]


def play(request: Request) -> bytes:
    """Answer whatever is asked."""
    del request
    return ANSWER


@pytest.mark.bug("K33", "B104")
async def test_a_history_that_mistral_would_refuse_is_repaired_and_told(tmp_path: Path) -> None:
    async with behind(tmp_path, "mistral", play) as (gateway, asked):
        answer = await gateway.client.post(
            "/v1/chat/completions", json={"model": "m", "messages": history(LONG)}
        )

    assert answer.status_code == 200
    sent = body_of(asked[0])["messages"]
    assert [message["role"] for message in sent] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert len(sent[2]["tool_call_id"]) == 9
    assert sent[1]["tool_calls"][0]["id"] == sent[2]["tool_call_id"]
    assert "a short reply was put between" in answer.headers["x-gateway-warnings"]


@pytest.mark.bug("K33")
@pytest.mark.parametrize("kind", ["openai", "groq", "xai", "openai_compatible", "deepseek"])
async def test_a_history_that_is_taken_goes_on_byte_for_byte(kind: str, tmp_path: Path) -> None:
    messages = history(LONG)
    messages[1]["reasoning_content" if kind == "deepseek" else "content"] = "Wait"
    written = json.dumps(messages, indent=1)
    body = f'{{"model": "m", "messages": {written}}}'.encode()
    async with behind(tmp_path, kind, play) as (gateway, asked):
        answer = await gateway.client.post(
            "/v1/chat/completions", content=body, headers={"content-type": "application/json"}
        )

    assert answer.status_code == 200
    assert written.encode() in asked[0].body
    assert "x-gateway-warnings" not in answer.headers
