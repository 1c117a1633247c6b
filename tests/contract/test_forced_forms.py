"""JSON of models without a form for it, through a gateway: whole, streamed and refused, in words of the caller (K34)."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.contract.test_formats import behind, body_of, message
from tests.support.scripted_upstream import LAST_CHUNK, STREAM_HEAD, Request

Json = dict[str, Any]
SCHEMA: Json = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
FORM: Json = {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA, "strict": True}}
CALL: Json = {"type": "tool_use", "id": "toolu_1", "name": "give_answer", "input": {"n": 1}}
TOOL: Json = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}

pytestmark = pytest.mark.bug("K34", "K35")


def asked(**more: Any) -> Json:
    said = [{"role": "user", "content": "Hi"}]
    return {"model": "m", "messages": said, "response_format": FORM, **more}


def streamed() -> bytes:
    start: Json = {
        **json.loads(message().partition(b"\r\n\r\n")[2]),
        "content": [],
        "stop_reason": None,
    }
    piece = {"type": "input_json_delta", "partial_json": '{"n":1}'}
    events: list[Json] = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {**CALL, "input": {}}},
        {"type": "content_block_delta", "index": 0, "delta": piece},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use"},
            "usage": {"output_tokens": 7},
        },
        {"type": "message_stop"},
    ]
    body = b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)
    return STREAM_HEAD + b"%x\r\n%b\r\n" % (len(body), body) + LAST_CHUNK


def play(request: Request) -> bytes:
    """Answer as Claude does where it must call a tool."""
    return streamed() if body_of(request).get("stream") else message(CALL, stop="tool_use")


async def test_a_schema_is_kept_by_a_call_and_given_back_as_text(tmp_path: Path) -> None:
    async with behind(tmp_path, "anthropic", play) as (gateway, sent):
        whole = await gateway.client.post("/v1/chat/completions", json=asked())
        pieces = await gateway.client.post("/v1/chat/completions", json=asked(stream=True))

    (tool,) = body_of(sent[0])["tools"]
    assert (tool["input_schema"], body_of(sent[0])["tool_choice"]) == (SCHEMA, {"type": "any"})
    (choice,) = whole.json()["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == ('{"n":1}', "stop")
    assert not choice["message"].get("tool_calls")
    assert "response_format: is asked for as what a tool" in whole.headers["x-gateway-warnings"]
    chunks = [json.loads(line[6:]) for line in pieces.text.splitlines() if line[:7] == "data: {"]
    said = [each for chunk in chunks for each in chunk["choices"]]
    assert "".join(each["delta"].get("content") or "" for each in said) == '{"n":1}'
    assert [each["finish_reason"] for each in said if each.get("finish_reason")] == ["stop"]
    assert pieces.text.rstrip().endswith("data: [DONE]")


async def test_what_excludes_the_call_is_refused_before_anyone_is_asked(tmp_path: Path) -> None:
    async with behind(tmp_path, "anthropic", play) as (gateway, sent):
        answer = await gateway.client.post("/v1/chat/completions", json=asked(tools=[TOOL]))

    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["param"] == "response_format"
    assert error["message"].startswith("response_format (with tools): is had of this target")
    assert not sent
