"""How odd whole answers are read: errors under success, blocked prompts, broken shapes; never a crash (K35)."""

from collections.abc import Iterator
from typing import Any, cast

import pytest

from gateway.core import codec
from gateway.core.answer import Answer
from gateway.core.errors import UpstreamError
from gateway.core.message import Audio, Citation, Image, Refusal, Text, Thinking, ToolCall
from gateway.core.usage import Usage
from gateway.dialects.base import AnswerIsError
from gateway.dialects.chat.side import ChatSide

Json = dict[str, Any]
THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}], "closed": True}
FULL: Json = {
    "id": "a",
    "created": 1,
    "model": "m",
    "service_tier": "default",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "logprobs": {"content": [{"token": "b", "logprob": -1}]},
            "message": {
                "role": "assistant",
                "content": [THOUGHT, {"type": "text", "text": "b"}],
                "reasoning": "I think",
                "reasoning_details": [
                    {
                        "type": "reasoning.text",
                        "text": "I think",
                        "signature": "s",
                        "format": "anthropic",
                    }
                ],
                "images": [{"image_url": {"url": "data:image/png;base64,iVBO"}}],
                "audio": {"id": "audio_1", "data": "UklG", "transcript": "Hi"},
                "refusal": "No.",
                "tool_calls": [
                    {
                        "id": "c",
                        "function": {"name": "f", "arguments": {"a": 1}},
                        "extra_content": {"google": {"thought_signature": "t"}},
                    }
                ],
            },
        }
    ],
    "x_groq": {"usage": {"prompt_tokens": 3, "completion_tokens": 2}},
}


def read(said: Any) -> Answer:
    return ChatSide().read_whole(codec.encode(said))


def outcome(said: Any) -> Answer | UpstreamError:
    try:
        return read(said)
    except UpstreamError as failed:
        return failed


def message(**said: Any) -> tuple[Any, ...]:
    return read({"choices": [{"message": said}]}).choices[0].parts


def test_everything_that_an_answer_may_hold_is_read() -> None:
    answer = read(FULL)
    (choice,) = answer.choices

    assert choice.parts == (
        Thinking("I think", signature="s", maker="anthropic"),
        Thinking("Hm."),
        Text("b"),
        Audio("UklG", "", "audio_1", "Hi"),
        Image("image/png", "iVBO"),
        Refusal("No."),
        ToolCall("c", "f", '{"a":1}', signature="t", maker="gemini"),
    )
    assert choice.logprobs == ({"token": "b", "logprob": -1},)
    assert answer.usage == Usage(3, 2)
    assert answer.extra == {"service_tier": "default"}


@pytest.mark.bug("K35")
@pytest.mark.parametrize(
    "said",
    [
        {"error": {"message": "broken"}},
        {"error": "broken", "code": "x"},
        {"object": "error", "message": "broken", "type": "x"},
        {"detail": "broken"},
        {"error": {"message": "broken"}, "choices": []},
        {"choices": [{"message": {}, "finish_reason": "error", "error": {"message": "broken"}}]},
    ],
)
def test_an_error_under_a_good_status_is_an_error(said: Json) -> None:
    with pytest.raises(AnswerIsError) as failed:
        read(said)

    assert failed.value.error.message == "broken"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no JSON",
        b"[]",
        b"{}",
        b'{"choices":1}',
        b'{"choices":[]}',
        b'{"choices":[1]}',
        b'"\xff"',
    ],
)
def test_what_is_no_answer_cannot_be_used(body: bytes) -> None:
    with pytest.raises(UpstreamError) as failed:
        ChatSide().read_whole(body)

    assert failed.value.code == "upstream_invalid_response"


@pytest.mark.bug("K03")
def test_a_call_without_a_name_cannot_be_used() -> None:
    with pytest.raises(UpstreamError):
        message(tool_calls=[{"id": "a", "function": {"arguments": "{}"}}])


@pytest.mark.bug("K35", "B107")
def test_blocked_answers_and_prompts_are_filtered_content() -> None:
    blocked: list[Json] = [
        {"choices": [], "prompt_filter_results": [{}], "usage": {"prompt_tokens": 3}},
        {
            "choices": [{"finish_reason": "content_filter", "index": 0}],
            "usage": {"prompt_tokens": 3},
        },
    ]
    for said in blocked:
        answer = read(said)
        assert (answer.choices[0].parts, answer.choices[0].finish) == ((), "content_filter")
        assert answer.usage == Usage(3)


def test_a_function_call_of_old_is_a_call() -> None:
    assert message(function_call={"name": "f", "arguments": "{}"}) == (ToolCall("", "f", "{}"),)


def test_sources_beside_the_choices_are_citations_of_the_text() -> None:
    said = {"choices": [{"message": {"content": "a"}}], "citations": ["https://a.b"]}

    cited = Citation("openai_chat", {"url": "https://a.b"}, "https://a.b")
    assert read(said).choices[0].parts == (Text("a", citations=(cited,)),)


def nodes(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of every value inside of another."""
    yield path
    if isinstance(value, dict):
        for key, inner in cast("Json", value).items():
            yield from nodes(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(cast("list[Any]", value)):
            yield from nodes(inner, (*path, place))


def changed(value: Any, path: tuple[Any, ...], to: Any) -> Any:
    """Return a copy of a value with another one at this place."""
    if not path:
        return to
    copy = value.copy()
    copy[path[0]] = changed(value[path[0]], path[1:], to)
    return copy


def test_no_change_of_an_answer_makes_its_reader_crash() -> None:
    odd: tuple[Any, ...] = (
        *(None, True, 0, -1, 1.5, 2**60, "", "x"),
        *([], [None], ["x"], {}, {"type": "x"}, [[]], [{}]),
    )
    for path in nodes(FULL):
        for to in odd:
            said = outcome(changed(FULL, path, to))
            assert isinstance(said, Answer) or said.code.startswith("upstream_"), (path, to)
