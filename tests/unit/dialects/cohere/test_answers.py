"""What Cohere answers says the same in the neutral form, whole and as a stream, however that is cut."""

import json
from collections.abc import Iterable
from random import Random

import pytest

from gateway.core import codec
from gateway.core.answer import Answer, Choice, Collector, Delta, Ended, Event, PartEnded, Weighed
from gateway.core.errors import UpstreamError
from gateway.core.message import Text, Thinking, ToolCall
from gateway.core.usage import Usage
from gateway.dialects.base import AnswerIsError, StreamRules, unredacted
from gateway.dialects.cohere.target import CohereV2
from tests.support import cohere_answers
from tests.support.native_recordings import Exchange, Json, cuts, exchanges
from tests.support.neutral import Can, answer, events
from tests.support.neutral import cuts as cut
from tests.support.recordings import event_ends
from tests.support.rounds import rounds
from tests.support.same import calls_of, has_failed, limited

COHERE = CohereV2()
RULES = StreamRules(hide_usage=False, done_required=False)
CAN = Can(
    COHERE.name,
    answer=frozenset({"text", "cited", "thinking", "call"}),
    citation=cohere_answers.citation,
    finishes=("stop", "length"),
    usage=("cached", "reasoning"),
    no_arguments="{}",
    huge=0.001,
)


def read(pieces: Iterable[bytes]) -> Answer:
    reader = COHERE.reader(RULES)
    collector = Collector(COHERE.name)
    for piece in pieces:
        collector.add(reader.feed(piece))
    collector.add(reader.end(complete=True))
    assert collector.ended
    assert (0, 0, None) == (reader.broken, reader.surplus, reader.error)
    return collector.answer()


def frame(kind: str, **fields: object) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def said(choice: Choice, kind: type[Text | Thinking]) -> str:
    return "".join(part.text for part in choice.parts if isinstance(part, kind))


def check(found: Answer, exchange: Exchange) -> None:
    expect = exchange.expect
    (choice,) = found.choices
    calls = [part for part in choice.parts if isinstance(part, ToolCall)]
    assert expect.get("tool_plan", "") + expect["text"] == said(choice, Text)
    assert expect.get("reasoning_text", "") == said(choice, Thinking)
    found_calls = [
        {"name": call.name, "arguments": json.loads(call.arguments or "{}"), "id": call.id}
        for call in calls
    ]
    wanted = calls_of(expect)
    assert wanted == [limited(*pair) for pair in zip(found_calls, wanted, strict=True)]
    assert expect["finish_reason"] == choice.native
    assert ("tool_calls" if calls else None) == (choice.finish if calls else None)
    citations = [c for part in choice.parts if isinstance(part, Text) for c in part.citations]
    assert expect.get("citations", len(citations)) == len(citations)
    counts: Json = expect["usage"]
    assert found.usage is not None
    assert (counts["input_total"], counts["output_total"]) == found.usage[:2]
    for name in {"cached", "reasoning"} & counts.keys():
        assert counts[name] == getattr(found.usage, name)


@pytest.mark.bug("K07", "K35")
def test_whole_answers_say_what_was_recorded() -> None:
    for exchange in exchanges("cohere", "/v2/chat"):
        if exchange.status == 200 and not exchange.stream and not has_failed(exchange):
            check(COHERE.read_whole(exchange.body), exchange)


@pytest.mark.bug("K01", "K07", "K35")
def test_streams_say_what_was_recorded_however_they_are_cut() -> None:
    for exchange in exchanges("cohere", "/v2/chat"):
        if exchange.stream and not has_failed(exchange):
            for pieces in cuts(exchange.body, event_ends(exchange.body)):
                check(read(pieces), exchange)


@pytest.mark.bug("K04")
def test_a_stream_without_its_message_end_is_cut_short() -> None:
    for exchange in exchanges("cohere", "/v2/chat"):
        if not exchange.stream or has_failed(exchange):
            continue
        # The last two ends are those of `message-end` and of `[DONE]`.
        for end in event_ends(exchange.body)[:-1]:
            reader = COHERE.reader(RULES)
            found = reader.feed(exchange.body[:end])
            if b"message-end" in exchange.body[:end]:
                assert isinstance(found[-1], Ended)
                assert [] == reader.end(complete=False)
                continue
            assert not any(isinstance(event, Ended) for event in found)
            with pytest.raises(UpstreamError) as caught:
                reader.end(complete=True)
            assert "upstream_truncated" == caught.value.code


@pytest.mark.bug("K08", "K35")
def test_refusals_say_what_was_recorded() -> None:
    for exchange in exchanges("cohere", "/chat"):
        if exchange.status >= 400:
            error = COHERE.read_error(exchange.status, exchange.body, unredacted)
            assert exchange.expect["error"]["message"] == error.message
            kind = "auth" if exchange.status == 401 else "other"
            assert kind == COHERE.error_class(error, exchange.status)


def _expressible(whole: Answer) -> Answer:
    """Return an answer as far as Cohere can tell it: without model and time, its calls without a note on their end."""
    choices = tuple(
        codec.replace(choice, native=cohere_answers.REASONS[choice.finish])
        for choice in whole.choices
    )
    extra = {} if whole.usage is None else {"billed_units": {"input_tokens": 1, "output_tokens": 1}}
    return codec.replace(whole, model="", created=0, choices=choices, extra=extra)


@pytest.mark.bug("K01", "K03", "K37")
def test_streams_of_any_answer_are_read_as_they_were_told() -> None:
    for seed in rounds(300):
        rng = Random(seed)
        told = answer(rng, CAN)
        has_calls = told.choices[0].finish == "tool_calls"
        body = cohere_answers.stream(
            rng,
            events(rng, told, overlap=rng.random() < 0.3),
            plan=has_calls and rng.random() < 0.7,
        )
        # What is billed is told at the end of a stream, and a collected answer does not hold it.
        assert codec.replace(_expressible(told), extra={}) == read(cut(rng, body)), seed


@pytest.mark.bug("K35", "K37")
def test_whole_answers_are_read_as_they_were_told() -> None:
    for seed in rounds(300):
        rng = Random(seed)
        told = answer(rng, CAN)
        plan = told.choices[0].finish == "tool_calls" and rng.random() < 0.7
        found = COHERE.read_whole(cohere_answers.whole(told, plan=plan))
        assert _without_places(_expressible(told)) == _without_places(found), seed


def _without_places(whole: Answer) -> Answer:
    """Return an answer whose citations do not say in which block they stand, which only whole answers tell."""
    (choice,) = whole.choices
    parts = tuple(
        codec.replace(
            part,
            citations=tuple(
                codec.replace(
                    cited,
                    value={
                        k: v for k, v in cited.value.items() if k not in {"type", "content_index"}
                    },
                )
                for cited in part.citations
            ),
        )
        if isinstance(part, Text)
        else part
        for part in choice.parts
    )
    return codec.replace(whole, choices=(codec.replace(choice, parts=parts),))


@pytest.mark.parametrize(
    ("reason", "arguments", "finish"),
    [
        ("TOOL_CALL", '{"a": 1}', "tool_calls"),
        ("COMPLETE", "", "tool_calls"),
        ("MAX_TOKENS", '{"a": 1}', "tool_calls"),
        ("MAX_TOKENS", '{"a": ', "length"),
        ("MAX_TOKENS", "", "length"),
        ("STOP_SEQUENCE", '{"a"', "length"),
        ("TOOL_CALL", "not JSON", "tool_calls"),
    ],
)
@pytest.mark.bug("K35")
def test_the_end_is_a_call_only_when_one_was_given_whole(
    reason: str, arguments: str, finish: str
) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
    body = {"id": "x", "message": {"tool_calls": [call]}, "finish_reason": reason}
    assert finish == COHERE.read_whole(json.dumps(body).encode()).choices[0].finish
    message = {"tool_calls": call}
    stream = (
        frame("message-start", id="x")
        + frame("tool-call-start", index=0, delta={"message": message})
        + frame("message-end", delta={"finish_reason": reason})
    )
    assert finish == read([stream]).choices[0].finish


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("COMPLETE", "stop"),
        ("MAX_TOKENS", "length"),
        ("STOP_SEQUENCE", "stop_sequence"),
        ("ERROR_TOXIC", "content_filter"),
        ("NEW_REASON", "stop"),
        ("TOOL_CALL", "stop"),
    ],
)
@pytest.mark.bug("K35")
def test_every_reason_has_its_end(reason: str, finish: str) -> None:
    body: Json = {"id": "x", "message": {"content": []}, "finish_reason": reason}
    (choice,) = COHERE.read_whole(json.dumps(body).encode()).choices
    assert (finish, reason) == (choice.finish, choice.native)


@pytest.mark.parametrize("reason", ["ERROR", "TIMEOUT", "ERROR_LIMIT"])
@pytest.mark.bug("K04", "K35")
def test_an_answer_that_failed_is_an_error(reason: str) -> None:
    body: Json = {"id": "x", "message": {"content": []}, "finish_reason": reason}
    with pytest.raises(AnswerIsError):
        COHERE.read_whole(json.dumps(body).encode())
    reader = COHERE.reader(RULES)
    content = {"message": {"content": {"type": "text", "text": "Half"}}}
    end = {
        "finish_reason": reason,
        "error": "out of order",
        "usage": {"tokens": {"input_tokens": 3}},
    }
    found = reader.feed(
        frame("message-start", id="x")
        + frame("content-start", index=0, delta=content)
        + frame("message-end", delta=end)
    )
    assert reader.error is not None
    assert ("out of order", reason) == (reader.error.message, reader.error.code)
    assert not any(isinstance(event, Ended) for event in found)
    assert [] == reader.end(complete=True)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'event: error\ndata: {"message": "too busy"}\n\n', "too busy"),
        (b'data: {"id": "x", "message": "too busy"}\n\n', "too busy"),
        (b'{"message": "invalid request"}', "invalid request"),
        (b'{"message": "invalid request"}\n', "invalid request"),
        (
            b'{"is_finished":false,"event_type":"stream-start","generation_id":"g"}\n{"text":"A"}\n',
            "",
        ),
        (b'{\n  "message": "on several lines"\n}', "on several lines"),
        (b"event: error\ndata: no JSON\n\n", ""),
    ],
)
@pytest.mark.bug("K04")
def test_an_error_inside_a_stream_ends_it(body: bytes, words: str) -> None:
    for pieces in ([body], [body[at : at + 1] for at in range(len(body))]):
        reader = COHERE.reader(RULES)
        for piece in pieces:
            reader.feed(piece)
        reader.end(complete=True)
        assert reader.error is not None
        assert words == reader.error.message


@pytest.mark.bug("K03")
def test_a_fragment_of_no_call_is_an_error() -> None:
    fragment = {"message": {"tool_calls": {"function": {"arguments": "1"}}}}
    reader = COHERE.reader(RULES)
    with pytest.raises(UpstreamError) as caught:
        reader.feed(frame("tool-call-delta", index=4, delta=fragment))
    assert "upstream_invalid_response" == caught.value.code


@pytest.mark.bug("K03")
def test_a_call_that_begins_again_at_one_index_is_another_call() -> None:
    def start(name: str) -> bytes:
        call = {"id": name, "function": {"name": name, "arguments": ""}}
        return frame("tool-call-start", index=0, delta={"message": {"tool_calls": call}})

    def more(text: str) -> bytes:
        message = {"tool_calls": {"function": {"arguments": text}}}
        return frame("tool-call-delta", index=0, delta={"message": message})

    end = frame("message-end", delta={"finish_reason": "TOOL_CALL"})
    found = read([start("a") + more("{}") + start("b") + more('{"x":1}') + end])
    assert (ToolCall("a", "a", "{}"), ToolCall("b", "b", '{"x":1}')) == found.choices[0].parts


def test_weights_of_a_piece_are_told_as_one_token() -> None:
    weighed = {"text": "He", "token_ids": [1, 2], "logprobs": [-0.5, -0.25]}
    expected = {
        "token": "He",
        "logprob": -0.75,
        "bytes": [72, 101],
        "top_logprobs": [],
    }
    content = [{"type": "text", "text": "He"}]
    body = {
        "id": "x",
        "message": {"content": content},
        "finish_reason": "COMPLETE",
        "logprobs": [weighed],
    }
    assert (expected,) == COHERE.read_whole(json.dumps(body).encode()).choices[0].logprobs
    delta = {"message": {"content": {"text": "He"}}}
    found = COHERE.reader(RULES).feed(
        frame("content-delta", index=0, delta=delta, logprobs=weighed)
    )
    assert Weighed(0, (expected,)) in found


def test_a_citation_may_follow_the_end_of_its_text() -> None:
    cited: Json = {"citations": {"start": 0, "end": 2, "text": "He", "sources": []}}
    content = {"message": {"content": {"type": "text", "text": "He"}}}
    found = read(
        [
            frame("message-start", id="x")
            + frame("content-start", index=0, delta=content)
            + frame("content-end", index=0)
            + frame("citation-start", index=0, delta={"message": cited})
            + frame("message-end", delta={"finish_reason": "COMPLETE"})
        ]
    )
    (part,) = found.choices[0].parts
    assert isinstance(part, Text)
    assert [(0, 2)] == [(c.start, c.end) for c in part.citations]


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"tokens": {"input_tokens": 5.0, "output_tokens": 0}}, Usage(5, 0)),
        ({"billed_units": {"input_tokens": 7, "output_tokens": 1}}, Usage(7, 1)),
        ({"billed_units": {"search_units": 1}}, None),
        ({"tokens": {"input_tokens": -1, "output_tokens": "x"}}, None),
        (None, None),
    ],
)
@pytest.mark.bug("K07")
def test_counts_are_those_of_the_model_and_a_zero_is_told(
    usage: object, expected: Usage | None
) -> None:
    body: Json = {
        "id": "x",
        "message": {"content": []},
        "finish_reason": "COMPLETE",
        "usage": usage,
    }
    assert expected == COHERE.read_whole(json.dumps(body).encode()).usage


@pytest.mark.bug("K01", "K38")
def test_broken_frames_are_counted_and_large_ones_refused() -> None:
    reader = COHERE.reader(StreamRules(False, False, max_event_bytes=100))
    reader.feed(b'data: {"type":\n\n: comment\n\ndata: {}\n\n')
    assert (2, True) == (reader.broken, reader.real)
    reader.feed(b": only a comment\n\n")
    assert not reader.real
    with pytest.raises(UpstreamError) as caught:
        reader.feed(b"data: " + b"x" * 200)
    assert "upstream_invalid_response" == caught.value.code


@pytest.mark.bug("K04")
def test_what_follows_the_end_is_counted_and_not_told() -> None:
    end = frame("message-end", delta={"finish_reason": "COMPLETE"})
    reader = COHERE.reader(RULES)
    reader.feed(frame("message-start", id="x") + end + b"data: [DONE]\n\n")
    assert 0 == reader.surplus
    assert [] == reader.feed(frame("content-start", index=0))
    assert 1 == reader.surplus


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"id":"x"}', b"<html>", b'{"message":{}}'])
def test_a_body_that_is_no_answer_cannot_be_used(body: bytes) -> None:
    with pytest.raises(UpstreamError) as caught:
        COHERE.read_whole(body)
    assert "upstream_invalid_response" == caught.value.code


def test_an_error_under_a_success_status_is_told() -> None:
    with pytest.raises(AnswerIsError) as caught:
        COHERE.read_whole(b'{"id": "x", "message": "too busy"}')
    assert "too busy" == caught.value.error.message


def test_a_part_ends_once_and_before_the_end() -> None:
    for seed in range(50):
        rng = Random(seed)
        reader = COHERE.reader(RULES)
        found: list[Event] = []
        for piece in cut(
            rng, cohere_answers.stream(rng, events(rng, answer(rng, CAN)), plan=False)
        ):
            found += reader.feed(piece)
        ended = [event.at for event in found if isinstance(event, PartEnded)]
        assert len(ended) == len(set(ended)), seed
        assert all(event.text for event in found if isinstance(event, Delta)), seed
