"""OpenAI's own client reads what Responses callers are told: its streaming helper follows every event, errors raise."""

from collections.abc import Iterator
from random import Random

import httpx2
import openai
import pytest
from openai import OpenAI
from openai.types.responses import Response

from gateway.core.answer import Finished
from gateway.core.errors import GatewayError
from gateway.core.message import Prompt, ToolCall
from gateway.dialects.base import StreamRules
from gateway.dialects.losses import Notes
from gateway.dialects.responses.caller import ResponsesCaller
from gateway.dialects.responses.dialect import OpenAIResponses
from gateway.dialects.responses.target import ResponsesTarget
from tests.support.native_recordings import Exchange
from tests.support.neutral import answer, events
from tests.support.responses_recordings import ids, recorded, told
from tests.support.writing_responses import CAN

CALLER, DIALECT, TARGET = ResponsesCaller(), OpenAIResponses(), ResponsesTarget()
RULES = StreamRules(hide_usage=False, done_required=True)
GOOD_STREAMS = [each for each in recorded(stream=True) if "error" not in each.expect]


def client(body: bytes, kind: str = "text/event-stream") -> OpenAI:
    transport = httpx2.MockTransport(
        lambda _: httpx2.Response(200, headers={"content-type": kind}, content=body)
    )
    return OpenAI(
        api_key="key",
        base_url="http://gateway/v1",
        max_retries=0,
        http_client=httpx2.Client(transport=transport),
    )


def last_of(body: bytes) -> Response:
    """Return the response that the streaming helper puts together of all events."""
    with client(body) as openai_client:
        with openai_client.responses.stream(model="m", input="Hi") as stream:
            events = list(stream)
        assert events[0].type == "response.created"
        last = events[-1]
        if last.type == "response.incomplete":
            return last.response
        if last.type != "response.completed":
            return Response.model_construct()
        return stream.get_final_response()


@pytest.mark.bug("K37", "B122", "B123")
def test_the_streaming_helper_follows_any_stream() -> None:
    rng = Random(7)
    for _ in range(25):
        whole = answer(rng, CAN)
        writer = CALLER.writer(told(), Notes())
        body = writer.write(events(rng, whole))

        found = last_of(body)

        if whole.choices[0].finish in {"stop", "tool_calls"}:
            plain = TARGET.read_whole(found.to_json().encode())
            calls = [part for part in whole.choices[0].parts if isinstance(part, ToolCall)]
            again = [part for part in plain.choices[0].parts if isinstance(part, ToolCall)]
            assert [call.arguments for call in again] == [call.arguments for call in calls]
            assert found.output_text == "".join(
                getattr(part, "text", "")
                for part in whole.choices[0].parts
                if type(part).__name__ == "Text"
            )


@pytest.mark.bug("K37")
@pytest.mark.parametrize("exchange", GOOD_STREAMS, ids=ids)
def test_the_streaming_helper_follows_recorded_streams_written_again(exchange: Exchange) -> None:
    reader, writer = TARGET.reader(RULES), CALLER.writer(told(), Notes())

    found = last_of(writer.write(reader.feed(exchange.body)))

    assert found.output_text == exchange.expect["text"]
    assert found.usage is not None
    assert found.usage.input_tokens == exchange.expect["usage"]["input"]


@pytest.mark.bug("K04", "B123")
def test_a_failure_inside_of_a_stream_raises() -> None:
    rng = Random(8)
    for _ in range(10):
        writer = CALLER.writer(told(), Notes())
        found = events(rng, answer(rng, CAN))
        body = writer.write([event for event in found[:-2] if not isinstance(event, Finished)])
        error = GatewayError("upstream_truncated")
        error.open_choices = writer.open_choices
        body += DIALECT.render_stream_error(error, "req_1")

        with client(body) as openai_client, pytest.raises(openai.APIError) as raised:
            list(openai_client.responses.create(model="m", input="Hi", stream=True))
        assert raised.value.code == "upstream_truncated"


def test_a_stream_that_was_cut_short_is_read() -> None:
    writer = CALLER.writer(told(), Notes())
    found = events(Random(9), answer(Random(9), CAN))
    body = writer.write(found[: len(found) // 2])
    body += DIALECT.cut_short("responses", b"", writer.open_choices, "the budget is spent")

    with client(body) as openai_client:
        kinds = list(_kinds(openai_client))

    assert kinds[-1] == "response.incomplete"


def _kinds(openai_client: OpenAI) -> Iterator[str]:
    for event in openai_client.responses.create(model="m", input="Hi", stream=True):
        yield event.type


def test_a_whole_answer_is_read() -> None:
    rng = Random(10)
    for _ in range(20):
        whole = answer(rng, CAN)
        body = CALLER.write_answer(whole, told(), Notes())
        with client(body, "application/json") as openai_client:
            found = openai_client.responses.create(model="m", input="Hi")
        assert found.model == whole.model


def test_no_settings_are_needed() -> None:
    made = DIALECT.answer("responses", "m", "Hello", "req_1")
    assert told(Prompt("openai_responses", ())).prompt.tools == ()

    with client(made.body, "application/json") as openai_client:
        assert openai_client.responses.create(model="m", input="Hi").output_text == "Hello"
