"""Members that no format knows, inside of objects: callers read their paths, and their own format gets them (K34)."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.contract.test_formats import behind, body_of
from tests.support.schema_samples import PICTURE
from tests.support.scripted_upstream import Request, ok
from tests.support.streams_of_all import ANSWERS

Json = dict[str, Any]
SOURCE = {"type": "base64", "media_type": "image/png", "data": PICTURE, "odd": 1}
ADDRESS = f"data:image/png;base64,{PICTURE}"
FORM = {"type": "json_schema", "name": "f", "schema": {"type": "object"}, "odd": 1}
CALLS: dict[str, tuple[str, Json, list[str]]] = {
    "chat": (
        "/v1/chat/completions",
        {
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "image_url", "image_url": {"url": ADDRESS, "odd": 1}}],
                }
            ],
            "tools": [{"type": "function", "function": {"name": "find"}}],
            "tool_choice": {"type": "function", "function": {"name": "find", "odd": 1}},
        },
        ["messages[0].content[0].image_url.odd", "tool_choice.function.odd"],
    ),
    "messages": (
        "/v1/messages",
        {
            "max_tokens": 99,
            "messages": [{"role": "user", "content": [{"type": "image", "source": SOURCE}]}],
            "tools": [{"name": "find", "input_schema": {"type": "object"}}],
            "tool_choice": {"type": "any", "odd": 1},
        },
        ["messages[0].content[0].source.odd", "tool_choice.odd"],
    ),
    "responses": (
        "/v1/responses",
        {"input": "Hi", "text": {"format": FORM}, "stream_options": {"odd": 1}},
        ["text.format.odd", "stream_options.odd"],
    ),
}


def generated(request: Request) -> bytes:
    del request
    return ok(json.dumps(ANSWERS["gemini"]).encode())


@pytest.mark.bug("K34")
@pytest.mark.parametrize("caller", CALLS)
async def test_their_paths_are_named(caller: str, tmp_path: Path) -> None:
    path, body, members = CALLS[caller]
    async with behind(tmp_path, "gemini", generated) as (gateway, asked):
        answer = await gateway.client.post(path, json={"model": "m", **body})

    assert answer.status_code == 200, answer.text
    assert b"odd" not in asked[0].body
    told = answer.headers["x-gateway-warnings"]
    assert [name for name in members if f"{name}: is not known" not in told] == []


@pytest.mark.bug("K34", "K32")
async def test_their_own_format_gets_them_though_the_request_is_written_anew(
    tmp_path: Path,
) -> None:
    path, body, _ = CALLS["messages"]
    sealed = {"type": "thinking", "thinking": "hm", "signature": "gw1.gemini.c2ln"}
    said = {"role": "assistant", "content": [sealed, {"type": "text", "text": "So"}]}
    turns = [*body["messages"], said, {"role": "user", "content": "More"}]

    def play(request: Request) -> bytes:
        del request
        return ok(json.dumps(ANSWERS["anthropic_messages"]).encode())

    async with behind(tmp_path, "anthropic", play) as (gateway, asked):
        answer = await gateway.client.post(path, json={"model": "m", **body, "messages": turns})

    sent = body_of(asked[0])
    assert sent["messages"][0]["content"][0]["source"] == SOURCE
    assert sent["tool_choice"] == body["tool_choice"]
    assert "odd" not in answer.headers["x-gateway-warnings"]
