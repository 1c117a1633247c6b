"""Anthropic's own client reads answers of every provider through the gateway, in typed and strict mode (K35, K37)."""

from collections.abc import AsyncGenerator, Generator
from typing import Any

import pytest
from anthropic import (
    Anthropic,
    APIError,
    APIStatusError,
    AsyncAnthropic,
    BadRequestError,
    ConflictError,
    DeadlineExceededError,
    InternalServerError,
    NotFoundError,
    OverloadedError,
    RateLimitError,
    RequestTooLargeError,
    ServiceUnavailableError,
    UnprocessableEntityError,
)
from anthropic.types import Message, ThinkingBlock

from tests.support.exchanges import Exchange
from tests.support.gateway import KEY
from tests.support.heard_typed import of_message
from tests.support.replayed_directly import arguments
from tests.support.same import arguments_of, assert_same, is_credential
from tests.support.shared import absent
from tests.support.spread import READABLE, REFUSALS, readable, spread
from tests.support.translated import EXCHANGES, Stage, asking

Json = dict[str, Any]
BROKEN = [pytest.param(e, id=e.id) for e in EXCHANGES if e.stream and e.expect.get("error")]
CLASSES: dict[int, tuple[type[APIStatusError], str]] = {
    400: (BadRequestError, "invalid_request_error"),
    404: (NotFoundError, "not_found_error"),
    409: (ConflictError, "conflict_error"),
    413: (RequestTooLargeError, "request_too_large"),
    422: (UnprocessableEntityError, "invalid_request_error"),
    429: (RateLimitError, "rate_limit_error"),
    500: (InternalServerError, "api_error"),
    502: (InternalServerError, "api_error"),
    503: (ServiceUnavailableError, "api_error"),
    504: (DeadlineExceededError, "timeout_error"),
    529: (OverloadedError, "overloaded_error"),
}

BETA_BLOCKS = {"compaction", "mcp_tool_use", "mcp_tool_result", "advisor_tool_result", "fallback"}
"""Blocks that only the beta client has types for."""


@pytest.fixture(scope="module")
def stage(readers: Stage) -> Stage:
    return readers


def options(stage: Stage) -> Json:
    """Return what a client is made with; strict: an answer that is not of its types raises."""
    return {
        "api_key": KEY,
        "base_url": stage.gateway.url,
        "max_retries": 0,
        "_strict_response_validation": True,
    }


@pytest.fixture(scope="module")
def client(stage: Stage) -> Generator[Anthropic]:
    with Anthropic(**options(stage)) as client:
        yield client


@pytest.fixture
async def waiting(stage: Stage) -> AsyncGenerator[AsyncAnthropic]:
    async with AsyncAnthropic(**options(stage)) as client:
        yield client


def asked(stage: Stage, exchange: Exchange, cut: str = "") -> Any:
    """Return what is asked for a recorded answer."""
    body: Any = asking(stage.gateway, exchange, "messages", cut)["json"]
    body.pop("stream", None)
    return body


@spread(readable(stream=False))
def test_a_plain_answer_is_read(stage: Stage, client: Anthropic, exchange: Exchange) -> None:
    create: Any = client.messages.create
    message = create(**asked(stage, exchange))

    assert_same(of_message(message), exchange, "messages")
    assert message._request_id


@spread(readable(stream=False), 1)
async def test_a_plain_answer_is_read_by_who_waits(
    stage: Stage, waiting: AsyncAnthropic, exchange: Exchange
) -> None:
    create: Any = waiting.messages.create
    message = await create(**asked(stage, exchange))

    assert_same(of_message(message), exchange, "messages")


@spread(readable(stream=True))
def test_a_stream_is_put_together(stage: Stage, client: Anthropic, exchange: Exchange) -> None:
    with client.messages.stream(**asked(stage, exchange, "chunk=7")) as stream:
        texts = [event.text for event in stream if event.type == "text"]
        message = stream.get_final_message()

    assert_same(of_message(message), exchange, "messages")
    assert "".join(texts) == of_message(message).text


@spread(readable(stream=True), 1)
async def test_a_stream_is_put_together_by_who_waits(
    stage: Stage, waiting: AsyncAnthropic, exchange: Exchange
) -> None:
    async with waiting.messages.stream(**asked(stage, exchange, "chunk=event")) as stream:
        kinds = [event.type async for event in stream]
        message = await stream.get_final_message()

    assert_same(of_message(message), exchange, "messages")
    assert (kinds[0], kinds[-1]) == ("message_start", "message_stop")
    assert kinds.count("content_block_start") == len(message.content)


@spread((e for e in READABLE if e.stream and e.expect.get("tool_calls")), 2)
def test_the_raw_events_of_calls_are_read(
    stage: Stage, client: Anthropic, exchange: Exchange
) -> None:
    """Without the helper: `create(stream=True)` yields each event in its own type."""
    said: dict[int, Json] = {}
    for event in client.messages.create(**asked(stage, exchange, "chunk=1"), stream=True):
        if event.type == "content_block_start" and event.content_block.type == "tool_use":
            said[event.index] = {"name": event.content_block.name, "arguments": ""}
        if event.type == "content_block_delta" and event.delta.type == "input_json_delta":
            said[event.index]["arguments"] += event.delta.partial_json

    calls = [(one["name"], arguments(one["arguments"])) for one in said.values()]
    assert calls == [
        (one["name"], arguments_of(one, "messages", stream=True))
        for one in exchange.expect["tool_calls"]
    ]


@spread(e for e in READABLE if e.expect.get("reasoning_text"))
def test_thoughts_are_blocks_of_their_own(
    stage: Stage, client: Anthropic, exchange: Exchange
) -> None:
    body = asked(stage, exchange)
    create: Any = client.messages.create
    if exchange.stream:
        with client.messages.stream(**body) as stream:
            told = "".join(event.thinking for event in stream if event.type == "thinking")
            content = stream.get_final_message().content
        assert words(told) == words(exchange.expect["reasoning_text"])
    else:
        content = create(**body).content

    blocks: Any = content
    said = [block.thinking for block in blocks if isinstance(block, ThinkingBlock)]
    assert words("".join(said)) == words(exchange.expect["reasoning_text"])


def words(text: str) -> str:
    """Return a text without its breaks: parts of a summary are told apart by some."""
    return "".join(text.split())


@spread(READABLE, 3)
def test_the_beta_client_reads_the_same(
    stage: Stage, client: Anthropic, exchange: Exchange
) -> None:
    betas = ["context-management-2025-06-27", "interleaved-thinking-2025-05-14"]
    stage.replay.reset()
    body: Any = {**asked(stage, exchange), "betas": betas}
    if exchange.stream:
        with client.beta.messages.stream(**body) as stream:
            final: Any = stream.get_final_message()
    else:
        create: Any = client.beta.messages.create
        final = create(**body)

    said: Json = final.to_dict()
    said["content"] = [block for block in said["content"] if block["type"] not in BETA_BLOCKS]
    read = Message.model_validate(said)
    assert_same(of_message(read), exchange, "messages")
    (sent,) = stage.replay.log()
    assert betas_of(sent) == (betas if exchange.kind == "messages" else [])


def betas_of(sent: Json) -> list[str]:
    """Return the betas that a provider was told of: in a header, or in the body at Bedrock."""
    told = sent["headers"].get("anthropic-beta")
    return told.split(",") if told else list(sent["body"].get("anthropic_beta") or ())


@spread(REFUSALS)
def test_a_refusal_raises_its_own_class(
    stage: Stage, client: Anthropic, exchange: Exchange
) -> None:
    with pytest.raises(APIStatusError) as raised:
        client.messages.create(**asked(stage, exchange, "seed=9"))

    error = raised.value
    assert error.request_id
    body: Any = error.body
    said: Json = body["error"]
    passed = exchange.status in CLASSES and not is_credential(exchange)
    assert error.status_code == (exchange.status if passed else 502)
    assert (type(error), said["type"]) == CLASSES[error.status_code]


@pytest.mark.parametrize("caller", ["create", "stream"])
@pytest.mark.parametrize(
    ("fault", "status", "kind"),
    [
        ("rate_limit", 429, RateLimitError),
        ("bad_request", 400, BadRequestError),
        ("not_found", 404, NotFoundError),
        ("overloaded", 529, OverloadedError),
        ("server_error", 500, InternalServerError),
        ("bad_gateway", 502, InternalServerError),
        ("unauthorized", 502, InternalServerError),
        ("garbage", 502, InternalServerError),
        ("hangup", 503, ServiceUnavailableError),
    ],
)
def test_a_failing_provider_raises_the_class_of_its_failure(
    stage: Stage,
    client: Anthropic,
    caller: str,
    fault: str,
    status: int,
    kind: type[APIStatusError],
) -> None:
    found = [e for e in READABLE if e.provider == "anthropic" and not e.stream]
    if not found:
        absent("a recorded answer of Anthropic")
    exchange = found[-1]
    body = asked(stage, exchange, f"fault={fault}")
    with pytest.raises(APIStatusError) as raised:
        getattr(client.messages, caller)(**body).__enter__()

    assert (type(raised.value), raised.value.status_code) == (kind, status)


@pytest.mark.parametrize("exchange", BROKEN)
def test_an_error_inside_of_a_stream_raises(
    stage: Stage, client: Anthropic, exchange: Exchange
) -> None:
    with (
        pytest.raises(APIStatusError) as raised,
        client.messages.stream(**asked(stage, exchange)) as stream,
    ):
        stream.get_final_message()

    assert exchange.expect["error"]["message"] in str(raised.value)


@pytest.mark.parametrize("exchange", [e for e in READABLE if e.stream][::20])
def test_a_stream_that_is_cut_off_raises(
    stage: Stage, client: Anthropic, exchange: Exchange
) -> None:
    with (
        pytest.raises(APIError),
        client.messages.stream(**asked(stage, exchange, "cut=60%")) as stream,
    ):
        stream.get_final_message()
