"""Anthropic's models on Invoke: callers of Messages get Anthropic's own events, others a translation."""

import base64
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from gateway.core import codec
from gateway.core.answer import Collector
from gateway.core.errors import UpstreamError
from gateway.core.message import Message, Prompt, Text
from gateway.core.usage import Usage
from gateway.dialects.base import StreamRules
from gateway.dialects.bedrock.invoke import InvokeClaude, InvokeWatcher, relay_fields
from gateway.dialects.losses import Notes
from gateway.dialects.registry import CALLERS
from gateway.dialects.sides import Facts
from tests.support.bedrock_recordings import exchanges, expected, said
from tests.support.event_stream import ends, event, exception
from tests.support.recordings import events_of
from tests.support.same import limited

CALL = "invoke-with-response-stream"
RULES = StreamRules(hide_usage=False, done_required=True)
INVOKE, CALLER = InvokeClaude(), CALLERS["anthropic_messages"]
FACTS = Facts("bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0", stream=True)


def _pieces(body: bytes) -> Iterator[list[bytes]]:
    yield [body]
    yield [body[at : at + 1] for at in range(len(body))]
    yield [body[at : at + 7] for at in range(0, len(body), 7)]
    places = ends(body)
    yield [body[a:b] for a, b in zip([0, *places], places, strict=False)]


def _chunk(told: dict[str, Any]) -> bytes:
    data = base64.b64encode(json.dumps(told).encode()).decode()
    return event("chunk", {"bytes": data, "p": "abc"})


def _fields(body: dict[str, Any]) -> codec.Fields:
    return {name: codec.raw(value) for name, value in body.items()}


@pytest.mark.bug("K01", "K07")
def test_callers_of_messages_get_anthropics_own_events_however_they_are_cut() -> None:
    for exchange in exchanges(CALL):
        outputs: set[bytes] = set()
        for pieces in _pieces(exchange.body):
            watcher = InvokeWatcher(RULES)
            out = b"".join([watcher.feed(piece) for piece in pieces])
            outputs.add(out + watcher.end(complete=True))
            usage = exchange.expect.get("usage")
            assert watcher.done
            assert isinstance(watcher.usage, Usage)
            if usage:
                assert (usage["input_total"], usage["output_total"]) == watcher.usage[:2]
        (out,) = outputs
        told = events_of(out)
        data = [json.loads(each.data) for each in told]
        assert [each.name for each in told] == [each["type"] for each in data]
        assert "message_stop" == told[-1].name
        assert b"amazon-bedrock" not in out
        texts = [each["delta"].get("text", "") for each in data if "delta" in each]
        assert exchange.expect["text"] == "".join(texts)


@pytest.mark.bug("K01", "K35")
def test_other_callers_get_the_recorded_answer_however_it_is_cut() -> None:
    for exchange in exchanges(CALL):
        for pieces in _pieces(exchange.body):
            reader = INVOKE.reader(RULES)
            collector = Collector(INVOKE.name)
            for piece in pieces:
                collector.add(reader.feed(piece))
            collector.add(reader.end(complete=True))
            assert collector.ended
            assert (0, 0, None) == (reader.broken, reader.surplus, reader.error)
            wanted = expected(exchange)
            assert wanted == limited(said(collector.answer()), wanted)


@pytest.mark.bug("K04")
def test_a_stream_without_its_end_is_cut_short() -> None:
    for exchange in exchanges(CALL):
        for end in (*ends(exchange.body)[:-1], len(exchange.body) - 1):
            for side in (InvokeWatcher(RULES), INVOKE.reader(RULES)):
                side.feed(exchange.body[:end])
                with pytest.raises(UpstreamError) as caught:
                    side.end(complete=True)
                assert "upstream_truncated" == caught.value.code


@pytest.mark.bug("K08", "K35")
def test_an_exception_within_a_stream_is_told_behind_what_came_before() -> None:
    start = _chunk({"type": "message_start", "message": {"usage": {"input_tokens": 3}}})
    body = start + exception("throttlingException", {"message": "Too many requests"})
    watcher, reader = InvokeWatcher(RULES), INVOKE.reader(RULES)

    out, told = watcher.feed(body), reader.feed(body)

    assert out.startswith(b"event: message_start\n")
    assert told
    for error in (watcher.error, reader.error):
        assert error is not None
        assert ("ThrottlingException", 429) == (error.type, error.http)
    assert b"" == watcher.end(complete=True)
    assert [] == reader.end(complete=True)


def test_a_chunk_that_cannot_be_read_is_counted_and_left_out() -> None:
    body = event("chunk", {"bytes": "%%%"}) + event("chunk", {}) + event("other", {})
    watcher, reader = InvokeWatcher(RULES), INVOKE.reader(RULES)

    assert b"" == watcher.feed(body)
    assert [] == reader.feed(body)
    assert 2 == reader.broken
    assert 2 == watcher.broken


@pytest.mark.bug("K34")
def test_the_body_of_a_relay_holds_what_the_caller_sent_and_what_bedrock_needs() -> None:
    notes = Notes()
    body = {"model": "x", "stream": True, "max_tokens": 5, "new": {"a": 1}, "metadata": {}}
    passed: Sequence[tuple[bytes, bytes]] = (
        (b"anthropic-version", b"2023-06-01"),
        (b"anthropic-beta", b"context-1m-2025-08-07, claude-code-20250219"),
    )

    fields = relay_fields(_fields(body), FACTS, passed, notes)

    wanted = {
        "max_tokens": 5,
        "new": {"a": 1},
        "anthropic_version": "bedrock-2023-05-31",
        "anthropic_beta": ["context-1m-2025-08-07"],
    }
    assert wanted == json.loads(codec.join(fields))
    assert ["anthropic-beta claude-code-20250219", "metadata"] == [
        text.partition(":")[0] for text in notes.warnings
    ]


def test_betas_that_stand_in_the_body_go_on_as_they_came() -> None:
    notes = Notes()
    body = {"anthropic_beta": ["whatever"], "anthropic_version": "bedrock-2099-01-01"}

    fields = relay_fields(_fields(body), FACTS, ((b"anthropic-beta", b"other"),), notes)

    assert body == json.loads(codec.join(fields))


@pytest.mark.bug("K33")
def test_recorded_requests_are_written_again() -> None:
    for exchange in exchanges(CALL):
        wanted = exchange.request
        relayed = relay_fields(
            _fields({**wanted, "model": "m", "stream": True}), FACTS, (), Notes()
        )
        assert wanted == json.loads(codec.join(relayed))
        prompt = CALLER.read_request(_fields({**wanted, "model": "m"}), Notes())
        facts = Facts("bedrock", exchange.model, stream=True)
        written = json.loads(codec.join(INVOKE.write_request(prompt, facts, Notes())))
        for message in wanted["messages"]:
            if isinstance(message["content"], str):
                message["content"] = [{"type": "text", "text": message["content"]}]
        assert wanted == written
        assert exchange.path == INVOKE.path(facts).decode()


@pytest.mark.bug("K08", "K35")
def test_whole_answers_and_errors_are_those_of_messages_and_of_bedrock() -> None:
    body = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "Hi"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 2},
    }
    answer = INVOKE.read_whole(json.dumps(body).encode())
    said = INVOKE.read_error(400, b'{"message":"Input is too long for requested model."}', str)

    assert (Text("Hi"),) == answer.choices[0].parts
    assert "context" == INVOKE.error_class(said, 400)
    assert not INVOKE.grammar(FACTS).image_urls


@pytest.mark.bug("K34")
def test_who_asks_cannot_be_told_and_is_noted() -> None:
    notes = Notes()
    prompt = Prompt("openai_chat", (Message("user", (Text("Hi"),)),), user="u", service_tier="auto")
    fields = INVOKE.write_request(prompt, FACTS, notes)

    assert {"max_tokens", "messages", "anthropic_version"} == fields.keys()
    assert ["user", "service_tier"] == [text.partition(":")[0] for text in notes.warnings]


def test_what_comes_behind_the_end_of_the_message_is_surplus() -> None:
    end = _chunk({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
    body = end + _chunk({"type": "message_stop", "amazon-bedrock-invocationMetrics": {}})
    reader = INVOKE.reader(RULES)
    reader.feed(body)

    assert [] == reader.feed(_chunk({"type": "ping"}))
    assert 1 == reader.surplus
