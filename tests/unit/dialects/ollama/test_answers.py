"""What Ollama answers says the same in the neutral form, whole and as JSON lines, however those are cut."""

import json
from collections.abc import Iterable
from random import Random

import pytest

from gateway.core import codec
from gateway.core.answer import Answer, Collector, Ended, Weighed
from gateway.core.errors import UpstreamError
from gateway.core.message import Part, Text, Thinking, ToolCall
from gateway.core.usage import Usage
from gateway.dialects.base import AnswerIsError, StreamRules, unredacted
from gateway.dialects.ollama.target import Ollama
from tests.support import ollama_answers
from tests.support.native_recordings import Exchange, Json, cuts, exchanges
from tests.support.neutral import Can, answer, events
from tests.support.neutral import cuts as cut
from tests.support.rounds import rounds
from tests.support.same import FINISHES, calls_of, has_failed, limited

OLLAMA = Ollama()
RULES = StreamRules(hide_usage=False, done_required=False)
CAN = Can(
    OLLAMA.name,
    finishes=("stop", "length"),
    usage=(),
    no_arguments="{}",
    logprobs=True,
    huge=0.001,
)


def read(pieces: Iterable[bytes]) -> Answer:
    reader = OLLAMA.reader(RULES)
    collector = Collector(OLLAMA.name)
    for piece in pieces:
        collector.add(reader.feed(piece))
    collector.add(reader.end(complete=True))
    assert collector.ended
    assert (0, 0, None) == (reader.broken, reader.surplus, reader.error)
    return collector.answer()


def line(**fields: object) -> bytes:
    return json.dumps({"model": "m", "created_at": ollama_answers.CREATED, **fields}).encode()


def ends(body: bytes) -> list[int]:
    return [at + 1 for at, byte in enumerate(body[:-1]) if byte == ord("\n")]


def check(found: Answer, exchange: Exchange) -> None:
    expect = exchange.expect
    (choice,) = found.choices
    calls = [part for part in choice.parts if isinstance(part, ToolCall)]
    assert expect.get("model", found.model) == found.model
    assert expect["text"] == "".join(p.text for p in choice.parts if isinstance(p, Text))
    thoughts = "".join(p.text for p in choice.parts if isinstance(p, Thinking))
    assert expect.get("reasoning_text", "") == thoughts
    wanted = calls_of(expect)
    found_calls = [
        {"name": call.name, "arguments": json.loads(call.arguments or "{}"), "id": call.id}
        for call in calls
    ]
    assert wanted == [limited(*pair) for pair in zip(found_calls, wanted, strict=True)]
    assert all(call.id for call in calls)
    assert expect["finish_reason"] == choice.native
    assert ("tool_calls" if calls else FINISHES[choice.native]) == choice.finish
    counts: Json | None = expect.get("usage")
    if counts is not None:
        assert Usage(counts.get("input_total"), counts.get("output_total")) == found.usage


@pytest.mark.bug("K07", "K35")
def test_whole_answers_say_what_was_recorded() -> None:
    for exchange in exchanges("ollama", "/api/chat"):
        if exchange.status == 200 and not exchange.stream and not has_failed(exchange):
            check(OLLAMA.read_whole(exchange.body), exchange)


@pytest.mark.bug("K01", "K07", "K35")
def test_streams_say_what_was_recorded_however_they_are_cut() -> None:
    for exchange in exchanges("ollama", "/api/chat"):
        if exchange.stream and not has_failed(exchange):
            for pieces in cuts(exchange.body, ends(exchange.body)):
                check(read(pieces), exchange)


@pytest.mark.bug("K04")
def test_a_stream_without_its_last_line_is_cut_short() -> None:
    for exchange in exchanges("ollama", "/api/chat"):
        if not exchange.stream or has_failed(exchange):
            continue
        for end in ends(exchange.body):
            reader = OLLAMA.reader(RULES)
            found = reader.feed(exchange.body[:end])
            assert not any(isinstance(event, Ended) for event in found)
            with pytest.raises(UpstreamError) as caught:
                reader.end(complete=True)
            assert "upstream_truncated" == caught.value.code


def _expressible(whole: Answer) -> Answer:
    """Return an answer as far as Ollama can tell it: no id, no empty text, calls with objects."""
    (choice,) = whole.choices
    parts: list[Part] = []
    for part in choice.parts:
        if isinstance(part, ToolCall):
            arguments = codec.encode(codec.decode(part.arguments)).decode()
            parts.append(codec.replace(part, arguments=arguments))
        elif not isinstance(part, Text) or part.text:
            parts.append(part)
    native = ollama_answers.REASONS[choice.finish]
    choices = (codec.replace(choice, parts=tuple(parts), native=native),)
    return codec.replace(whole, id="", created=ollama_answers.CREATED_S, choices=choices)


@pytest.mark.bug("K01", "K03", "K37")
def test_streams_of_any_answer_are_read_as_they_were_told() -> None:
    for seed in rounds(300):
        rng = Random(seed)
        told = answer(rng, CAN)
        body = ollama_answers.stream(rng, events(rng, told, overlap=False))
        assert _expressible(told) == read(cut(rng, body)), seed


@pytest.mark.bug("K35", "K37")
def test_whole_answers_are_read_as_they_were_told() -> None:
    for seed in rounds(300):
        told = answer(Random(seed), CAN)
        assert _expressible(told) == OLLAMA.read_whole(ollama_answers.whole(told)), seed


@pytest.mark.bug("K03")
def test_calls_without_ids_get_different_ones() -> None:
    call = {"function": {"name": "f", "arguments": {"a": 1}}}
    body = line(message={"tool_calls": [call, call]}, done=True, done_reason="stop")
    for found in (OLLAMA.read_whole(body), read([body])):
        calls = [part for part in found.choices[0].parts if isinstance(part, ToolCall)]
        assert ['{"a":1}', '{"a":1}'] == [each.arguments for each in calls]
        assert 2 == len({each.id for each in calls if each.id})


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [({"b": 1, "a": [2.5, None]}, '{"b":1,"a":[2.5,null]}'), ('{"a": 1}', '{"a": 1}'), (None, "")],
)
def test_arguments_are_json_text(arguments: object, expected: str) -> None:
    calls = [{"id": "c", "function": {"name": "f", "arguments": arguments}}]
    found = OLLAMA.read_whole(line(message={"tool_calls": calls}, done=True))
    assert (ToolCall("c", "f", expected),) == found.choices[0].parts


@pytest.mark.parametrize(
    ("reason", "called", "finish"),
    [
        ("stop", False, "stop"),
        ("stop", True, "tool_calls"),
        ("length", False, "length"),
        ("length", True, "tool_calls"),
        ("load", False, "stop"),
        (None, False, "stop"),
    ],
)
@pytest.mark.bug("K35")
def test_the_end_follows_from_what_was_given(reason: str | None, called: bool, finish: str) -> None:
    calls: list[Json] = [{"function": {"name": "f", "arguments": {}}}]
    message: Json = {"content": "", "tool_calls": calls} if called else {"content": "A"}
    body = line(message=message, done=True, done_reason=reason)
    for found in (OLLAMA.read_whole(body), read([body])):
        assert (finish, reason or "") == (found.choices[0].finish, found.choices[0].native)


def test_thinking_and_text_may_take_turns_and_marks_in_a_text_stay_text() -> None:
    body = b"\n".join(
        (
            line(message={"thinking": "A", "content": ""}),
            line(message={"thinking": "B"}),
            line(message={"content": "<think>C"}),
            line(message={"content": "</think>D"}),
            line(message={"thinking": "E"}),
            line(message={"content": ""}, done=True, done_reason="stop"),
        )
    )
    expected = (Thinking("AB"), Text("<think>C</think>D"), Thinking("E"))
    assert expected == read([body]).choices[0].parts


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"error":"model not found"}\n', "model not found"),
        (b'{"error":"model not found"}', "model not found"),
        (b'{"error":{"message":"deeper","type":"api_error"}}\n', "deeper"),
    ],
)
@pytest.mark.bug("K04")
def test_an_error_inside_a_stream_ends_it(body: bytes, words: str) -> None:
    reader = OLLAMA.reader(RULES)
    found = reader.feed(line(message={"content": "Half"}) + b"\n" + body)
    found += reader.end(complete=True)
    assert reader.error is not None
    assert words == reader.error.message
    assert not any(isinstance(event, Ended) for event in found)


@pytest.mark.bug("K08")
def test_errors_are_texts_or_objects() -> None:
    for body, words in (
        (b'{"error":"model \\"x\\" not found"}', 'model "x" not found'),
        (b'{"error":{"message":"Unauthorized","type":"api_error"}}', "Unauthorized"),
        (b"404 page not found", ""),
    ):
        assert words == OLLAMA.read_error(404, body, unredacted).message
    unauthorized = OLLAMA.read_error(401, b'{"error":"unauthorized"}', unredacted)
    assert "auth" == OLLAMA.error_class(unauthorized, 401)
    too_long = OLLAMA.read_error(
        400, b'{"error":"input exceeds maximum context length"}', unredacted
    )
    assert "context" == OLLAMA.error_class(too_long, 400)


@pytest.mark.parametrize(
    ("created", "seconds"),
    [
        ("2025-06-15T15:06:40Z", 1_750_000_000),
        ("2025-06-15T17:06:40.5+02:00", 1_750_000_000),
        ("yesterday", 0),
        (5, 0),
        (None, 0),
    ],
)
def test_times_are_seconds(created: object, seconds: int) -> None:
    body = json.dumps({"created_at": created, "message": {"content": "A"}, "done": True}).encode()
    assert seconds == OLLAMA.read_whole(body).created


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"prompt_eval_count": 0, "eval_count": 3}, Usage(0, 3)),
        ({"eval_count": 3}, Usage(None, 3)),
        ({"prompt_eval_count": -1, "eval_count": 1.5}, None),
        ({"prompt_eval_count": True}, None),
        ({}, None),
    ],
)
@pytest.mark.bug("K07")
def test_counts_are_told_as_they_are(counts: Json, expected: Usage | None) -> None:
    body = line(message={"content": "A"}, done=True, **counts)
    assert expected == OLLAMA.read_whole(body).usage
    assert expected == read([body]).usage


def test_weights_come_with_their_alternatives() -> None:
    weighed = {"token": "A", "logprob": -0.5, "bytes": [65], "top_logprobs": [{"token": "B"}]}
    bare = {"token": "C", "logprob": -1.0}
    body = line(message={"content": "AC"}, done=True, logprobs=[weighed, bare])
    expected: tuple[Json, ...] = (weighed, {**bare, "bytes": None, "top_logprobs": []})
    assert expected == OLLAMA.read_whole(body).choices[0].logprobs
    assert Weighed(0, expected) in OLLAMA.reader(RULES).feed(body + b"\n")


@pytest.mark.bug("K01", "K38")
def test_broken_lines_are_counted_and_large_ones_refused() -> None:
    reader = OLLAMA.reader(StreamRules(False, False, max_event_bytes=100))
    reader.feed(b'{"message":\r\n\r\n[]\n')
    assert (2, True) == (reader.broken, reader.real)
    reader.feed(b"\n \n")
    assert not reader.real
    with pytest.raises(UpstreamError) as caught:
        reader.feed(b'{"message": "' + b"x" * 200)
    assert "upstream_invalid_response" == caught.value.code


@pytest.mark.bug("K04")
def test_what_follows_the_end_is_counted_and_not_told() -> None:
    reader = OLLAMA.reader(RULES)
    reader.feed(line(message={"content": "A"}, done=True) + b"\n")
    assert [] == reader.feed(line(message={"content": "B"}) + b"\n")
    assert 1 == reader.surplus
    assert [] == reader.end(complete=False)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"done":true}',
        b'{"message":{"content":"A"}}',
        b'{"message":{"content":5},"done":true}',
        b"<html>",
    ],
)
def test_a_body_that_is_no_answer_cannot_be_used(body: bytes) -> None:
    with pytest.raises(UpstreamError) as caught:
        OLLAMA.read_whole(body)
    assert "upstream_invalid_response" == caught.value.code


def test_an_error_under_a_success_status_is_told() -> None:
    with pytest.raises(AnswerIsError) as caught:
        OLLAMA.read_whole(b'{"error": "out of memory"}')
    assert "out of memory" == caught.value.error.message
