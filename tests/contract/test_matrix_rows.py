"""Rows of the matrix that stand for themselves: callers of Messages, what stays private, names, and the tap."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from gateway.config.errors import ConfigError
from gateway.core.ledger import UsageQuery
from tests.support.models import ask, chained, events, refuse, said, texts

INNER = """
from gateway.middleware.base import Middleware


class Inner(Middleware):
    async def before_model(self, call):
        return None
"""
FALLBACK = [{"fallback": {"models": ["m2"]}}]


def message(**more: object) -> dict[str, Any]:
    return {**ask(), "max_tokens": 64, **more}


@pytest.mark.contract("G-FALL-12", "T-069")
async def test_callers_of_messages_are_told_the_model_that_answered(tmp_path: Path) -> None:
    async with chained(tmp_path, FALLBACK, m1=[refuse(503)], m2=[said()]) as (gateway, models):
        plain = await gateway.post(message(), "/v1/messages")
        stream = await gateway.post(message(stream=True), "/v1/messages")

    events = [
        json.loads(line[6:]) for line in stream.text.splitlines() if line.startswith("data: ")
    ]
    assert models.order == ["m1", "m2", "m1", "m2"]
    assert plain.json()["model"] == "m2"
    assert (events[0]["type"], events[0]["message"]["model"]) == ("message_start", "m2")


@pytest.mark.contract("T-072")
@pytest.mark.parametrize("stream", [False, True])
async def test_an_overload_is_told_in_the_words_of_messages(stream: bool, tmp_path: Path) -> None:
    async with chained(tmp_path, [], m1=[refuse(529)]) as (gateway, _):
        answer = await gateway.post(message(stream=stream), "/v1/messages")

    told = answer.json()
    assert answer.status_code >= 500
    assert told["type"] == "error"
    assert told["error"]["type"] in {"overloaded_error", "api_error"}
    assert told["request_id"] == answer.headers["x-request-id"]


@pytest.mark.contract("G-STAT-7", "T-038")
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses"])
async def test_a_page_of_the_provider_is_told_to_no_caller(path: str, tmp_path: Path) -> None:
    asked = {"model": "m1", "input": "hi"} if path == "/v1/responses" else message()
    async with chained(tmp_path, [], m1=[refuse(400, b"secret-stack")]) as (gateway, _):
        answer = await gateway.post(asked, path)

    assert answer.status_code == 400
    assert "secret-stack" not in f"{answer.text} {answer.headers}"


def plugged(**more: object) -> dict[str, Any]:
    return {"plugin": "inner.py:Inner", **more}


@pytest.mark.contract("G-REG-8", "T-237")
@pytest.mark.parametrize("name", ["a/b", "a:b", "a b", "a\\b", "a\nb"])
async def test_the_name_of_a_layer_is_one_word(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="id"):
        async with chained(tmp_path, [plugged(id=name)], files={"inner.py": INNER}, m1=[said()]):
            pass


@pytest.mark.contract("D-8", "T-230")
async def test_the_tap_sees_a_hit_that_a_layer_inside_does_not(tmp_path: Path) -> None:
    cache = {"semantic_cache": {"scope": "tenant", "semantic": False, "max_temperature": 2}}
    chain = [cache, plugged(id="inner")]
    async with chained(tmp_path, chain, files={"inner.py": INNER}, m1=[said()]) as (
        gateway,
        models,
    ):
        for name in ("miss", "hit"):
            answer = await gateway.post(ask(), x_request_id=name)
            assert answer.status_code == 200
        miss, hit = (gateway.worker.traces.find(name) for name in ("miss", "hit"))

    assert models.n() == 1
    assert miss is not None
    assert hit is not None
    assert "inner" in {step.get("name") for step in miss["steps"]}
    assert {step["name"] for step in hit["steps"][:-1]} == {"semantic_cache"}
    outcome = hit["steps"][-1]
    assert (outcome["outcome"], outcome["status"], outcome["attempts"]) == ("ok", 200, 0)


@pytest.mark.contract("T-232")
async def test_a_stream_that_was_cut_unseen_is_paid_for_and_not_told(tmp_path: Path) -> None:
    retry = {"stream_commit": "complete", "max_retries": 1, "initial_delay_ms": 1, "jitter": "none"}
    head = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m1"}
    words: list[dict[str, Any]] = [
        {**head, "choices": [{"index": 0, "delta": {"content": word}, "finish_reason": None}]}
        for word in ("one", "two", "three")
    ]
    counted = {"prompt_tokens": 30, "completion_tokens": 10, "total_tokens": 40}
    lines: list[dict[str, Any]] = [*words, {**head, "choices": [], "usage": counted}]
    lost = events(b"".join(b"data: %b\n\n" % json.dumps(line).encode() for line in lines))
    asked = ask(stream=True, stream_options={"include_usage": True})
    async with chained(tmp_path, [{"retry": retry}], m1=[lost, said("all", tokens=(15, 5))]) as (
        gateway,
        models,
    ):
        answer = await gateway.post(asked)
        ledger = gateway.worker._state.ledger
        async with asyncio.timeout(10):
            while True:
                found = await ledger.usage(UsageQuery(0, 4_000_000_000_000, ("model",)))
                if found and found[0].calls == 2:
                    break
                await asyncio.sleep(0.01)

    assert models.n() == 2
    assert texts(answer.text) == "all"
    assert json.loads(answer.text.split("data: ")[-2])["usage"]["total_tokens"] == 20
    assert found[0].input + found[0].output == 60


@pytest.mark.bug("K07")
@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"headers": {"authorization": "Bearer wrong"}}, 401),
        ({"content": b"{"}, 400),
        ({"json": {"model": "m9", "max_tokens": 1, "messages": []}}, 404),
        ({"json": {"max_tokens": 1}}, 400),
    ],
)
async def test_clients_of_messages_find_the_id_of_every_error(
    asked: dict[str, Any], status: int, tmp_path: Path
) -> None:
    async with chained(tmp_path, [], m1=[said()]) as (gateway, _):
        answer = await gateway.client.post("/v1/messages", **asked)

    assert answer.status_code == status
    assert answer.headers["request-id"] == answer.headers["x-request-id"]
    assert answer.json()["request_id"] == answer.headers["request-id"]
