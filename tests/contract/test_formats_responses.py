"""Callers of Responses in front of providers of other formats: what Codex sends, and what it hears."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.contract.test_formats import THOUGHT, behind, body_of, message
from tests.support.codex import CODEX
from tests.support.grammar_responses import breaches, events_in
from tests.support.scripted_upstream import Request, ok, until

Json = dict[str, Any]
PATCH = '*** Begin Patch\n+ "a"\n*** End Patch'
SEALED = {"include": ["reasoning.encrypted_content"]}
TOOLS = CODEX["tools"][:2]


def event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def claude(*content: Json, stop: str = "tool_use") -> bytes:
    """Return a stream of Messages in which these blocks are told in small pieces."""
    began: Json = {**json.loads(message().partition(b"\r\n\r\n")[2]), "content": []}
    out = [event("message_start", message=began)]
    for index, block in enumerate(content):
        kind = block["type"]
        if kind == "thinking":
            bare = {"type": kind, "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": block["thinking"]}]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        elif kind == "text":
            bare = {**block, "text": ""}
            deltas = [{"type": "text_delta", "text": block["text"]}]
        else:
            said = json.dumps(block["input"])
            bare = {**block, "input": Json()}
            pieces = [said[at : at + 5] for at in range(0, len(said), 5)]
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        out.append(event("content_block_start", index=index, content_block=bare))
        out += [event("content_block_delta", index=index, delta=delta) for delta in deltas]
        out.append(event("content_block_stop", index=index))
    delta = {"stop_reason": stop, "stop_sequence": None}
    out += [event("message_delta", delta=delta, usage={"output_tokens": 7}), event("message_stop")]
    body = b"".join(out)
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n%b" % (
        len(body),
        body,
    )


@pytest.mark.bug("K32", "K34", "K37", "B100", "B122")
async def test_codex_works_with_claude_turn_after_turn(tmp_path: Path) -> None:
    use = {"type": "tool_use", "id": "toolu_1", "name": "apply_patch", "input": {"input": PATCH}}

    def play(request: Request) -> bytes:
        return claude(THOUGHT, use)

    asking: Json = {**CODEX, "model": "m", "tools": TOOLS, "input": [_user("Fix it")]}
    async with behind(tmp_path, "anthropic", play) as (gateway, asked):
        answer = await gateway.client.post("/v1/responses", json=asking)
        events = events_in(answer.content)
        output = events[-1]["response"]["output"]
        result = {"type": "custom_tool_call_output", "call_id": "toolu_1", "output": "Done"}
        asking["input"] += [*output, result]
        await gateway.client.post("/v1/responses", json=asking)

    assert answer.status_code == 200
    assert breaches(answer.content) == []
    assert [item["type"] for item in output] == ["reasoning", "custom_tool_call"]
    assert output[1]["input"] == PATCH
    deltas = [e for e in events if e["type"] == "response.custom_tool_call_input.delta"]
    assert len(deltas) > 2
    sent = body_of(asked[1])["messages"]
    assert sent[1]["content"] == [THOUGHT, use]
    assert sent[2]["content"][0]["tool_use_id"] == "toolu_1"


def _user(text: str) -> Json:
    return {"role": "user", "content": text}


@pytest.mark.bug("K32", "B120")
@pytest.mark.parametrize(
    ("path", "kind"), [("/v1/responses", "openai"), ("/v1/messages", "anthropic")]
)
async def test_what_others_sealed_goes_to_no_provider(path: str, kind: str, tmp_path: Path) -> None:
    seal = 'gw1.gemini.{"text":"hm","signature":"sig"}'
    item: Json = {"type": "reasoning", "summary": [], "encrypted_content": seal}
    block = {"type": "thinking", "thinking": "hm", "signature": seal}
    history: list[Json] = [_user("Hi"), {"role": "assistant", "content": [block]}, _user("Go on")]
    asking: Json = {
        "/v1/responses": {"input": [_user("Hi"), item, _user("Go on")]},
        "/v1/messages": {"messages": history, "max_tokens": 50},
    }[path]
    answers = {"openai": ok(json.dumps(RESPONSE).encode()), "anthropic": message()}
    async with behind(tmp_path, kind, lambda _: answers[kind]) as (gateway, asked):
        answer = await gateway.client.post(path, json={"model": "m", **asking})

    assert answer.status_code == 200
    assert b"gw1." not in asked[0].body
    assert "sealed" in answer.headers["x-gateway-warnings"]


@pytest.mark.bug("K32")
@pytest.mark.parametrize(
    ("path", "kind"), [("/v1/responses", "openai"), ("/v1/messages", "anthropic")]
)
async def test_open_reasoning_of_others_goes_to_nobody_who_refuses_it(
    path: str, kind: str, tmp_path: Path
) -> None:
    """An answer that was translated from another provider is sent back as it came."""
    item: Json = {
        "type": "reasoning",
        "id": "rs_gw000100",
        "summary": [{"type": "summary_text", "text": "ponder"}],
    }
    block = {"type": "thinking", "thinking": "ponder", "signature": ""}
    said = [block, {"type": "text", "text": "Hello"}]
    history: list[Json] = [_user("Hi"), {"role": "assistant", "content": said}, _user("Go on")]
    asking: Json = {
        "/v1/responses": {"input": [_user("Hi"), item, _user("Go on")]},
        "/v1/messages": {"messages": history, "max_tokens": 50},
    }[path]
    answers = {"openai": ok(json.dumps(RESPONSE).encode()), "anthropic": message()}
    async with behind(tmp_path, kind, lambda _: answers[kind]) as (gateway, asked):
        answer = await gateway.client.post(path, json={"model": "m", **asking})

    assert answer.status_code == 200
    assert b"ponder" not in asked[0].body
    assert b"Go on" in asked[0].body
    assert "is not sealed for this target" in answer.headers["x-gateway-warnings"]


RESPONSE: Json = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "model": "x",
    "output": [],
    "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
}


@pytest.mark.bug("K04", "K37", "B123")
@pytest.mark.parametrize("kind", ["openai", "anthropic"])
async def test_a_stream_that_breaks_off_is_told_to_have_failed(kind: str, tmp_path: Path) -> None:
    whole = claude({"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": "b" * 50}})
    body = whole.partition(b"\r\n\r\n")[2]
    if kind == "openai":
        item: Json = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
        response = {**RESPONSE, "status": "in_progress"}
        body = event("response.created", sequence_number=0, response=response)
        body += event("response.output_item.added", sequence_number=1, item=item, output_index=0)
    else:
        body = body[: body.find(b"event: content_block_stop")]
    cut = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + body

    async def asked(folder: Path) -> bytes:
        async with behind(folder, kind, lambda _: cut) as (gateway, _):
            asking = {"model": "m", "input": "Hi", "stream": True}
            return (await gateway.client.post("/v1/responses", json=asking)).content

    found = events_in(await asked(tmp_path))

    assert [each["sequence_number"] for each in found] == list(range(len(found)))
    assert [each["type"] for each in found[-2:]] == ["error", "response.failed"]


@pytest.mark.bug("K32", "B100")
@pytest.mark.parametrize("stream", [False, True])
async def test_sealed_thoughts_before_words_alone_come_back_too(
    stream: bool,
    tmp_path: Path,
) -> None:
    content = (THOUGHT, {"type": "text", "text": "It is cold."})

    def play(_: Request) -> bytes:
        return (claude if stream else message)(*content)

    user: Json = {"role": "user", "content": "Weather?"}
    asking: Json = {"model": "m", "messages": [user], "reasoning_effort": "low"}
    async with behind(tmp_path, "anthropic", play) as (gateway, asked):
        first = await gateway.client.post("/v1/chat/completions", json={**asking, "stream": stream})
        said: Json = {"role": "assistant", "content": "It is cold."}
        asking["messages"] = [user, said, {"role": "user", "content": "Why?"}]
        await gateway.client.post("/v1/chat/completions", json=asking)

    assert "It is cold." in first.text
    assert body_of(asked[1])["messages"][1] == {"role": "assistant", "content": [*content]}


@pytest.mark.parametrize("length", [2, 1 << 21], ids=["early", "late"])
async def test_what_a_stream_could_not_tell_is_said_at_its_head_or_in_the_log(
    length: int, tmp_path: Path
) -> None:
    told = event("odd_thing", held=1)
    block = {"type": "text", "text": "Hi" * (length // 2)}
    head, mark, rest = claude(block, stop="end_turn").partition(b"event: message_delta")

    def answered(body: bytes) -> bytes:
        lines = b"content-type: text/event-stream\r\nconnection: close\r\n"
        return b"HTTP/1.1 200 OK\r\n" + lines + b"\r\n" + body.partition(b"\r\n\r\n")[2]

    early = answered(head + told + mark + rest)
    async with behind(tmp_path, "anthropic", lambda _: early) as (gateway, _):
        asking: Json = {"model": "m", "messages": [_user("Hi")], "stream": True}
        answer = await gateway.client.post("/v1/chat/completions", json=asking)
        assert "Hi" in answer.text
        is_early = "odd_thing" in answer.headers.get("x-gateway-warnings", "")
        assert is_early is (length < 1 << 20)
        await until(lambda: any("odd_thing" in str(line) for line in gateway.records()))
