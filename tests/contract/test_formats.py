"""Callers of Messages and Responses: their addresses, headers, errors, state and money, whatever speaks behind."""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.scripted_upstream import Peer, Request, ok, upstream
from tests.support.serving import KEY, Serving, config_for, serving

Json = dict[str, Any]
Play = Callable[[Request], bytes]
USAGE = {"input_tokens": 11, "output_tokens": 7}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2lnbmVkLTE="}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Oslo"}}
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]


def message(*content: Json, stop: str = "end_turn") -> bytes:
    """Return an answer of Messages."""
    return ok(
        json.dumps(
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "claude",
                "content": list(content),
                "stop_reason": stop,
                "stop_sequence": None,
                "usage": USAGE,
            }
        ).encode()
    )


@asynccontextmanager
async def behind(
    folder: Path, kind: str, play: Play, **more: Any
) -> AsyncGenerator[tuple[Serving, list[Request]]]:
    """Serve a gateway in front of one provider of this kind; `provider` adds to its entry."""
    asked: list[Request] = []

    async def script(peer: Peer) -> None:
        while True:
            request = await peer.request()
            asked.append(request)
            await peer.send(play(request))

    async with upstream(script) as up:
        entry = {"kind": kind, **more.pop("provider", {})}
        config = config_for(f"{up.url}/v1", provider=entry, **more)
        async with serving(config, folder) as gateway:
            yield gateway, asked


def body_of(request: Request) -> Json:
    """Return what a provider was sent."""
    found: Json = json.loads(request.body)
    return found


def prompt(**more: Any) -> Json:
    """Return a request of Messages."""
    said = [{"role": "user", "content": "Hi"}]
    return {"model": "m", "max_tokens": 64, "messages": said, **more}


async def test_headers_of_messages_go_on_as_they_came(tmp_path: Path) -> None:
    own = {
        "anthropic-version": "2023-01-01",
        "anthropic-beta": "one-2025,two-2026",
        "x-claude-code-session-id": "s-1",
        "x-other": "stays",
    }
    async with behind(tmp_path, "anthropic", lambda _: message()) as (gateway, asked):
        answer = await gateway.client.post("/v1/messages?beta=true", json=prompt(), headers=own)
        await gateway.client.post("/anthropic/v1/messages", json=prompt())

    assert answer.status_code == 200
    assert answer.headers["request-id"] == answer.headers["x-request-id"]
    first, second = asked
    assert first.target == b"/v1/messages"
    assert first.header(b"anthropic-version") == b"2023-01-01"
    assert first.header(b"anthropic-beta") == b"one-2025,two-2026"
    assert first.header(b"x-claude-code-session-id") == b"s-1"
    assert first.header(b"x-other") is None
    assert first.header(b"x-api-key") == b"sk-upstream-0123456789abcdef"
    assert second.header(b"anthropic-version") == b"2023-06-01"


@pytest.mark.bug("K34")
async def test_a_body_of_messages_goes_on_as_it_came(tmp_path: Path) -> None:
    odd = prompt(
        system=[{"type": "text", "text": "b"}, {"type": "text", "text": "a"}],
        context_management={"edits": [{"type": "new_thing"}]},
        thinking={"type": "adaptive"},
    )
    async with behind(tmp_path, "anthropic", lambda _: message()) as (gateway, asked):
        await gateway.client.post("/v1/messages", json=odd)

    assert body_of(asked[0]) == {**odd, "model": "m-upstream"}


@pytest.mark.parametrize(
    ("change", "status", "kind"),
    [
        ({"headers": {"authorization": "Bearer nobody"}}, 401, "authentication_error"),
        ({"url": "/v1/messages/elsewhere"}, 404, "not_found_error"),
        ({"json": {"max_tokens": 1}}, 400, "invalid_request_error"),
        ({"json": {"model": "ghost", "messages": []}}, 404, "not_found_error"),
        ({"content": b"{"}, 400, "invalid_request_error"),
    ],
)
async def test_mistakes_are_told_as_messages_tells_them(
    change: Json, status: int, kind: str, tmp_path: Path
) -> None:
    asking: Json = {"url": "/v1/messages", "json": prompt(), **change}
    if "content" in change:
        del asking["json"]
    async with behind(tmp_path, "anthropic", lambda _: message()) as (gateway, asked):
        answer = await gateway.client.post(**asking)

    said = answer.json()
    assert (answer.status_code, said["type"], said["error"]["type"]) == (status, "error", kind)
    assert said["request_id"] == answer.headers["x-request-id"]
    assert asked == []


async def test_tokens_are_counted_by_who_can(tmp_path: Path) -> None:
    def play(request: Request) -> bytes:
        return ok(b'{"input_tokens": 42}') if b"count" in request.target else message()

    async with behind(tmp_path, "anthropic", play) as (gateway, asked):
        counted = await gateway.client.post("/v1/messages/count_tokens", json=prompt())
    async with behind(tmp_path, "openai_compatible", play) as (gateway, unasked):
        estimated = await gateway.client.post("/v1/messages/count_tokens", json=prompt())

    assert counted.json() == {"input_tokens": 42}
    assert [request.target for request in asked] == [b"/v1/messages/count_tokens"]
    assert estimated.json()["input_tokens"] > 0
    assert "estimate" in estimated.headers["x-gateway-warnings"]
    assert unasked == []


@pytest.mark.parametrize("kind", ["anthropic", "openai_compatible"])
async def test_nothing_is_counted_without_messages(kind: str, tmp_path: Path) -> None:
    async with behind(tmp_path, kind, lambda _: message()) as (gateway, asked):
        answer = await gateway.client.post("/v1/messages/count_tokens", json={"model": "m"})

    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert "messages" in answer.json()["error"]["message"]
    assert asked == []


async def test_models_are_listed_as_the_client_reads_them(tmp_path: Path) -> None:
    version = {"anthropic-version": "2023-06-01"}
    async with behind(tmp_path, "anthropic", lambda _: message()) as (gateway, _):
        listed = (await gateway.client.get("/v1/models", headers=version)).json()
        one = (await gateway.client.get("/v1/models/m", headers=version)).json()
        usual = (await gateway.client.get("/v1/models")).json()

    assert [row["type"] for row in listed["data"]] == ["model"]
    assert (listed["first_id"], listed["last_id"], listed["has_more"]) == ("m", "m", False)
    assert one == listed["data"][0]
    assert usual["object"] == "list"


async def test_an_assistants_first_question_is_answered_without_a_key(tmp_path: Path) -> None:
    async with behind(tmp_path, "anthropic", lambda _: message()) as (gateway, _):
        answer = await gateway.client.head("/api/hello", headers={"authorization": ""})

    assert answer.status_code == 200


@pytest.mark.bug("B125")
@pytest.mark.parametrize(
    "field", [{"previous_response_id": "resp_1"}, {"conversation": "c"}, {"background": True}]
)
async def test_what_needs_stored_state_is_refused(field: Json, tmp_path: Path) -> None:
    async with behind(tmp_path, "openai", lambda _: ok(b"{}")) as (gateway, asked):
        answer = await gateway.client.post(
            "/v1/responses", json={"model": "m", "input": "x", **field}
        )

    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == next(iter(field))
    assert asked == []


@pytest.mark.bug("B125")
async def test_nothing_is_stored_at_the_provider(tmp_path: Path) -> None:
    done: Json = {
        "id": "resp_1", "object": "response", "status": "completed", "model": "x", "output": [],
        "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
    }  # fmt: skip
    async with behind(tmp_path, "openai", lambda _: ok(json.dumps(done).encode())) as (
        gateway,
        asked,
    ):
        asking = {"model": "m", "input": "x", "store": True}
        answer = await gateway.client.post("/v1/responses", json=asking)

    assert answer.status_code == 200
    assert body_of(asked[0])["store"] is False
    assert "store" in answer.headers["x-gateway-warnings"]


@pytest.mark.bug("K32", "B100")
async def test_sealed_thoughts_come_back_though_the_caller_cannot_carry_them(
    tmp_path: Path,
) -> None:
    def play(request: Request) -> bytes:
        has_result = b"tool_result" in request.body
        done = {"type": "text", "text": "cold"}
        return message(done) if has_result else message(THOUGHT, CALL, stop="tool_use")

    asking: Json = {
        "model": "m",
        "messages": [{"role": "user", "content": "Weather?"}],
        "tools": TOOLS,
        "reasoning_effort": "low",
    }
    async with behind(tmp_path, "anthropic", play) as (gateway, asked):
        first = (await gateway.client.post("/v1/chat/completions", json=asking)).json()
        said = first["choices"][0]["message"]
        plain = {"role": "assistant", "content": None, "tool_calls": said["tool_calls"]}
        result = {"role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": "-5"}
        asking["messages"] += [plain, result]
        second = await gateway.client.post("/v1/chat/completions", json=asking)

    assert second.json()["choices"][0]["message"]["content"] == "cold"
    assistant = body_of(asked[1])["messages"][1]
    assert assistant["content"][0] == THOUGHT
    assert assistant["content"][1]["name"] == "weather"


@pytest.mark.bug("K32", "K30")
async def test_sealed_thoughts_of_another_tenant_stay_there(tmp_path: Path) -> None:
    other = "sk-other-0123456789abcdefghij"
    tenants = {
        "acme": {"keys": [{"id": "k", "secret": KEY}], "models": ["m"]},
        "rival": {"keys": [{"id": "k", "secret": other}], "models": ["m"]},
    }
    asking: Json = {
        "model": "m",
        "messages": [{"role": "user", "content": "Weather?"}],
        "tools": TOOLS,
        "reasoning_effort": "low",
    }
    play: Play = lambda _: message(THOUGHT, CALL, stop="tool_use")  # noqa: E731  one line says it
    async with behind(tmp_path, "anthropic", play, tenants=tenants) as (gateway, asked):
        first = (await gateway.client.post("/v1/chat/completions", json=asking)).json()
        said = first["choices"][0]["message"]
        plain = {"role": "assistant", "content": None, "tool_calls": said["tool_calls"]}
        result = {"role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": "-5"}
        asking["messages"] += [plain, result]
        headers = {"authorization": f"Bearer {other}"}
        await gateway.client.post("/v1/chat/completions", json=asking, headers=headers)

    assert THOUGHT["signature"].encode() not in asked[1].body


@pytest.mark.bug("K32", "B120")
async def test_what_one_account_sealed_is_not_sent_to_another(tmp_path: Path) -> None:
    down: set[bytes] = set()
    asked: list[Request] = []
    refusal = b"HTTP/1.1 401 No\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"

    async def script(peer: Peer) -> None:
        while True:
            request = await peer.request()
            asked.append(request)
            account = request.header(b"authorization") or b""
            await peer.send(refusal if account in down else sealed_by(account))

    async with upstream(script) as up:
        providers = {
            name: {"kind": "openai", "base_url": f"{up.url}/v1", "api_key": f"sk-{name}-0123456789"}
            for name in ("one", "two")
        }
        models = {"m": {"targets": [{"provider": name, "model": "gpt-5"} for name in providers]}}
        config = config_for(f"{up.url}/v1", providers=providers, models=models)
        async with serving(config, tmp_path) as gateway:
            asking: Json = {"model": "m", "input": "Hi", "include": ["reasoning.encrypted_content"]}
            first = (await gateway.client.post("/v1/responses", json=asking)).json()
            maker = asked[0].header(b"authorization") or b""
            seal = first["output"][0]["encrypted_content"].encode()
            asking["input"] = [{"role": "user", "content": "Hi"}, *first["output"]]
            asking["input"].append({"role": "user", "content": "On"})
            answers = [await gateway.client.post("/v1/responses", json=asking) for _ in range(5)]
            down.add(maker)
            answers.append(await gateway.client.post("/v1/responses", json=asking))

    mine = [seal in r.body for r in asked[1:] if r.header(b"authorization") == maker]
    others = [seal in r.body for r in asked[1:] if r.header(b"authorization") != maker]
    assert {answer.status_code for answer in answers} == {200}
    assert all(mine)
    assert not any(others)
    assert others


def sealed_by(account: bytes) -> bytes:
    """Return an answer of Responses whose reasoning one account has sealed."""
    text: Json = {"type": "output_text", "text": "ok", "annotations": []}
    seal = f"seal-of-{account.decode()[-12:]}"
    output: list[Json] = [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": seal},
        {
            "type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text],
        },
    ]  # fmt: skip
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    done: Json = {"id": "resp_1", "object": "response", "status": "completed", "model": "x"}
    return ok(json.dumps({**done, "output": output, "usage": usage}).encode())


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses", "/v1/chat/completions"])
async def test_money_is_settled_in_every_format(path: str, tmp_path: Path) -> None:
    prices = {"up/m-upstream": {"input": 1_000_000, "output": 1_000_000}}
    bodies: Json = {
        "/v1/messages": prompt(),
        "/v1/responses": {"model": "m", "input": "Hi"},
        "/v1/chat/completions": {"model": "m", "messages": [{"role": "user", "content": "Hi"}]},
    }
    text = {"type": "text", "text": "ok"}
    async with behind(tmp_path, "anthropic", lambda _: message(text), prices=prices) as (
        gateway,
        _,
    ):
        answer = await gateway.client.post(path, json=bodies[path])

        assert answer.status_code == 200, answer.text
        assert answer.headers["x-gateway-cost-usd"] == "18"
        assert gateway.count("gateway_tokens_total", type="input") == USAGE["input_tokens"]


async def test_documents_are_ranked_in_the_providers_own_form(tmp_path: Path) -> None:
    ranked = {"data": [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.1}]}
    asking = {"model": "m", "query": "q", "documents": ["a", "b"], "top_n": 1}
    async with behind(tmp_path, "voyage", lambda _: ok(json.dumps(ranked).encode())) as (
        gateway,
        asked,
    ):
        answer = await gateway.client.post("/v1/rerank", json=asking)

    assert body_of(asked[0])["top_k"] == 1
    assert [row["index"] for row in answer.json()["results"]] == [1]


async def test_mistakes_about_models_are_told_in_the_format_of_who_asks(tmp_path: Path) -> None:
    version = {"anthropic-version": "2023-06-01"}
    async with behind(tmp_path, "anthropic", lambda _: message()) as (gateway, _):
        unknown = await gateway.client.get("/v1/models/nope", headers=version)
        usual = await gateway.client.get("/v1/models/nope")
        first = await gateway.client.get("/v1/models?limit=1", headers=version)
        behind_it = await gateway.client.get("/v1/models?after_id=m", headers=version)

    assert (unknown.status_code, unknown.json()["type"]) == (404, "error")
    assert "type" not in usual.json()
    assert len(first.json()["data"]) == 1
    assert behind_it.json()["data"] == []


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [500, 502, 503, 504])
@pytest.mark.parametrize("kind", ["openai_compatible", "anthropic", "gemini"])
async def test_a_page_in_the_place_of_an_error_is_told_by_its_own_status(
    kind: str, status: int, stream: bool, tmp_path: Path
) -> None:
    page = b"<html><h1>Bad Gateway</h1></html>"
    head = b"HTTP/1.1 %d No\r\ncontent-type: text/html\r\ncontent-length: %d\r\n\r\n"
    refusal = head % (status, len(page)) + page
    asking: Json = {**prompt(), "stream": stream}
    async with behind(tmp_path, kind, lambda _: refusal) as (gateway, _):
        for path in ("chat/completions", "messages"):
            answer = await gateway.client.post(f"/v1/{path}", json=asking)
            assert answer.status_code == status
            assert answer.json()["error"]["type"]
            assert "html" not in answer.text
