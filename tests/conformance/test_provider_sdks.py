"""The own clients of Cohere, Mistral and AWS as judges: they read recorded answers as the gateway does (K35, K07)."""

import json
from collections.abc import Generator
from contextlib import closing
from typing import Any

import httpx
import pytest
from boto3.session import Session  # pyright: ignore[reportMissingTypeStubs]
from botocore.config import Config  # pyright: ignore[reportMissingTypeStubs]
from botocore.exceptions import ClientError  # pyright: ignore[reportMissingTypeStubs]
from cohere import ClientV2
from cohere.core import ApiError
from mistralai.client import Mistral
from mistralai.client.errors import MistralError

from gateway.dialects.base import unredacted
from gateway.dialects.registry import TARGETS
from tests.support.exchanges import Exchange
from tests.support.folder import address_of, folder
from tests.support.gateway import Replay, run_replay
from tests.support.replayed_directly import Said, arguments, neutral, recorded, told

ASKED = [{"role": "user", "content": "Hi"}]

pytestmark = pytest.mark.bug("K07", "K35")


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Generator[Replay]:
    with run_replay(tmp_path_factory.mktemp("replay"), recordings=folder()) as replay:
        yield replay


@pytest.fixture(scope="module")
def connections() -> Generator[httpx.Client]:
    """What both clients send with, closed at the end."""
    with httpx.Client(trust_env=False, timeout=20) as connections:
        yield connections


def each(exchanges: list[Exchange]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("exchange", [pytest.param(e, id=e.id) for e in exchanges])


def ours(exchange: Exchange, target: str) -> Said:
    """Return what the gateway hears, which must be what the recording tells."""
    said = told(neutral(exchange, target))
    expect = exchange.expect
    plan = expect.get("tool_plan") or ""
    if "text" in expect:
        assert said.text == plan + expect["text"]
    if "finish_reason" in expect:
        assert said.finish == expect["finish_reason"]
    return said


# ---------------------------------------------------------------- Cohere


@pytest.fixture
def cohere(replay: Replay, connections: httpx.Client, exchange: Exchange) -> Any:
    url = replay.url + address_of(exchange.raw)
    return ClientV2("some-key", base_url=url, max_retries=0, httpx_client=connections)


@each(recorded("cohere", "chat"))
def test_coheres_client_reads_the_same(cohere: Any, exchange: Exchange) -> None:
    if exchange.stream:
        heard = cohere_stream(cohere.chat_stream(model="m", messages=ASKED))
    else:
        answer = cohere.chat(model="m", messages=ASKED)
        heard = Said(text=answer.message.tool_plan or "", finish=answer.finish_reason)
        for item in answer.message.content or ():
            heard.text += item.text if item.type == "text" else ""
            heard.reasoning += item.thinking if item.type == "thinking" else ""
        for call in answer.message.tool_calls or ():
            heard.calls.append((call.function.name, arguments(call.function.arguments)))
        cohere_usage(heard, answer.usage)

    assert heard.fields() == ours(exchange, "cohere_v2").fields()


def cohere_stream(events: Any) -> Said:
    """Put the typed events of a stream together."""
    heard, calls = Said(), dict[int, list[str]]()
    for event in events:
        match event.type:
            case "tool-plan-delta":
                heard.text += event.delta.message.tool_plan
            case "content-delta":
                heard.text += event.delta.message.content.text or ""
                heard.reasoning += event.delta.message.content.thinking or ""
            case "tool-call-start":
                function = event.delta.message.tool_calls.function
                calls[event.index] = [function.name, function.arguments or ""]
            case "tool-call-delta":
                calls[event.index][1] += event.delta.message.tool_calls.function.arguments
            case "message-end":
                heard.finish = event.delta.finish_reason
                cohere_usage(heard, event.delta.usage)
            case _:
                pass
    heard.calls = [(name, arguments(text)) for name, text in calls.values()]
    return heard


def cohere_usage(heard: Said, usage: Any) -> None:
    if usage is not None:
        heard.input, heard.output = usage.tokens.input_tokens, usage.tokens.output_tokens
        heard.cached = usage.cached_tokens


@each(recorded("cohere", "chat", refused=True))
def test_coheres_client_raises_what_the_gateway_is_told(cohere: Any, exchange: Exchange) -> None:
    with pytest.raises(ApiError) as raised:
        cohere.chat(model="m", messages=ASKED)

    body: Any = raised.value.body
    assert raised.value.status_code == exchange.status
    assert body["message"] == refused(exchange, "cohere_v2")


def refused(exchange: Exchange, target: str) -> str:
    """Return the message that the gateway reads of a refusal."""
    return TARGETS[target].read_error(exchange.status, exchange.body, unredacted).message


# ---------------------------------------------------------------- Mistral


@pytest.fixture
def mistral(replay: Replay, connections: httpx.Client, exchange: Exchange) -> Any:
    url = replay.url + address_of(exchange.raw)
    make: Any = Mistral  # its own type of a client is one of the same methods
    return make("some-key", server_url=url, client=connections).chat


@each(recorded("mistral", "chat"))
def test_mistrals_client_reads_the_same(mistral: Any, exchange: Exchange) -> None:
    heard = Said()
    if exchange.stream:
        calls: dict[int, list[str]] = {}
        for event in mistral.stream(model="m", messages=ASKED):
            choice = event.data.choices[0]
            mistral_text(heard, choice.delta.content)
            for call in choice.delta.tool_calls or ():
                one = calls.setdefault(call.index, ["", ""])
                one[0] += call.function.name
                one[1] += mistral_written(call.function.arguments)
            heard.finish = choice.finish_reason or heard.finish
            mistral_usage(heard, event.data.usage)
        heard.calls = [(name, arguments(text)) for name, text in calls.values()]
    else:
        answer = mistral.complete(model="m", messages=ASKED)
        choice = answer.choices[0]
        mistral_text(heard, choice.message.content)
        for call in choice.message.tool_calls or ():
            heard.calls.append((call.function.name, mistral_arguments(call.function.arguments)))
        heard.finish = choice.finish_reason
        mistral_usage(heard, answer.usage)

    said = ours(exchange, "openai_chat")
    said.cached = None  # not of its types
    assert heard.fields() == said.fields()


def mistral_written(given: Any) -> str:
    """Return arguments as text: this provider may give an object."""
    return given if isinstance(given, str) else json.dumps(given)


def mistral_arguments(given: Any) -> Any:
    return arguments(mistral_written(given))


def mistral_text(heard: Said, content: Any) -> None:
    """Take a text, or parts of thinking and text."""
    if isinstance(content, str):
        heard.text += content
        return
    for part in content or ():
        if part.type == "thinking":
            inner = [each.text for each in part.thinking if each.type == "text"]
            heard.reasoning += "".join(inner)
        elif part.type == "text":
            heard.text += part.text


def mistral_usage(heard: Said, usage: Any) -> None:
    if usage:
        heard.input, heard.output = usage.prompt_tokens, usage.completion_tokens


@each(recorded("mistral", "chat", refused=True))
def test_mistrals_client_raises_what_the_gateway_is_told(mistral: Any, exchange: Exchange) -> None:
    with pytest.raises(MistralError) as raised:
        mistral.complete(model="m", messages=ASKED)

    assert raised.value.status_code == exchange.status
    said = refused(exchange, "openai_chat").rpartition(": ")[2]  # where the fault is comes before
    assert said in raised.value.body


# ---------------------------------------------------------------- AWS


@pytest.fixture(scope="module")
def aws(replay: Replay) -> Generator[Any]:
    """A client whose requests name a recording in a header."""
    session: Any = Session("AKIAEXAMPLE", "made-up-secret", region_name="us-east-1")
    once = Config(retries={"max_attempts": 1}, proxies={})
    with closing(session.client("bedrock-runtime", endpoint_url=replay.url, config=once)) as client:
        yield client


def converse(aws: Any, exchange: Exchange) -> Any:
    """Ask for a recorded answer with the call that it answers."""

    def named(request: Any, **_: object) -> None:
        request.headers["x-replay-id"] = exchange.raw["id"]

    wanted = {"modelId": "m", "messages": [{"role": "user", "content": [{"text": "Hi"}]}]}
    aws.meta.events.register_first("before-send.bedrock-runtime", named, unique_id="replay")
    try:
        return (aws.converse_stream if exchange.stream else aws.converse)(**wanted)
    finally:
        aws.meta.events.unregister("before-send.bedrock-runtime", named, unique_id="replay")


@each(recorded("bedrock", "converse"))
def test_awss_client_reads_the_same(aws: Any, exchange: Exchange) -> None:
    answer = converse(aws, exchange)
    if exchange.stream:
        heard = converse_stream(answer["stream"])
    else:
        heard = Said(finish=answer["stopReason"])
        for block in answer["output"]["message"]["content"]:
            heard.text += block.get("text", "")
            cited = block.get("citationsContent", {}).get("content", ())
            heard.text += "".join(each["text"] for each in cited)
            thought = block.get("reasoningContent", {}).get("reasoningText", {})
            heard.reasoning += thought.get("text", "")
            if is_call(block.get("toolUse")):
                heard.calls.append((block["toolUse"]["name"], block["toolUse"]["input"]))
        converse_usage(heard, answer["usage"])

    assert heard.fields() == ours(exchange, "bedrock_converse").fields()


def converse_stream(events: Any) -> Said:
    """Put the frames of a stream together, as botocore has decoded them."""
    heard, calls = Said(), dict[int, list[str]]()
    for event in events:
        ((kind, said),) = event.items()
        match kind:
            case "contentBlockStart" if is_call(said["start"].get("toolUse")):
                calls[said["contentBlockIndex"]] = [said["start"]["toolUse"]["name"], ""]
            case "contentBlockDelta":
                delta = said["delta"]
                heard.text += delta.get("text", "")
                heard.reasoning += delta.get("reasoningContent", {}).get("text", "")
                if said["contentBlockIndex"] in calls and "toolUse" in delta:
                    calls[said["contentBlockIndex"]][1] += delta["toolUse"]["input"]
            case "messageStop":
                heard.finish = said["stopReason"]
            case "metadata":
                converse_usage(heard, said["usage"])
            case _:
                pass
    heard.calls = [(name, arguments(text)) for name, text in calls.values()]
    return heard


def is_call(use: Any) -> bool:
    """Tell whether a tool is to be called: not one that the provider has called itself."""
    return use is not None and use.get("type") != "server_tool_use"


def converse_usage(heard: Said, usage: Any) -> None:
    """Cached tokens stand beside those of the input."""
    beside = usage.get("cacheReadInputTokens", 0) + usage.get("cacheWriteInputTokens", 0)
    heard.input, heard.output = usage["inputTokens"] + beside, usage["outputTokens"]
    heard.cached = usage.get("cacheReadInputTokens")


@each(recorded("bedrock", "converse", refused=True))
def test_awss_client_raises_what_the_gateway_is_told(aws: Any, exchange: Exchange) -> None:
    with pytest.raises(ClientError) as raised:
        converse(aws, exchange)

    error: Any = raised.value
    answer = error.response
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == exchange.status
    assert answer["Error"]["Message"] == refused(exchange, "bedrock_converse")
