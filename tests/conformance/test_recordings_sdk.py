"""Every recorded answer as an unchanged OpenAI client reads it through the gateway: what the provider meant."""

import json
from collections.abc import Generator, Iterable
from typing import Any, cast

import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from tests.support.gateway import KEY
from tests.support.recordings import Json, Recording, is_object
from tests.support.replayed import RECORDINGS, Scene, cases, replayed
from tests.support.same import is_credential

CHATS = [r for r in RECORDINGS if r.endpoint == "chat" and r.status < 400 and r.expect]
OWN = {"messages", "model", "stream"}
_STATUS_CLASSES: dict[int, type[openai.APIStatusError]] = {
    400: openai.BadRequestError,
    404: openai.NotFoundError,
    409: openai.ConflictError,
    422: openai.UnprocessableEntityError,
    429: openai.RateLimitError,
    **dict.fromkeys((408, 413, 415), openai.APIStatusError),
}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Generator[Scene]:
    with replayed(tmp_path_factory.mktemp("recordings")) as scene:
        yield scene


@pytest.fixture(scope="module")
def client(scene: Scene) -> Generator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{scene.gateway.url}/v1", api_key=KEY, max_retries=0) as client:
        yield client


def ask(client: openai.OpenAI, recording: Recording, options: str) -> Any:
    """Ask what was asked when the recording was made."""
    request = recording.request
    create: Any = client.chat.completions.create
    return create(
        model=f"{recording.id}@{options}",
        messages=request.get("messages", []),
        stream=bool(request.get("stream")),
        extra_body={name: value for name, value in request.items() if name not in OWN},
    )


@cases(r for r in CHATS if not r.is_stream)
def test_a_client_reads_what_the_provider_meant(
    client: openai.OpenAI, recording: Recording
) -> None:
    answer: ChatCompletion = ask(client, recording, "chunk=7")

    if recording.request.get("stream"):
        pytest.skip("a whole answer to a request for a stream")
    choice = answer.choices[0]
    # Azure leaves the message out where its filter struck.
    message: Json = choice.message.to_dict(warnings=False) if choice.message else {}
    check(recording, message.get("content"), calls_in(message), choice.finish_reason)


@cases(r for r in CHATS if r.is_stream and "error" not in r.expect)
@pytest.mark.parametrize("pieces", ["event", "7"])
def test_a_client_reads_what_the_provider_streamed(
    client: openai.OpenAI, recording: Recording, pieces: str
) -> None:
    chunks: Iterable[ChatCompletionChunk] = ask(client, recording, f"chunk={pieces}")

    texts: list[Any] = []
    calls: dict[int, Json] = {}
    finish: str | None = None
    for choice in (c for chunk in chunks for c in chunk.choices if c.index == 0):
        # Azure's filter sends choices without a delta.
        delta: Json = choice.delta.to_dict(warnings=False) if choice.delta else {}
        texts.append(delta.get("content"))
        for at, part in enumerate(calls_in(delta)):
            begun: Json = calls.setdefault(
                part.get("index", at), {**part, "function": {"name": "", "arguments": ""}}
            )
            function: Json = part.get("function") or {}
            begun["function"]["name"] += function.get("name") or ""
            begun["function"]["arguments"] += function.get("arguments") or ""
        finish = choice.finish_reason or finish
    check(recording, texts, list(calls.values()), finish)


@cases(r for r in RECORDINGS if r.endpoint == "chat" and "error" in r.expect)
def test_a_client_raises_what_the_provider_refused(
    client: openai.OpenAI, recording: Recording
) -> None:
    with pytest.raises(openai.APIError) as raised:
        list(ask(client, recording, "chunk=event"))

    error = raised.value
    if recording.status < 400:
        assert recording.expect["error"]["message"] in str(error)
        return
    if is_credential(recording):
        assert isinstance(error, openai.InternalServerError)
        return
    assert isinstance(error, _STATUS_CLASSES.get(recording.status, openai.InternalServerError))
    assert error.request_id


def check(recording: Recording, content: Any, calls: list[Json], finish: str | None) -> None:
    """Compare text, tool calls and finish reason with those of the recording."""
    expect = recording.expect
    if "text" in expect:
        assert text_of(content) == expect["text"]
    if expect.get("finish_reason"):
        assert finish == expect["finish_reason"]
    expected: list[Json] = [one for one in expect.get("tool_calls", []) if not one.get("custom")]
    assert [call_of(called) for called in calls if called.get("type") != "custom"] == [
        (one["name"], one["arguments"], one.get("id")) for one in expected
    ]


def call_of(called: Json) -> tuple[str, Any, str | None]:
    """Return name, arguments and id of a call; arguments that are no JSON stay text."""
    function: Json = called["function"]
    try:
        arguments = json.loads(function["arguments"])
    except ValueError:
        arguments = function["arguments"]
    return function["name"], arguments, called.get("id") or None


def calls_in(delta: Json) -> list[Json]:
    """Return the calls of a delta; the old form of tools is one call without an id."""
    legacy = delta.get("function_call")
    return [{"index": 0, "function": legacy}] if legacy else list(delta.get("tool_calls") or [])


def text_of(content: Any) -> str:
    """Join texts, and the text parts of lists; other parts are none of the answer's text."""
    if isinstance(content, list):
        return "".join(text_of(part) for part in cast("list[Any]", content))
    if is_object(content):
        return str(content.get("text", "")) if content.get("type") == "text" else ""
    return content or ""
