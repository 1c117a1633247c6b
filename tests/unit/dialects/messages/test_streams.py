"""Streams of Messages, read and written in their odd states: overlaps, cut calls, items of the provider's own."""

import json
from typing import Any

import pytest

from gateway.core.answer import (
    Answer,
    Began,
    Cited,
    Collector,
    Counted,
    Delta,
    Ended,
    Event,
    Finished,
    PartBegan,
    PartEnded,
    Sealed,
    Weighed,
    events_of,
)
from gateway.core.errors import UpstreamError
from gateway.core.message import Citation, Opaque, Prompt, Refusal, Text, Thinking, ToolCall
from gateway.core.usage import Usage
from gateway.dialects.base import StreamRules, unredacted
from gateway.dialects.losses import Notes
from gateway.dialects.messages.event_reader import EventReader
from gateway.dialects.messages.events import as_event
from gateway.dialects.messages.relay import AnthropicMessages
from gateway.dialects.messages.sides import MessagesCaller, MessagesTarget
from gateway.dialects.sides import Told
from tests.support.grammar_messages import breaches, collected

Json = dict[str, Any]
DIALECT = AnthropicMessages()
CALLER = MessagesCaller()
TARGET = MessagesTarget()
RULES = StreamRules(hide_usage=False, done_required=True)
TOLD = Told("req_1", "asked", 0, Prompt("anthropic_messages", ()))
BEGAN = Began("id", "m")


def write(*events: Event) -> tuple[bytes, Notes]:
    notes = Notes()
    writer = CALLER.writer(TOLD, notes)
    return b"".join(writer.write([event]) for event in events), notes


def told(*events: Json) -> tuple[Answer, EventReader]:
    reader = EventReader(unredacted)
    collector = Collector("anthropic_messages")
    for event in events:
        collector.add(reader.take(json.dumps(event).encode()))
    return collector.answer(), reader


def start(index: int, **block: Any) -> Json:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **fields: Any) -> Json:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def stop(index: int) -> Json:
    return {"type": "content_block_stop", "index": index}


def end(reason: str, **usage: int) -> Json:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


START: Json = {"type": "message_start", "message": {"id": "i", "model": "m", "usage": {}}}
STOP: Json = {"type": "message_stop"}


@pytest.mark.bug("K03", "B004")
def test_calls_that_overlap_come_one_after_the_other() -> None:
    body, _ = write(
        BEGAN,
        PartBegan(0, 0, ToolCall("a", "f")),
        PartBegan(0, 1, ToolCall("b", "g")),
        Delta(0, 1, '{"y":'),
        Delta(0, 0, '{"x":1}'),
        Delta(0, 1, "2}"),
        PartEnded(0, 1),
        PartEnded(0, 0),
        Finished(0, "tool_calls"),
        Ended(),
    )

    assert [] == breaches(body)
    assert [("a", {"x": 1}), ("b", {"y": 2})] == [(b["id"], b["input"]) for b in collected(body)]


@pytest.mark.bug("K06")
def test_what_is_in_front_is_written_at_once() -> None:
    writer = CALLER.writer(TOLD, Notes())

    assert b"message_start" in writer.write([BEGAN])
    assert b"" == writer.write([PartBegan(0, 0, Text(""))])
    assert b'"text":"a"' in writer.write([Delta(0, 0, "a")])
    assert (0,) == writer.open_choices
    assert b"" == writer.write([PartBegan(0, 1, ToolCall("c", "f"))])
    assert b"tool_use" in writer.write([PartEnded(0, 0)])
    assert (1,) == writer.open_choices


def test_the_first_counts_stand_at_the_beginning() -> None:
    writer = CALLER.writer(TOLD, Notes())
    body = writer.write([BEGAN, Counted(Usage(7, 1, cached=3))])

    assert {"input_tokens": 4, "cache_read_input_tokens": 3, "output_tokens": 1} == json.loads(
        body.partition(b"data: ")[2]
    )["message"]["usage"]


def test_parts_that_say_nothing_are_no_blocks() -> None:
    body, _ = write(
        BEGAN,
        *(each for at, part in enumerate((Text(""), Thinking(), Text("a")))
          for each in (PartBegan(0, at, part), PartEnded(0, at))),
        Finished(0, "stop"),
        Ended(),
    )  # fmt: skip

    assert [] == breaches(body)
    assert [{"type": "text", "text": "a"}] == collected(body)


@pytest.mark.bug("K35")
def test_a_call_that_was_cut_keeps_its_text() -> None:
    body, _ = write(
        BEGAN,
        PartBegan(0, 0, ToolCall("a", "f", '{"x"')),
        PartEnded(0, 0),
        Finished(0, "length"),
        Ended(),
    )

    assert [] == breaches(body)
    assert b'"stop_reason":"max_tokens"' in body
    assert rb'"partial_json":"{\"x\""' in body


@pytest.mark.parametrize("said", ["", " \n", "{}"])
def test_a_call_without_arguments_has_an_empty_input(said: str) -> None:
    body, _ = write(
        BEGAN,
        PartBegan(0, 0, ToolCall("", "f")),
        Delta(0, 0, said),
        PartEnded(0, 0),
        Finished(0, "tool_calls"),
        Ended(),
    )

    assert [] == breaches(body)
    assert [{}] == [block["input"] for block in collected(body)]


def test_an_answer_of_nothing_is_a_stream() -> None:
    body, _ = write(Finished(0, "stop"), Ended())

    assert [] == breaches(body)
    assert b'"model":"asked"' in body


@pytest.mark.bug("K34")
def test_what_a_stream_cannot_tell_is_named() -> None:
    _, notes = write(
        BEGAN,
        PartBegan(0, 0, Text("a")),
        Cited(0, 0, Citation("openai_chat", {})),
        PartBegan(1, 0, Text("other")),
        Weighed(0, ({},)),
        PartEnded(0, 0),
        PartBegan(0, 1, Opaque("gemini", "executable_code", {})),
        PartEnded(0, 1),
        Finished(0, "stop"),
        Finished(1, "stop"),
        Ended(),
    )

    assert 4 == len(notes.warnings)


@pytest.mark.parametrize("explained", [True, False])
def test_words_of_a_refusal_stand_once(explained: bool) -> None:
    details = {"type": "refusal", "explanation": "No."}
    body, _ = write(
        BEGAN,
        PartBegan(0, 0, Refusal("")),
        Delta(0, 0, "No."),
        PartEnded(0, 0),
        Finished(0, "refusal"),
        Ended({"stop_details": details} if explained else {}),
    )

    assert [] == breaches(body)
    assert ([] if explained else ["No."]) == [block["text"] for block in collected(body)]
    assert explained == (b"stop_details" in body)


def test_parts_that_nobody_ended_end_with_the_message() -> None:
    body, _ = write(BEGAN, PartBegan(0, 0, Text("a")), Finished(0, "length"), Ended())

    assert [] == breaches(body)


@pytest.mark.bug("K04")
def test_a_translated_stream_is_cut_short_by_the_grammar() -> None:
    events = (
        BEGAN,
        PartBegan(0, 0, Thinking("Hm.")),
        PartEnded(0, 0),
        PartBegan(0, 1, ToolCall("a", "f", '{"a":')),
        Delta(0, 1, "1"),
    )
    for count in range(1, len(events) + 1):
        writer = CALLER.writer(TOLD, Notes())
        began = writer.write(events[:count])
        rest = DIALECT.cut_short("messages", began, writer.open_choices, "no more")

        assert [] == breaches(began + rest)


def test_a_provider_that_sends_the_input_at_once_is_understood() -> None:
    answer, _ = told(
        START,
        start(0, type="tool_use", id="t", name="f", input={"a": 1}),
        stop(0),
        end("tool_use"),
        STOP,
    )

    assert (ToolCall("t", "f", '{"a":1}'),) == answer.choices[0].parts


def test_items_of_the_provider_are_told_once_they_are_whole() -> None:
    answer, reader = told(
        START,
        start(0, type="server_tool_use", id="s", name="w", input={}),
        delta(0, "input_json_delta", partial_json='{"q": '),
        delta(0, "input_json_delta", partial_json='"x"}'),
        stop(0),
        start(1, type="compaction", content="a"),
        delta(1, "compaction_delta", content="b", more=1),
        stop(1),
        end("compaction"),
        STOP,
    )
    kinds = [part.value for part in answer.choices[0].parts if isinstance(part, Opaque)]

    assert kinds == [
        {"type": "server_tool_use", "id": "s", "name": "w", "input": {"q": "x"}},
        {"type": "compaction", "content": "ab", "more": 1},
    ]
    assert "pause" == answer.choices[0].finish
    assert (0, True) == (reader.broken, reader.done)


@pytest.mark.bug("K03")
@pytest.mark.parametrize(
    "odd",
    [
        delta(5, "text_delta", text="a"),
        delta(0, "thinking_delta", thinking="a"),
        start(0, type="text", text="again"),
        start(1, type="tool_use", name="f", input={}),
        {"type": "content_block_start", "index": 1},
        {"type": 5},
        "text",
    ],
)
def test_what_cannot_be_placed_is_counted(odd: Any) -> None:
    answer, reader = told(
        START, start(0, type="text", text=""), odd, stop(0), end("end_turn"), STOP
    )

    assert 1 == reader.broken
    assert (Text(""),) == answer.choices[0].parts


def test_a_block_may_begin_without_its_empty_text() -> None:
    answer, reader = told(
        START,
        start(0, type="thinking"),
        delta(0, "thinking_delta", thinking="Hm."),
        start(1, type="text"),
        delta(1, "text_delta", text="a"),
        end("end_turn"),
        STOP,
    )

    assert (Thinking("Hm."), Text("a")) == answer.choices[0].parts
    assert 0 == reader.broken


@pytest.mark.bug("K37")
def test_a_stream_without_its_beginning_begins() -> None:
    reader = EventReader(unredacted)

    assert [Began(), PartBegan(0, 0, Text("a"))] == reader.take(
        json.dumps(start(0, type="text", text="a")).encode()
    )


@pytest.mark.bug("K04")
def test_an_end_without_a_reason_is_none() -> None:
    _, reader = told(START, STOP)

    assert (False, 1) == (reader.done, reader.broken)


def test_a_seal_replaces_and_is_the_makers() -> None:
    reader = EventReader(unredacted)
    reader.take(json.dumps(START).encode())
    reader.take(json.dumps(start(0, type="thinking", thinking="", signature="")).encode())

    assert [Sealed(0, 0, "s==", "anthropic")] == reader.take(
        json.dumps(delta(0, "signature_delta", signature="s==")).encode()
    )


@pytest.mark.bug("K08")
def test_an_error_in_a_stream_is_told_behind_what_came_before() -> None:
    body = b"".join(
        as_event(json.dumps(each).encode()) for each in (START, start(0, type="text", text=""))
    )
    error = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}
    reader = TARGET.reader(RULES)
    events = reader.feed(body + as_event(json.dumps(error).encode()) + body)

    assert 2 == len(events)
    assert reader.error is not None
    assert ("rate_limit_error", 429) == (reader.error.type, reader.error.http)
    assert [] == reader.end(complete=True)


def test_a_ping_is_no_progress_and_what_comes_late_is_counted() -> None:
    reader = TARGET.reader(RULES)
    whole = write(*events_of(Answer("x", "i", "m", ())))[0]
    reader.feed(b'event: ping\ndata: {"type": "ping"}\n\n')
    assert not reader.real
    reader.feed(whole + whole)
    assert reader.surplus
    assert [] == reader.end(complete=True)


def test_a_bare_error_in_the_place_of_events_is_understood() -> None:
    reader = TARGET.reader(RULES)
    reader.feed(b'{"type":"error","error":{"type":"api_error","message":"no"}}')

    assert [] == reader.end(complete=True)
    assert reader.error is not None
    assert "no" == reader.error.message


@pytest.mark.bug("K04")
def test_a_page_in_the_place_of_events_is_cut_short() -> None:
    reader = TARGET.reader(RULES)
    reader.feed(b"<html>")
    with pytest.raises(UpstreamError):
        reader.end(complete=True)


def test_a_bare_event_becomes_one_of_the_stream() -> None:
    assert b'event: ping\ndata: {"type":  "ping"}\n\n' == as_event(b'{"type":\r\n"ping"}')
    assert b"data: nonsense\n\n" == as_event(b"nonsense")
