"""What callers of chat completions get to read: one shape for all providers, and notes of what it cannot tell."""

from typing import Any

import pytest

from gateway.core import codec
from gateway.core.answer import (
    Answer,
    Began,
    Choice,
    Cited,
    Delta,
    Event,
    Finish,
    Finished,
    PartBegan,
    PartEnded,
    events_of,
)
from gateway.core.message import (
    Audio,
    Citation,
    Image,
    Opaque,
    Part,
    Prompt,
    Refusal,
    Text,
    Thinking,
    Tool,
    ToolCall,
)
from gateway.core.usage import Usage
from gateway.dialects.chat.side import ChatSide
from gateway.dialects.losses import Notes
from gateway.dialects.sides import Told
from tests.support.grammar import breaches

Json = dict[str, Any]
PAGE = Citation("x", {}, url="https://a.b", title="A")
DOCUMENT = Citation("x", {}, title="A", text="as it says")


def told(*, asked: bool = True, tools: tuple[Tool, ...] = ()) -> Told:
    prompt = Prompt("openai_chat", (), tools=tools, include_usage=asked)
    return Told("req_0123", "my-model", 9, prompt)


def answer(*parts: Part, finish: Finish = "stop", usage: Usage | None = None) -> Answer:
    return Answer("x", "id_1", "m", (Choice(0, parts, finish),), usage, 5)


def whole(said: Answer, notes: Notes | None = None, **more: Any) -> Json:
    """Write an answer whole."""
    return codec.decode(ChatSide().write_answer(said, told(**more), notes or Notes()))


def message(*parts: Part, finish: Finish = "stop", notes: Notes | None = None) -> Json:
    return whole(answer(*parts, finish=finish), notes)["choices"][0]["message"]


def chunks(events: list[Event], notes: Notes | None = None, **more: Any) -> list[Json]:
    """Write a stream."""
    body = ChatSide().writer(told(**more), notes or Notes()).write(events)
    found = [codec.decode(line[6:]) for line in body.split(b"\n\n") if line.startswith(b"data: {")]
    assert body.endswith(b"data: [DONE]\n\n")
    return found


def streamed(said: Answer, notes: Notes | None = None, **more: Any) -> list[Json]:
    return chunks(events_of(said), notes, **more)


def deltas(said: Answer, notes: Notes | None = None) -> list[Json]:
    listed = streamed(said, notes)
    return [each["choices"][0]["delta"] for each in listed if each["choices"]]


@pytest.mark.bug("K02")
def test_a_whole_answer_has_the_shape_that_clients_know() -> None:
    said = whole(answer(Text("Hello"), usage=Usage(5, 3, cached=2, reasoning=0)))

    assert said == {
        "id": "id_1",
        "object": "chat.completion",
        "created": 5,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello", "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 5,
            "completion_tokens": 3,
            "total_tokens": 8,
            "prompt_tokens_details": {"cached_tokens": 2},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    }


@pytest.mark.bug("K02")
def test_a_stream_has_the_shape_that_clients_know() -> None:
    role, text, finish, usage = streamed(answer(Text("Hello"), usage=Usage(5, 3)))

    head = {"id": "id_1", "object": "chat.completion.chunk", "created": 5, "model": "m"}
    plain: Json = {"index": 0, "logprobs": None, "finish_reason": None}
    first = {"role": "assistant", "content": "", "refusal": None}
    assert role == {**head, "choices": [{**plain, "delta": first}], "usage": None}
    assert text == {**head, "choices": [{**plain, "delta": {"content": "Hello"}}], "usage": None}
    ended: Json = {**plain, "delta": {}, "finish_reason": "stop"}
    assert finish == {**head, "choices": [ended], "usage": None}
    counted = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}
    assert usage == {**head, "choices": [], "usage": counted}


@pytest.mark.bug("K02", "K07")
def test_counts_come_only_when_they_are_asked_for() -> None:
    said = answer(Text("Hello"), usage=Usage(5, 3))

    assert not [each for each in streamed(said, asked=False) if "usage" in each]
    assert "usage" not in whole(answer(Text("Hello")))


def test_what_the_provider_does_not_name_is_named_by_the_gateway() -> None:
    bare = Answer("x", "", "", (Choice(0, (Text("a"),), "stop"),))

    for said in (whole(bare), streamed(bare)[0]):
        assert (said["id"], said["model"], said["created"]) == ("chatcmpl-req_0123", "my-model", 9)


@pytest.mark.parametrize(
    ("parts", "content"),
    [
        ((), ""),
        ((Text(""),), ""),
        ((ToolCall("a", "f", "{}"),), None),
        ((Text("a"), ToolCall("a", "f", "{}")), "a"),
        ((Refusal("No."),), None),
        ((Text("a"), Text("b")), "ab"),
    ],
)
def test_content_is_null_beside_calls_and_refusals_alone(
    parts: tuple[Part, ...], content: str | None
) -> None:
    assert message(*parts)["content"] == content


@pytest.mark.bug("K03")
def test_calls_are_numbered_and_have_ids_and_arguments() -> None:
    said = answer(
        Text("a"), ToolCall("", "f"), ToolCall("b", "g", " "), ToolCall("", "f", '{"a": 1}')
    )
    calls = whole(said)["choices"][0]["message"]["tool_calls"]
    assert [(each["id"], each["function"]) for each in calls] == [
        ("call_req0123_0_0", {"name": "f", "arguments": "{}"}),
        ("b", {"name": "g", "arguments": "{}"}),
        ("call_req0123_0_2", {"name": "f", "arguments": '{"a": 1}'}),
    ]
    joined: dict[int, Json] = {}
    for delta in deltas(said):
        for each in delta.get("tool_calls", ()):
            call = joined.setdefault(each["index"], {"id": each.get("id"), "words": ""})
            call["words"] += each["function"]["arguments"]
    assert list(joined) == [0, 1, 2]
    assert [each["id"] for each in joined.values()] == [each["id"] for each in calls]
    assert [each["words"].strip() for each in joined.values()] == ["{}", "{}", '{"a": 1}']


@pytest.mark.bug("K35")
@pytest.mark.parametrize(
    ("finish", "word", "noted"),
    [
        ("stop", "stop", False),
        ("length", "length", False),
        ("content_filter", "content_filter", False),
        ("refusal", "content_filter", False),
        ("stop_sequence", "stop", False),
        ("pause", "stop", True),
    ],
)
def test_every_end_has_its_word(finish: Finish, word: str, noted: bool) -> None:
    notes, more = Notes(), Notes()
    said = answer(Text("a"), finish=finish)

    assert whole(said, notes)["choices"][0]["finish_reason"] == word
    assert streamed(said, more)[-1]["choices"][0]["finish_reason"] == word
    assert bool(notes.warnings) == bool(more.warnings) == noted


@pytest.mark.bug("K32", "B100", "B108")
def test_sealed_reasoning_is_told_beside_its_text() -> None:
    said = (
        Thinking("a", signature="s", maker="anthropic"),
        Thinking(redacted="r", maker="anthropic"),
        ToolCall("c", "f", "{}", signature="t", maker="gemini"),
    )
    text = {"type": "reasoning.text", "text": "a", "format": "anthropic", "index": 0}
    sealed = {"type": "reasoning.encrypted", "data": "r", "format": "anthropic", "index": 1}
    google = {"google": {"thought_signature": "t"}}

    seen = message(*said, finish="tool_calls")
    assert seen["reasoning_content"] == "a"
    assert seen["reasoning_details"] == [{**text, "signature": "s"}, sealed]
    assert seen["tool_calls"][0]["extra_content"] == google
    told_in_pieces = deltas(answer(*said, finish="tool_calls"))
    assert {"reasoning_content": "a"} in told_in_pieces
    assert {"reasoning_details": [{**text, "signature": "s"}]} in told_in_pieces
    assert {"reasoning_details": [sealed]} in told_in_pieces
    assert told_in_pieces[-2]["tool_calls"][0]["extra_content"] == google


def test_reasoning_that_nobody_sealed_is_text_alone() -> None:
    assert "reasoning_details" not in message(Thinking("a"), Text("b"))


def test_what_openrouter_sealed_is_written_as_it_was() -> None:
    entry = {"type": "reasoning.text", "format": "anthropic-claude-v1", "signature": "s"}
    part = Thinking("a", signature=codec.encode(entry).decode(), maker="openrouter")

    assert message(part)["reasoning_details"] == [{**entry, "text": "a"}]


def test_citations_have_their_place_in_the_whole_text() -> None:
    notes = Notes()
    cited = answer(Text("One. "), Text("Two.", citations=(PAGE, DOCUMENT)))
    expected = [
        {
            "type": "url_citation",
            "url_citation": {
                "start_index": 5,
                "end_index": 9,
                "title": "A",
                "url": "https://a.b",
            },
        }
    ]
    assert message(*cited.choices[0].parts, notes=notes)["annotations"] == expected
    assert len(notes.warnings) == 1
    events: list[Event] = [
        *(PartBegan(0, 0, Text("One. ")), PartEnded(0, 0)),
        *(PartBegan(0, 1, Text("")), Cited(0, 1, PAGE), Delta(0, 1, "Two."), PartEnded(0, 1)),
    ]
    body = ChatSide().writer(told(), Notes()).write(events)
    assert codec.encode({"annotations": expected})[1:-1] in body


@pytest.mark.bug("K34")
def test_items_of_a_providers_own_tools_are_left_out_with_a_note() -> None:
    said = answer(Opaque("x", "web_search", {}), Text("a"))
    notes, more = Notes(), Notes()

    assert whole(said, notes)["choices"][0]["message"]["content"] == "a"
    assert streamed(said, more)[0]["choices"][0]["delta"]["role"] == "assistant"
    assert notes.warnings == more.warnings
    assert "web_search" in notes.warnings[0]


def test_pictures_and_sounds_are_told() -> None:
    said = (Image("image/png", "iVBO"), Audio("UklG", "wav", "audio_1", "Hi"))
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}, "index": 0}

    seen = message(*said)
    assert seen["images"] == [picture]
    assert seen["audio"]["transcript"] == "Hi"
    assert {"images": [picture]} in deltas(answer(*said))


def test_a_caller_of_functions_reads_a_function_call() -> None:
    tool = Tool("f", extra={"legacy": True})
    said = answer(ToolCall("a", "f"), finish="tool_calls")

    (choice,) = whole(said, tools=(tool,))["choices"]
    assert choice["finish_reason"] == "function_call"
    assert choice["message"]["function_call"] == {"name": "f", "arguments": "{}"}
    assert "tool_calls" not in choice["message"]
    pieces = streamed(said, tools=(tool,))
    assert pieces[-1]["choices"][0]["finish_reason"] == "function_call"
    words = [each["choices"][0]["delta"].get("function_call", {}) for each in pieces]
    assert "".join(each.get("arguments", "") for each in words) == "{}"


@pytest.mark.bug("K02")
def test_choices_begin_and_end_each_for_itself() -> None:
    events: list[Event] = [
        Began("i", "m", 1),
        *(PartBegan(1, 0, Text("b")), PartBegan(0, 0, Text("a"))),
        *(PartEnded(1, 0), Finished(1, "stop")),
    ]
    writer = ChatSide().writer(told(), Notes())
    body = writer.write(events)
    assert writer.open_choices == [0]
    said = Answer("x", "i", "m", tuple(Choice(at, (Text("a"),), "stop") for at in (0, 1)))
    stream = ChatSide().writer(told(), Notes()).write(events_of(said))
    assert breaches(stream, asks_usage=False, count=2) == []
    assert b'"index":1,"delta":{"role":"assistant"' in body
    assert writer.write([]) == b""
