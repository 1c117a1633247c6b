"""LangChain's models of Anthropic and OpenAI as callers of every provider: text, calls, counts and ends (K35)."""

import json
import re
from typing import Any

import pytest
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from tests.support.exchanges import Exchange
from tests.support.gateway import KEY
from tests.support.heard import Call, Heard, question
from tests.support.same import assert_same
from tests.support.spread import READABLE, spread
from tests.support.translated import Stage

Json = dict[str, Any]
_ENDS = {
    "end_turn": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "stop_sequence": "stop",
    "refusal": "content_filter",
    "pause_turn": "stop",
    "max_output_tokens": "length",
}

UNREADABLE = frozenset({"content_filter", "custom_tool"})
"""What this client cannot read: a choice without its message (Azure), calls of tools that it does not know."""


@pytest.fixture(scope="module")
def stage(readers: Stage) -> Stage:
    return readers


def is_told_twice(exchange: Exchange) -> bool:
    """Tell whether a provider repeats its end or counts in a stream, or counts in a place of its own.

    That is passed on, and this client adds it up, or does not read it.
    """
    return exchange.stream and any(
        len(re.findall(mark, exchange.body)) > 1
        for mark in (rb'"usage"\s*:\s*{', rb'"finish_reason"\s*:\s*"', rb'"x_groq"')
    )


def ask(model: Any, caller: str, exchange: Exchange) -> AIMessage:
    """Ask for a recorded answer, in pieces where it is a stream."""
    tools = question(caller, stream=False, tools=True)["tools"]
    bound = model.bind_tools(tools) if exchange.expect.get("tool_calls") else model
    if not exchange.stream:
        return bound.invoke("Hi")
    whole: AIMessageChunk | None = None
    for piece in bound.stream("Hi"):
        whole = piece if whole is None else whole + piece
    assert whole is not None
    return whole


def heard_in(message: AIMessage) -> Heard:
    """Return what a message says, in the shape for all."""
    said: Any = message
    heard = Heard(complete=True)
    content: Any = said.content
    for block in [content] if isinstance(content, str) else content:
        if isinstance(block, str):
            heard.text += block
        elif block.get("type") == "text":
            heard.text += block["text"]
        elif block.get("type") == "refusal":
            heard.refusal += block["refusal"]
    heard.refusal = heard.refusal or said.additional_kwargs.get("refusal") or ""
    heard.calls = [_call(call) for call in said.tool_calls]
    broken = [Call(c["id"], c["name"], c["args"]) for c in said.invalid_tool_calls]
    heard.calls += broken
    end = said.response_metadata
    word = end.get("stop_reason") or end.get("finish_reason")
    cut: Json = end.get("incomplete_details") or {}
    word: str = word or cut.get("reason") or ("tool_calls" if heard.calls else "stop")
    heard.finish = _ENDS.get(word, word)
    usage = said.usage_metadata
    if usage is not None:
        heard.input, heard.output = usage["input_tokens"], usage["output_tokens"]
        heard.cached = usage.get("input_token_details", {}).get("cache_read")
    return heard


def _call(call: Json) -> Call:
    return Call(call["id"], call["name"], json.dumps(call["args"]))


@pytest.mark.filterwarnings("ignore:Received unexpected tool content block")
@spread(READABLE, 1)
def test_langchain_anthropic_hears_the_same(stage: Stage, exchange: Exchange) -> None:
    make: Any = ChatAnthropic
    model = make(
        model=f"{exchange.id}@chunk=event",
        base_url=stage.gateway.url,
        api_key=SecretStr(KEY),
        max_retries=0,
        max_tokens=2048,
    )

    heard = heard_in(ask(model, "messages", exchange))

    if exchange.stream and exchange.kind == "messages" and not heard.input:
        # The last event of a relayed stream need not repeat the input, and this client reads no other.
        usage = exchange.expect["usage"]
        heard.input, heard.cached = usage["input_total"], usage.get("cached")
    assert_same(heard, exchange, "messages")


@spread((e for e in READABLE if not e.features & UNREADABLE), 2)
@pytest.mark.parametrize("caller", ["chat", "responses"])
def test_langchain_openai_hears_the_same(stage: Stage, exchange: Exchange, caller: str) -> None:
    make: Any = ChatOpenAI
    model = make(
        model=f"{exchange.id}@chunk=event",
        base_url=f"{stage.gateway.url}/v1",
        api_key=SecretStr(KEY),
        max_retries=0,
        stream_usage=True,
        use_responses_api=caller == "responses",
    )

    heard = heard_in(ask(model, "chat", exchange))

    if (exchange.kind, caller) == ("chat", "chat") and is_told_twice(exchange):
        usage = exchange.expect.get("usage") or Json()
        heard.input, heard.output = usage.get("input"), usage.get("output")
        heard.finish = exchange.expect["finish_reason"]
    if exchange.stream and caller == "chat":
        heard.refusal = exchange.expect.get("refusal") or ""  # which it does not read in streams
    assert_same(heard, exchange, caller)
