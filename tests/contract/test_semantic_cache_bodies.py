"""The semantic cache at endpoints whose answers are no words of a conversation: vectors, and the older completions."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.cache_scene import Json, cached, where
from tests.support.models import Step, events, refuse
from tests.support.serving import Serving

COMPLETIONS = "/v1/completions"
TEXT = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"


def completion(text: str = TEXT, finish: str = "stop", **more: Any) -> Step:
    """Answer as the older endpoint does."""
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish, **more}
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    body = {"id": "c-1", "object": "text_completion", "created": 1, "model": "m1"}
    return refuse(200, json.dumps({**body, "choices": [choice], "usage": usage}).encode())


def streamed(text: str = TEXT, finish: str | None = "stop", **more: Any) -> Step:
    """Answer as the older endpoint streams, a word at a time."""
    head = {"id": "c-1", "object": "text_completion", "created": 1, "model": "m1"}
    *words, last = text.split()
    choices = [{"index": 0, "text": f"{word} ", "finish_reason": None} for word in words]
    choices.append({"index": 0, "text": last, "finish_reason": finish, **more})
    sent = [json.dumps({**head, "choices": [choice]}) for choice in choices]
    return events("".join(f"data: {each}\n\n" for each in [*sent, "[DONE]"]).encode())


async def embed(served: Serving, given: object = "hi", **more: Any) -> httpx2.Response:
    """Ask for vectors."""
    headers: dict[str, str] = more.pop("headers", {})
    body = {"model": "embed", "input": given, **more}
    return await served.post(body, path="/v1/embeddings", **headers)


async def complete(served: Serving, prompt: object = "hi", **more: Any) -> httpx2.Response:
    """Ask for a continuation."""
    headers: dict[str, str] = more.pop("headers", {})
    body = {"model": "m1", "prompt": prompt, **more}
    return await served.post(body, path=COMPLETIONS, **headers)


def opened(config: Json) -> None:
    """Let callers ask for vectors themselves."""
    config["tenants"]["acme"]["models"].append("embed")


def text_of(answer: httpx2.Response, *, stream: bool) -> str:
    """Return the text of a continuation."""
    if not stream:
        return str(answer.json()["choices"][0]["text"])
    lines = [
        json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")
    ]
    return "".join(line["choices"][0]["text"] for line in lines if line["choices"])


@pytest.mark.contract("W-CACHE-2", "W-CACHE-4")
@pytest.mark.parametrize("given", ["hi", ["hi", "there"], [1, 2, 3]])
async def test_the_same_vectors_are_made_once(given: object, tmp_path: Path) -> None:
    async with cached(tmp_path, config=opened) as (gateway, models):
        one = await embed(gateway, given)
        two = await embed(gateway, given)

    assert (where(one), where(two)) == ("miss", "hit-exact")
    assert len(models.embedded) == 1
    assert two.json()["data"] == one.json()["data"]
    assert set(two.json()["usage"].values()) == {0}
    assert one.json()["usage"]["prompt_tokens"] == 1


@pytest.mark.contract("W-CACHE-9", "W-CACHE-14")
@pytest.mark.parametrize(
    "other",
    [
        {"given": "please, hi"},
        {"dimensions": 2},
        {"encoding_format": "float"},
        {"headers": {"x_gateway_session": "s"}},
    ],
)
async def test_vectors_are_found_by_the_same_request_alone(other: Json, tmp_path: Path) -> None:
    async with cached(tmp_path, config=opened) as (gateway, models):
        await embed(gateway)
        answer = await embed(gateway, **other)

    assert where(answer) == "miss"
    assert len(models.embedded) == 2


async def test_words_of_the_hour_and_temperature_bar_no_vectors(tmp_path: Path) -> None:
    async with cached(tmp_path, {"max_temperature": 0.1}, config=opened) as (gateway, models):
        await embed(gateway, "what is new today")
        answer = await embed(gateway, "what is new today")

    assert where(answer) == "hit-exact"
    assert len(models.embedded) == 1


@pytest.mark.contract("W-CACHE-2", "W-CACHE-4")
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("stream", [False, True])
async def test_the_same_continuation_is_written_once(
    first: bool, stream: bool, tmp_path: Path
) -> None:
    step = streamed() if first else completion()
    async with cached(tmp_path, m1=[step]) as (gateway, models):
        one = await complete(gateway, stream=first)
        two = await complete(gateway, stream=stream, stream_options={"include_usage": True})
    assert (where(one), where(two)) == ("miss", "hit-exact")
    assert models.n() == 1
    assert not models.embedded
    assert text_of(one, stream=first) == text_of(two, stream=stream) == TEXT
    assert "c-1" not in two.text
    if stream:
        assert two.text.endswith("data: [DONE]\n\n")
        assert '"finish_reason":"stop"' in two.text
        assert two.text.count("data: ") == 5  # two pieces, the finish, the usage, the end
    assert '"total_tokens":0' in two.text


@pytest.mark.contract("W-CACHE-16")
@pytest.mark.parametrize(
    ("step", "stream"),
    [
        (completion(finish="length"), False),
        (completion(finish="content_filter"), False),
        (completion(""), False),
        (streamed(finish="length"), True),
        (streamed(finish=None), True),
    ],
)
async def test_a_continuation_that_did_not_come_to_its_end_is_not_kept(
    step: Step, stream: bool, tmp_path: Path
) -> None:
    async with cached(tmp_path, m1=[step]) as (gateway, models):
        await complete(gateway, stream=stream)
        answer = await complete(gateway, stream=stream)

    assert where(answer) == "miss"
    assert models.n() == 2


@pytest.mark.parametrize("prompt", ["what is the latest news", ["hi", "what is new today"]])
async def test_words_of_the_hour_bar_a_continuation(prompt: object, tmp_path: Path) -> None:
    async with cached(tmp_path, m1=[completion()]) as (gateway, _):
        answers = [await complete(gateway, prompt) for _ in range(2)]

    assert [where(each) for each in answers] == ["off", "off"]


async def test_a_stream_with_weights_of_tokens_is_not_put_together(tmp_path: Path) -> None:
    weights = {"tokens": ["a"], "token_logprobs": [-0.1]}
    steps = [streamed(logprobs=weights), completion(logprobs=weights)]
    async with cached(tmp_path, m1=steps) as (gateway, models):
        await complete(gateway, stream=True)
        assert where(await complete(gateway)) == "miss"
        again = await complete(gateway, stream=True)

    assert where(again) == "hit-exact"
    assert models.n() == 2
    assert '"token_logprobs":[-0.1]' in again.text


@pytest.mark.contract("O-1")
async def test_the_same_in_flight_is_asked_once(tmp_path: Path) -> None:
    async with cached(tmp_path, config=opened, m1=[completion()]) as (gateway, models):
        vectors = await asyncio.gather(*(embed(gateway) for _ in range(8)))
        texts = await asyncio.gather(*(complete(gateway, stream=bool(n % 2)) for n in range(8)))

    assert (len(models.embedded), models.n()) == (1, 1)
    assert {str(each.json()["data"]) for each in vectors} == {str(vectors[0].json()["data"])}
    assert {text_of(each, stream=bool(n % 2)) for n, each in enumerate(texts)} == {TEXT}


@pytest.mark.contract("X-2")
@pytest.mark.parametrize("stream", [False, True])
async def test_a_guardrail_inside_sees_what_is_kept(stream: bool, tmp_path: Path) -> None:
    checks = [{"kind": "words", "words": ["eleven"], "action": "redact"}]
    inner = [{"guardrail": {"input": checks, "output": checks}}]
    async with cached(tmp_path, inner=inner, config=opened, m1=[completion()]) as (gateway, models):
        first = await complete(gateway)
        hit = await complete(gateway, stream=stream)
        vectors = [await embed(gateway) for _ in range(2)]

    assert [where(each) for each in (hit, vectors[1])] == ["hit-exact", "hit-exact"]
    assert "eleven" not in first.text + hit.text
    assert text_of(hit, stream=stream) == text_of(first, stream=False)
    assert vectors[1].json()["data"] == vectors[0].json()["data"]
    assert models.n() == 1
