"""How odd streams are read: fragments of calls, ends, errors, reasoning told twice (K01, K03, K04, K35)."""

from random import Random
from typing import Any

import pytest

from gateway.core import codec
from gateway.core.answer import Ended, Event, Finished, PartEnded
from gateway.core.errors import UpstreamError
from gateway.core.message import Citation, Image, Text, Thinking
from gateway.core.usage import Usage
from gateway.dialects.base import StreamRules
from gateway.dialects.chat.stream_reader import ChatReader
from tests.support.chat_chunks import DONE, Json, chunk, event, failure, run, said
from tests.support.neutral import cuts

CALL: Json = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}
CUT: Json = {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"a'}}


# ---------------------------------------------------------------- ends


@pytest.mark.bug("K35", "B018")
@pytest.mark.parametrize(
    ("delta", "native", "finish"),
    [
        ({"content": "a"}, "stop", "stop"),
        ({"content": "a"}, "eos", "stop"),
        ({"content": "a"}, None, "stop"),
        ({"content": "a"}, "length", "length"),
        ({"content": "a"}, "model_length", "length"),
        ({"content": "a"}, "content_filter", "content_filter"),
        ({"content": "a"}, "tool_calls", "stop"),
        ({"refusal": "No."}, "stop", "refusal"),
        ({"tool_calls": [CALL]}, "stop", "tool_calls"),
        ({"tool_calls": [CALL]}, "tool_calls", "tool_calls"),
        ({"tool_calls": [CALL]}, None, "tool_calls"),
        ({"tool_calls": [CUT]}, "length", "length"),
    ],
)
def test_the_reason_follows_from_what_was_said(
    delta: Json, native: str | None, finish: str
) -> None:
    (choice,) = run(chunk(delta, native) + DONE)[0].choices

    assert (choice.finish, choice.native) == (finish, native or "")


def test_a_stop_sequence_that_the_provider_names_is_told() -> None:
    stopped: Json = {"index": 0, "delta": {}, "finish_reason": "stop", "stop_reason": "END"}

    (choice,) = run(event({"choices": [stopped]}) + DONE)[0].choices

    assert (choice.finish, choice.stop_sequence) == ("stop_sequence", "END")


@pytest.mark.bug("K04", "B010")
def test_no_choice_is_finished_before_the_providers_own_end() -> None:
    reader = ChatReader(StreamRules(False, True))

    events = reader.feed(chunk({"content": "a"}, "stop"))
    assert not [each for each in events if isinstance(each, Finished | Ended)]
    assert [type(each) for each in reader.feed(DONE)] == [PartEnded, Finished, Ended]
    assert reader.feed(chunk({"content": "b"})) == []
    assert reader.surplus == 1
    assert reader.end(complete=False) == []


@pytest.mark.bug("K04")
def test_the_bodys_end_is_the_end_only_where_the_provider_has_no_other() -> None:
    finished, cut = chunk({"content": "a"}, "stop"), chunk({"content": "a"})

    assert run(finished, done=False)[0].choices[0].finish == "stop"
    for data, done in ((finished, True), (cut, False), (b"", False)):
        with pytest.raises(UpstreamError) as failed:
            run(data, done=done)
        assert failed.value.code == "upstream_truncated"


def test_a_last_event_without_its_blank_line_counts() -> None:
    assert run(chunk({"content": "a"}, "stop") + DONE.strip())[0].choices[0].finish == "stop"


def test_a_stream_of_nothing_but_its_end_is_no_answer() -> None:
    assert failure(b"") == "upstream_invalid_response"


@pytest.mark.bug("K35", "B107")
def test_a_blocked_prompt_is_filtered_content() -> None:
    blocked = event({"id": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]})

    (choice,) = run(blocked + DONE)[0].choices

    assert (choice.parts, choice.finish) == ((), "content_filter")


# ---------------------------------------------------------------- errors


@pytest.mark.bug("K04")
@pytest.mark.parametrize(
    "told",
    [
        event({"error": {"message": "broken", "code": 502}}, "error"),
        event({"error": {"message": "broken", "code": 502}}),
        event({"error": "broken", "code": "x"}),
        event({"object": "error", "message": "broken", "code": "1"}),
        event({"detail": "broken"}),
        chunk({"content": ""}, "error", error={"message": "broken", "code": 502}, usage=None),
        event({"choices": [{"finish_reason": "error", "error": {"message": "broken"}}]}),
    ],
)
def test_an_error_inside_of_a_stream_ends_it(told: bytes) -> None:
    answer, reader = run(chunk({"content": "a"}, "stop") + told + DONE)

    assert reader.error is not None
    assert reader.error.message == "broken"
    assert answer.choices == ()


def test_what_the_chunk_of_an_error_says_besides_is_not_lost() -> None:
    reader = ChatReader(StreamRules(False, True))

    events = reader.feed(chunk({"content": "last words"}, error={"message": "broken"}))

    assert "last words" in repr(events)
    assert reader.error is not None


def test_a_bare_error_body_under_a_streams_name_is_an_error() -> None:
    _, reader = run(b'[{"error": {"code": 429, "message": "too fast"}}]')

    assert reader.error is not None
    assert reader.error.message == "too fast"


@pytest.mark.bug("K01")
def test_a_broken_frame_is_counted_and_passed_over() -> None:
    answer, reader = run(b"data: {oops\n\n" + chunk({"content": "a"}, "stop") + DONE)

    assert reader.broken == 1
    assert answer.choices[0].parts == (Text("a"),)


@pytest.mark.bug("K01")
def test_comments_marks_and_line_ends_make_no_difference() -> None:
    data = chunk({"content": "a"}) + chunk({"content": "ü"}, "stop")
    odd = b"\xef\xbb\xbf" + data.replace(b"\n\n", b"\n\n: ping\n\n")

    for form in (odd, odd.replace(b"\n", b"\r\n"), odd.replace(b"\n", b"\r")):
        assert run(form + DONE)[0].choices[0].parts == (Text("aü"),)


def test_only_content_is_a_sign_of_life() -> None:
    reader = ChatReader(StreamRules(False, True))

    reader.feed(b": OPENROUTER PROCESSING\n\n")
    assert (reader.real, reader.frames) == (False, 0)
    reader.feed(chunk({"content": "a"}))
    assert (reader.real, reader.frames) == (True, 1)


# ---------------------------------------------------------------- content


def test_every_choice_has_its_own_parts() -> None:
    data = (
        chunk({"content": "a"})
        + chunk({"content": "b"}, index=1)
        + chunk({"content": "c"}, "stop")
        + chunk({}, "length", index=1)
    )
    first, second = run(data + DONE)[0].choices

    assert (first.parts, first.finish) == ((Text("ac"),), "stop")
    assert (second.parts, second.finish) == ((Text("b"),), "length")


def test_a_reason_that_is_told_twice_finishes_once() -> None:
    twice = chunk({"content": "a"}) + chunk({"content": ""}, "stop") * 2
    reader = ChatReader(StreamRules(False, True))

    events: list[Event] = reader.feed(twice + DONE)

    assert len([each for each in events if isinstance(each, Finished)]) == 1


def test_thinking_in_lists_of_parts_is_thinking() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "b"}], "closed": True}
    data = chunk({"content": [thought, thought]}) + chunk(
        {"content": [thought, {"type": "text", "text": "c"}]}
    )
    assert said(data + chunk({"content": "d"}, "stop")) == (Thinking("bbb"), Text("cd"))


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_reasoning_is_read_under_both_names(name: str) -> None:
    data = chunk({name: "a", "content": ""}) + chunk({name: "b", "content": None})

    assert said(data + chunk({"content": "c"}, "stop")) == (Thinking("ab"), Text("c"))


def test_a_thought_in_marks_stays_text() -> None:
    assert said(chunk({"content": "<think>a</think>b"})) == (Text("<think>a</think>b"),)


@pytest.mark.bug("K32")
def test_reasoning_that_is_told_twice_is_read_once_and_sealed() -> None:
    kind = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
    data = (
        chunk({"reasoning": "a", "reasoning_details": [{**kind, "text": "a"}]})
        + chunk({"reasoning": "a", "reasoning_details": [{**kind, "text": "a"}]})
        + chunk({"reasoning_details": [{**kind, "signature": "s"}]})
        + chunk({"content": "c"}, "stop")
    )
    thought, text = said(data)

    assert (thought.text, thought.maker, text) == ("aa", "openrouter", Text("c"))
    assert codec.decode(thought.signature) == {**kind, "signature": "s"}


@pytest.mark.bug("K32")
def test_a_seal_that_repeats_the_whole_text_adds_none() -> None:
    entry = {
        "type": "reasoning.text",
        "text": "ab",
        "signature": "s",
        "format": "anthropic",
        "index": 0,
    }
    data = chunk({"reasoning_content": "a"}) + chunk({"reasoning_content": "b"})
    sealed = data + chunk({"reasoning_details": [entry]}) + chunk({"content": "c"}, "stop")

    assert said(sealed) == (Thinking("ab", signature="s", maker="anthropic"), Text("c"))


def test_citations_and_pictures_are_read() -> None:
    cited = {"type": "url_citation", "url_citation": {"url": "https://a.b", "start_index": 1}}
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}}
    data = chunk({"content": "a"}) + chunk({"annotations": [cited], "images": [picture]}, "stop")

    text, image = said(data)

    assert text.citations[0].url == "https://a.b"
    assert image == Image("image/png", "iVBO")


def test_sources_beside_the_choices_are_citations_of_the_text() -> None:
    found = [{"url": "https://a.b", "title": "A", "snippet": "s"}]
    data = chunk({"content": "a"}, search_results=found) + chunk({}, "stop", search_results=found)

    assert said(data) == (
        Text(
            "a",
            citations=(Citation("openai_chat", found[0], "https://a.b", "A", "s"),),
        ),
    )


@pytest.mark.bug("K07")
def test_counts_replace_each_other_wherever_they_stand() -> None:
    data = (
        chunk({"content": "a"}, usage={"prompt_tokens": 5, "completion_tokens": 1})
        + chunk({}, "stop", x_groq={"usage": {"prompt_tokens": 5, "completion_tokens": 2}})
        + event({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}})
    )
    assert run(data + DONE)[0].usage == Usage(5, 2)


@pytest.mark.bug("K07")
def test_reasoning_that_is_counted_outside_is_added() -> None:
    counted = {
        "prompt_tokens": 5,
        "completion_tokens": 2,
        "total_tokens": 10,
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    answer, _ = run(chunk({"content": "a"}, "stop", usage=counted) + DONE, outside=True)

    assert answer.usage == Usage(5, 5, reasoning=3)


def test_name_and_model_are_not_taken_from_an_empty_first_chunk() -> None:
    empty = event({"choices": [], "id": "", "model": "", "created": 0})

    answer, _ = run(empty + chunk({"content": "a"}, "stop") + DONE)

    assert (answer.id, answer.model, answer.created) == ("c", "m", 7)


def test_an_event_that_is_too_large_is_an_error() -> None:
    reader = ChatReader(StreamRules(False, True, max_event_bytes=100))

    with pytest.raises(UpstreamError):
        reader.feed(b"data: " + b"x" * 200)


def test_odd_values_do_no_harm() -> None:
    odd: tuple[Any, ...] = (None, True, 1, -1.5, "x", [], [None], [[]], {}, {"a": [1]})
    names = ("content", "reasoning_details", "tool_calls", "annotations", "images", "audio")
    for name in (*names, "function_call", "refusal", "reasoning", "role"):
        for value in odd:
            data = chunk({"content": "a"}) + chunk({name: value}, "stop", logprobs=value)
            run(data + DONE)
    for value in odd:
        for one in ("choices", "usage", "x_groq", "id", "created", "citations"):
            for piece in cuts(Random(1), chunk({"content": "a"}) + event({one: value}) + DONE):
                assert piece
            run(chunk({"content": "a"}) + event({one: value}) + DONE)
