"""What the watcher of Responses lets through, what it keeps, how it knows the end, and how a stream is ended."""

import json
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from gateway.core.answer import Collector
from gateway.core.errors import GatewayError, UpstreamError
from gateway.core.message import Text, Thinking
from gateway.core.status import Status
from gateway.core.usage import Usage
from gateway.dialects.base import AnswerIsError, ProviderError, StreamRules
from gateway.dialects.losses import Notes
from gateway.dialects.responses.caller import ResponsesCaller
from gateway.dialects.responses.dialect import OpenAIResponses
from gateway.dialects.responses.target import ResponsesTarget
from gateway.dialects.responses.watcher import StreamWatcher
from gateway.engine.refusal import Refusal
from tests.support.grammar_responses import breaches, events_in
from tests.support.neutral import answer, events
from tests.support.responses_recordings import told
from tests.support.writing_responses import CAN

Json = dict[str, Any]
CALLER, DIALECT, TARGET = ResponsesCaller(), OpenAIResponses(), ResponsesTarget()
RULES = StreamRules(hide_usage=False, done_required=True)
COUNTS = {"input_tokens": 5, "output_tokens": 3, "total_tokens": 8}


def event(kind: str, number: int = 0, **fields: Any) -> bytes:
    data = json.dumps({"type": kind, "sequence_number": number, **fields})
    return f"event: {kind}\ndata: {data}\n\n".encode()


def delta(text: str, number: int = 4) -> bytes:
    return event("response.output_text.delta", number, delta=text, output_index=0)


def end(status: str, number: int = 9, **fields: Any) -> bytes:
    response: Json = {"id": "resp_1", "status": status, "output": [], "usage": COUNTS, **fields}
    return event(f"response.{status}", number, response=response)


CREATED = event("response.created", response={"id": "resp_1", "output": []})
ITEM: Json = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
ADDED = event("response.output_item.added", 1, item=ITEM, output_index=0)
PART = event(
    "response.content_part.added",
    2,
    item_id="msg_1",
    output_index=0,
    content_index=0,
    part={"type": "output_text", "text": "", "annotations": []},
)
BEGUN = CREATED + ADDED + PART


def watcher(limit: int = 1 << 20) -> StreamWatcher:
    return DIALECT.watch("responses", StreamRules(False, True, limit))


def run(data: bytes) -> tuple[bytes, StreamWatcher]:
    """Feed in one piece and byte by byte, and insist that both say the same."""
    whole, single = watcher(), watcher()
    out = whole.feed(data)
    assert b"".join(single.feed(data[at : at + 1]) for at in range(len(data))) == out
    for name in ("usage", "done", "error", "broken", "events", "begun"):
        assert getattr(single, name) == getattr(whole, name), name
    return out, whole


@pytest.mark.bug("K01")
def test_only_whole_events_go_on() -> None:
    watched = watcher()

    assert watched.feed(CREATED[:20]) == b""
    assert not watched.real
    assert watched.feed(CREATED[20:] + delta("a")[:9]) == CREATED
    assert watched.real
    assert watched.feed(delta("a")[9:]) == delta("a")


@pytest.mark.bug("K10", "B025")
def test_a_stream_has_begun_with_its_first_content() -> None:
    watched = watcher()

    watched.feed(BEGUN)
    assert not watched.begun
    watched.feed(delta("a"))
    assert watched.begun
    assert watched.events == 4


def test_a_call_is_content() -> None:
    watched = watcher()
    watched.feed(CREATED + event("response.output_item.added", 1, item={"type": "function_call"}))

    assert watched.begun


@pytest.mark.bug("K01")
def test_deltas_go_on_as_they_came() -> None:
    watched = watcher()
    burst = b"".join(delta(str(number), number) for number in range(50))
    odd = b'data: {"type":"response.output_text.delta","delta":"x","sequence_number":3}\n\n'
    crlf = delta("y").replace(b"\n", b"\r\n")

    data = BEGUN + delta("first")
    assert watched.feed(data) == data
    for piece in (delta("next"), burst, odd, crlf, b": ping\n\n"):
        assert watched.feed(piece) == piece
    assert watched.events == 4 + 1 + 50 + 1 + 1


@pytest.mark.bug("B127", "K04", "K35")
@pytest.mark.parametrize(
    ("status", "good"),
    [("completed", True), ("incomplete", True), ("failed", False), ("cancelled", False)],
)
def test_every_end_is_known(status: str, good: bool) -> None:
    ending = end(status, error=None if good else {"code": "server_error", "message": "Sorry."})
    out, watched = run(BEGUN + delta("a") + ending)

    assert watched.done is good
    assert (watched.error is None) is good
    assert watched.usage == Usage(5, 3)
    assert out == BEGUN + delta("a") + (ending if good else b"")
    reader = TARGET.reader(RULES)
    reader.feed(BEGUN + delta("a") + ending)
    assert (reader.error is None) is good
    body = json.dumps({"status": status, "output": [], "error": None, "usage": COUNTS}).encode()
    if good:
        assert DIALECT.read_answer("responses", body) == Usage(5, 3)
        TARGET.read_whole(body)
    else:
        for read in (
            lambda: DIALECT.read_answer("responses", body),
            lambda: TARGET.read_whole(body),
        ):
            with pytest.raises(AnswerIsError):
                read()


@pytest.mark.bug("B127")
def test_an_end_whose_response_failed_is_no_success() -> None:
    response = {"status": "failed", "error": {"code": "server_error", "message": "Sorry."}}
    _, watched = run(BEGUN + event("response.completed", 3, response=response))

    assert watched.error is not None
    assert watched.error.message == "Sorry."


@pytest.mark.bug("K35")
@pytest.mark.parametrize(
    "data",
    [
        event("error", 3, error={"type": "t", "code": "c", "message": "No."}),
        event("error", 3, code="c", message="No.", param=None),
        b'event: error\ndata: {"error":{"code":"c","message":"No."}}\n\n',
        b'data: {"error":{"code":"c","message":"No."}}\n\n',
    ],
)
def test_an_error_ends_the_stream_whatever_its_shape(data: bytes) -> None:
    out, watched = run(BEGUN + data + end("failed"))

    assert out == BEGUN
    assert watched.error is not None
    assert (watched.error.message, watched.error.code) == ("No.", "c")
    reader = TARGET.reader(RULES)
    reader.feed(BEGUN + data + end("failed"))
    assert reader.error == watched.error


@pytest.mark.bug("K04")
def test_nothing_goes_on_after_the_end() -> None:
    whole = BEGUN + delta("a") + end("completed")
    watched = watcher()

    assert watched.feed(whole + delta("b") + b"data: [DONE]\n\n") == whole
    assert watched.feed(delta("c")) == b""
    assert watched.surplus == 2
    assert watched.end(complete=False) == b""


@pytest.mark.bug("K04")
def test_the_word_of_another_format_is_no_end() -> None:
    out, watched = run(BEGUN + delta("a") + b"data: [DONE]\n\n")

    assert out == BEGUN + delta("a")
    with pytest.raises(UpstreamError, match="ended before it was complete"):
        watched.end(complete=True)


@pytest.mark.bug("K01")
def test_a_last_event_without_its_blank_line_counts() -> None:
    watched = watcher()
    whole = BEGUN + delta("a") + end("completed")

    out = watched.feed(whole[:-2]) + watched.end(complete=True)

    assert out == whole
    assert watched.done


def test_an_error_in_the_place_of_a_stream_is_read() -> None:
    for body in (b'{"error": {"message": "No.", "code": "c"}}', b'[{"error": {"message": "No."}}]'):
        watched, reader = watcher(), TARGET.reader(RULES)
        watched.feed(body)
        reader.feed(body)
        assert watched.end(complete=True) == b""
        assert reader.end(complete=True) == []
        for error in (watched.error, reader.error):
            assert error is not None
            assert error.message == "No."


def test_what_is_no_json_is_counted() -> None:
    out, watched = run(BEGUN + b"data: {oops\n\n" + delta("a"))

    assert out == BEGUN + b"data: {oops\n\n" + delta("a")
    assert watched.broken == 1


@pytest.mark.bug("K28")
def test_secrets_in_what_cannot_be_read_are_hidden() -> None:
    rules = StreamRules(False, True, secrets=lambda text: text.replace("s3cret", "[hidden]"))
    watched = DIALECT.watch("responses", rules)

    assert b"s3cret" not in watched.feed(CREATED + b"data: {oops s3cret\n\n")


@pytest.mark.bug("K38")
def test_an_event_that_is_too_large_is_refused() -> None:
    for each in (watcher(limit=100), TARGET.reader(StreamRules(False, True, 100))):
        with pytest.raises(UpstreamError, match="could not be used"):
            each.feed(b"data: " + b"x" * 200)


@pytest.mark.bug("K37", "K04")
def test_a_relayed_stream_may_be_ended_after_any_event_in_full_grammar() -> None:
    rng = Random(41)
    for _ in range(12):
        writer = CALLER.writer(told(), Notes())
        whole = writer.write(events(rng, answer(rng, CAN)))
        ends = [at + 2 for at in range(len(whole)) if whole[at : at + 2] == b"\n\n"][:-1]
        cuts = [0, *sorted(rng.sample(ends, min(len(ends), 12)))]
        watched = watcher()
        out = b""
        for a, b in pairwise(cuts):
            out += watched.feed(whole[a:b])
            ended = out + DIALECT.cut_short("responses", out, watched.open_choices, "too much")
            assert breaches(ended) == []
            restart = DIALECT.cut_short("responses", out, [0], "too much")
            assert breaches(out + restart) == []
            watched = watcher()
            watched.feed(out)


@pytest.mark.bug("K37", "B123")
def test_an_error_inside_of_a_stream_is_what_clients_raise_on() -> None:
    error = GatewayError("upstream_truncated")
    (own,) = events_in(DIALECT.render_stream_error(error, "req_1"))
    said = ProviderError("Too many.", "rate_limit_error", "slow_down", keys=("message", "code"))
    refusal = Refusal(said, 429, Status.RESOURCE_EXHAUSTED, None, kind="other", is_model_call=True)
    (theirs,) = events_in(DIALECT.render_provider_stream_error(said, refusal, "req_1"))

    assert own["type"] == theirs["type"] == "error"
    assert own["error"]["code"] == own["code"] == "upstream_truncated"
    assert theirs["error"] == {"message": "Too many.", "code": "slow_down"}
    assert (theirs["message"], theirs["code"], theirs["param"]) == ("Too many.", "slow_down", None)


@pytest.mark.bug("K37", "B123")
def test_a_stream_that_fails_goes_on_counting_and_tells_the_failed_response() -> None:
    rng = Random(42)
    for relayed in (True, False) * 8:
        writer = CALLER.writer(told(), Notes())
        found = events(rng, answer(rng, CAN))
        out = writer.write(found[: rng.randrange(1, len(found))])
        error = GatewayError("upstream_truncated")
        error.open_choices = writer.open_choices
        if relayed:
            watched = watcher()
            watched.feed(out)
            error.open_choices = watched.open_choices

        out += DIALECT.render_stream_error(error, "req_1")

        assert breaches(out) == []
        last = events_in(out)[-1]["response"]
        assert last["status"] == "failed"
        assert last["error"]["code"] == "upstream_truncated"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"nothing",
        b"[]",
        b"{}",
        b'{"output": {}}',
        b'{"output": [], "status": "queued"}',
        b"\xff",
    ],
)
def test_what_is_no_answer_is_refused(body: bytes) -> None:
    for read in (lambda: DIALECT.read_answer("responses", body), lambda: TARGET.read_whole(body)):
        with pytest.raises(UpstreamError) as refused:
            read()
        assert refused.value.code == "upstream_invalid_response"


def test_an_answer_that_runs_on_in_the_background_is_passed_on() -> None:
    body = b'{"output": [], "status": "queued", "background": true}'

    assert DIALECT.read_answer("responses", body) is None


def test_an_answer_in_the_place_of_which_stands_an_error_is_one() -> None:
    with pytest.raises(AnswerIsError) as said:
        DIALECT.read_answer("responses", b'{"error": {"message": "No.", "code": "c"}}')

    assert said.value.error.message == "No."


def test_servers_that_number_items_anew_are_understood() -> None:
    thought: Json = {"type": "reasoning", "id": "rs_1", "summary": []}
    part = {"type": "reasoning_text", "text": "Hm."}
    data = (
        CREATED
        + event("response.output_item.added", item=thought, output_index=0)
        + event("response.reasoning_part.added", part=part, output_index=0)
        + event("response.reasoning_text.delta", delta="Hm.", output_index=0, content_index=0)
        + event("response.output_item.done", item={**thought, "content": [part]}, output_index=0)
        + event("response.output_item.added", item=ITEM, output_index=0)
        + event("response.output_text.delta", delta="Hi", output_index=0, content_index=0)
        + event("response.output_text.done", text="Hi", output_index=0, content_index=0)
        + end("completed")
    )
    reader, collector = TARGET.reader(RULES), Collector("x")
    collector.add(reader.feed(data))

    thinking, text = collector.answer().choices[0].parts
    assert isinstance(thinking, Thinking)
    assert (thinking.text, text) == ("Hm.", Text("Hi"))


@pytest.mark.bug("B012", "K35")
def test_calls_count_that_only_the_events_told() -> None:
    item = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": ""}
    data = (
        CREATED
        + event("response.output_item.added", 1, item=item, output_index=0)
        + event("response.function_call_arguments.done", 2, arguments='{"a":1}', output_index=0)
        + end("completed")
    )
    reader = TARGET.reader(RULES)
    writer = CALLER.writer(told(), Notes())
    out = writer.write(reader.feed(data))

    (call,) = events_in(out)[-1]["response"]["output"]
    assert (call["type"], call["arguments"]) == ("function_call", '{"a":1}')
    assert breaches(out) == []
