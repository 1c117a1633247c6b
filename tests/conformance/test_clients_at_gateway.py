"""Clients of other providers, pointed at the gateway: Mistral's for chat, Cohere's for rerank (K35)."""

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx
import pytest
from cohere import AsyncClient, AsyncClientV2
from mistralai.client import Mistral
from mistralai.client.errors import MistralError

from tests.contract.test_formats import behind, body_of
from tests.support.exchanges import Exchange
from tests.support.gateway import KEY
from tests.support.heard import Call, Heard
from tests.support.same import assert_same
from tests.support.scripted_upstream import ok
from tests.support.serving import KEY as OWN_KEY
from tests.support.spread import READABLE, REFUSALS, spread
from tests.support.translated import Stage

Json = dict[str, Any]
ASKED = [{"role": "user", "content": "Hi"}]


@pytest.fixture(scope="module")
def chat(readers: Stage) -> Generator[Any]:
    make: Any = Mistral  # its own type of a client is one of the same methods
    with httpx.Client(trust_env=False, timeout=20) as connections:
        yield make(KEY, server_url=readers.gateway.url, client=connections).chat


def take(heard: Heard, said: Any, calls: dict[int, Call]) -> None:
    """Take a message or a piece of one."""
    heard.text += said.content or ""
    for at, call in enumerate(said.tool_calls or ()):
        one = calls.setdefault(call.index or at, Call())
        one.name += call.function.name
        arguments: Any = call.function.arguments
        one.text += arguments if isinstance(arguments, str) else json.dumps(arguments)


def count(heard: Heard, usage: Any) -> None:
    if usage:
        heard.input, heard.output = usage.prompt_tokens, usage.completion_tokens
        cached = getattr(usage, "prompt_tokens_details", None) or Json()
        heard.cached = cached.get("cached_tokens")


def is_within_its_types(exchange: Exchange) -> bool:
    """Tell whether this client takes an answer: no calls in pieces, no fields that others leave out of a relay."""
    if exchange.features & {"n_choices", "custom_tool", "refusal"}:
        return False
    if exchange.provider == "mistral":
        return True
    return exchange.kind != "chat" and not (exchange.stream and exchange.expect.get("tool_calls"))


@spread(filter(is_within_its_types, READABLE), 4)
def test_mistrals_client_hears_the_same(chat: Any, exchange: Exchange) -> None:
    model, heard, calls = f"{exchange.id}@chunk=7", Heard(complete=True), dict[int, Call]()
    if exchange.stream:
        for event in chat.stream(model=model, messages=ASKED):
            count(heard, event.data.usage)
            for choice in event.data.choices:
                take(heard, choice.delta, calls)
                heard.finish = choice.finish_reason or heard.finish
    else:
        answer = chat.complete(model=model, messages=ASKED)
        take(heard, answer.choices[0].message, calls)
        heard.finish = answer.choices[0].finish_reason
        count(heard, answer.usage)
    heard.calls = list(calls.values())
    if exchange.stream and heard.input is None:  # streams count for who asks, and it never does
        usage: Json = exchange.expect.get("usage") or {}
        heard.input = usage.get("input_total")
        heard.output, heard.cached = usage.get("output_total"), usage.get("cached")

    assert_same(heard, exchange, "chat")


@spread(REFUSALS, 1)
def test_mistrals_client_raises(chat: Any, exchange: Exchange) -> None:
    with pytest.raises(MistralError) as raised:
        chat.complete(model=f"{exchange.id}@seed=7", messages=ASKED)

    assert raised.value.status_code >= 400
    assert json.loads(raised.value.body)["error"]["message"]


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("cohere", {"id": "r", "results": [{"index": 1, "relevance_score": 0.9}], "meta": {}}),
        ("jina", {"model": "m", "results": [{"index": 1, "relevance_score": 0.9}]}),
        ("voyage", {"object": "list", "data": [{"index": 1, "relevance_score": 0.9}]}),
    ],
)
@pytest.mark.parametrize("client_of", [AsyncClient, AsyncClientV2])
async def test_coheres_clients_rank_with_every_provider(
    kind: str, answer: Json, client_of: Any, tmp_path: Path
) -> None:
    async with (
        behind(tmp_path, kind, lambda _: ok(json.dumps(answer).encode())) as (gateway, asked),
        httpx.AsyncClient(trust_env=False) as connections,
    ):
        client = client_of(OWN_KEY, base_url=gateway.url, httpx_client=connections)
        ranked = await client.rerank(model="m", query="q", documents=["a", "b"], top_n=1)

    assert [(each.index, each.relevance_score) for each in ranked.results] == [(1, 0.9)]
    assert body_of(asked[0])["documents"] == ["a", "b"]
