"""How odd streams are read: fragments of calls, ends, errors, reasoning told twice (K01, K03, K04, K35)."""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import pytest

from gateway.core import codec
from gateway.core.answer import Answer, Collector, Ended, Event, Finished, PartEnded
from gateway.core.errors import UpstreamError
from gateway.core.message import Citation, Image, Text, Thinking, ToolCall
from gateway.core.usage import Usage
from gateway.dialects.base import StreamRules
from gateway.dialects.chat.stream_reader import ChatReader
from tests.support.neutral import Can, arguments, cuts, word

Json = dict[str, Any]
DONE = b"data: [DONE]\n\n"


def event(chunk: Any, name: str = "") -> bytes:
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + codec.encode(chunk) + b"\n\n"


def chunk(delta: Json, finish: str | None = None, index: int = 0, **more: Any) -> bytes:
    choice = {"index": index, "delta": delta, "finish_reason": finish}
    return event({"id": "c", "model": "m", "created": 7, "choices": [choice], **more})


def call(index: int | None = None, known: str = "", name: str = "", words: str = "") -> Json:
    """Return a fragment of a call that says no more than it is given."""
    said: Json = {"function": {**({"name": name} if name else {}), "arguments": words}}
    if known:
        said["id"] = known
    if index is not None:
        said["index"] = index
    return said


def calling(*fragments: Json) -> bytes:
    return b"".join(chunk({"tool_calls": [each]}) for each in fragments) + chunk({}, "tool_calls")


def run(data: bytes, *, done: bool = True, outside: bool = False) -> tuple[Answer, ChatReader]:
    """Read a stream at once and byte by byte, and insist that both say the same."""
    rules = StreamRules(False, done, reasoning_outside=outside)
    seen: list[tuple[Answer, ChatReader]] = []
    for pieces in ([data], [bytes([byte]) for byte in data]):
        reader, collector = ChatReader(rules), Collector("openai_chat")
        for piece in pieces:
            collector.add(reader.feed(piece))
        collector.add(reader.end(complete=True))
        seen.append((collector.answer(), reader))
    assert seen[0][0] == seen[1][0]
    return seen[0]


def said(data: bytes) -> tuple[Any, ...]:
    return run(data + DONE)[0].choices[0].parts


def failure(data: bytes) -> str:
    with pytest.raises(UpstreamError) as failed:
        run(data + DONE)
    return failed.value.code


# ---------------------------------------------------------------- calls


@pytest.mark.bug("K03", "B004")
@pytest.mark.parametrize(
    "fragments",
    [
        [call(0, "a", "f", "{"), call(0, words="}"), call(1, "b", "g", "{"), call(1, words="}")],
        [call(0, "a", "f", "{"), call(1, "b", "g", "{"), call(0, words="}"), call(1, words="}")],
        [call(0, "a", "f", "{}"), call(0, "b", "g", "{"), call(0, words="}")],
        [call(None, "a", "f", "{}"), call(None, "b", "g", "{}")],
        [call(None, "a", "f", "{"), call(None, "a", words="}"), call(None, "b", "g", "{}")],
        [call(0, "a", "f", "{"), call(0, "a", "f", "}"), call(1, "b", "g", "{}")],
        [call(3, "a", "f", "{}"), call(7, "b", "g", "{}")],
        [call(0, "a", "f"), call(0, words="{}"), call(1, "b", "g"), call(1, words="{}")],
        [call(0, "a"), call(0, name="f", words="{}"), call(1, "b", "g", "{}")],
        [call(0, "a", "f", "{}"), call(0), call(1, "b", "g", "{}"), call(None)],
    ],
)
def test_fragments_find_their_calls(fragments: Sequence[Json]) -> None:
    assert said(calling(*fragments)) == (ToolCall("a", "f", "{}"), ToolCall("b", "g", "{}"))


@pytest.mark.bug("K03")
def test_an_empty_id_does_not_overwrite_the_first() -> None:
    later = {"index": 0, "id": "", "type": "function", "function": {"arguments": "}"}}

    assert said(calling(call(0, "a", "f", "{"), later)) == (ToolCall("a", "f", "{}"),)


@pytest.mark.bug("K03")
def test_the_same_call_twice_is_two_calls() -> None:
    twice = calling(call(0, "", "f", '{"a":1}'), call(0, "", "f", '{"a":1}'))

    assert said(twice) == (ToolCall("", "f", '{"a":1}'), ToolCall("", "f", '{"a":1}'))


@pytest.mark.bug("K03")
@pytest.mark.parametrize(
    "fragments",
    [
        [call(0, words="{}")],
        [call(None, words="{}")],
        [call(0, "a", words="{}")],
        [call(0, "a", "f", "{}"), call(None, words="{}")],
        [call(0, "a", "f", "{}"), call(1, "b", "g", "{}"), call(0, words='{"more": 1}')],
    ],
)
def test_a_fragment_without_a_call_is_an_error(fragments: Sequence[Json]) -> None:
    assert failure(calling(*fragments)) == "upstream_invalid_response"


@pytest.mark.bug("K01", "K03")
def test_what_came_before_a_fragment_without_a_call_is_not_lost() -> None:
    reader = ChatReader(StreamRules(False, True))

    events = reader.feed(chunk({"content": "a"}) + calling(call(0, words="{}")) + DONE)

    collector = Collector("openai_chat")
    collector.add(events)
    assert len(events) == 3
    assert not collector.ended
    with pytest.raises(UpstreamError):
        reader.feed(b"")


@pytest.mark.bug("K03")
def test_random_calls_in_random_pieces_stay_apart() -> None:
    for seed in range(60):
        rng = Random(seed)
        can = Can("openai_chat", no_arguments='{"a":1}', huge=0)
        calls = [ToolCall(word(rng), word(rng), arguments(rng, can)) for _ in range(4)]
        rest = [list(fragments(rng, at, each)) for at, each in enumerate(calls)]
        mixed: list[Json] = []
        begun = 1
        while any(rest):
            at = rng.randrange(begun)
            if rest[at]:
                mixed.append(rest[at].pop(0))
                begun = min(max(begun, at + 2), len(rest))
            elif begun < len(rest):
                begun += 1
        opened = [each["id"] for each in mixed if "name" in each["function"]]
        calls.sort(key=lambda each: opened.index(each.id))
        assert said(calling(*mixed)) == tuple(calls), seed


def fragments(rng: Random, index: int, made: ToolCall) -> Iterator[Json]:
    """Yield a call in pieces; the identity may be repeated, as some providers do."""
    yield call(index, made.id, made.name)
    words = made.arguments
    while words:
        size = rng.choice((1, 3, len(words)))
        known = made.id if rng.random() < 0.2 else ""
        yield call(index, known, words=words[:size])
        words = words[size:]


def test_a_call_that_nothing_can_follow_ends_when_the_next_begins() -> None:
    reader = ChatReader(StreamRules(False, True))
    one, other = call(0, "a", "f", '{"b": {}}'), call(1, "b", "g")

    assert not [e for e in reader.feed(chunk({"tool_calls": [one]})) if isinstance(e, PartEnded)]
    assert PartEnded(0, 0) in reader.feed(chunk({"tool_calls": [other]}))


def test_calls_of_other_kinds_are_read() -> None:
    custom = {"index": 0, "id": "a", "type": "custom", "custom": {"name": "run", "input": "l"}}
    more = {"index": 0, "custom": {"input": "s"}}
    sealed = {
        **call(1, "b", "g", "{}"),
        "extra_content": {"google": {"thought_signature": "c2ln"}},
    }
    assert said(calling(custom, more, sealed)) == (
        ToolCall("a", "run", "ls", custom=True),
        ToolCall("b", "g", "{}", signature="c2ln", maker="gemini"),
    )
    legacy = chunk({"function_call": {"name": "f", "arguments": "{"}}) + chunk(
        {"function_call": {"arguments": "}"}}, "function_call"
    )
    assert said(legacy) == (ToolCall("", "f", "{}"),)
    as_object = {"index": 0, "id": "a", "function": {"name": "f", "arguments": {"b": 1}}}
    assert said(calling(as_object)) == (ToolCall("a", "f", '{"b":1}'),)


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
        ({"tool_calls": [call(0, "a", "f", "{}")]}, "stop", "tool_calls"),
        ({"tool_calls": [call(0, "a", "f", "{}")]}, "tool_calls", "tool_calls"),
        ({"tool_calls": [call(0, "a", "f", "{}")]}, None, "tool_calls"),
        ({"tool_calls": [call(0, "a", "f", '{"a')]}, "length", "length"),
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
