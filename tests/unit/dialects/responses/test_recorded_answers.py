"""Every recorded answer of the Responses format says the same: read, relayed, made a stream, written again."""

import json
import re
from collections.abc import Iterable
from itertools import groupby

import pytest

from gateway.core import codec
from gateway.core.answer import Answer, Collector
from gateway.core.errors import UpstreamError
from gateway.core.message import Opaque, Part, Refusal, Text, Thinking, ToolCall
from gateway.core.usage import Usage
from gateway.dialects.base import StreamRules
from gateway.dialects.losses import Notes
from gateway.dialects.responses.caller import ResponsesCaller
from gateway.dialects.responses.dialect import OpenAIResponses
from gateway.dialects.responses.target import ResponsesTarget
from tests.support.grammar_responses import breaches, events_in, malformed
from tests.support.native_recordings import Exchange, Json
from tests.support.recordings import event_ends
from tests.support.replayed_directly import arguments
from tests.support.responses_recordings import cuts, ids, recorded, told
from tests.support.same import FINISHES, calls_of, has_failed, is_page, limited, says


def is_failed_word(exchange: Exchange) -> bool:
    """Tell whether an answer failed without saying how."""
    return has_failed(exchange) and "error" not in exchange.expect


RULES = StreamRules(hide_usage=False, done_required=True)
CALLER, DIALECT, TARGET = ResponsesCaller(), OpenAIResponses(), ResponsesTarget()
TYPED_BYTES = 60_000
NEWER = re.compile(r"outside of an item|partial_image|the content of an item is not its parts")
"""Events that servers send besides, and texts of reasoning that stand nowhere but in deltas."""
STREAMS = [each for each in recorded(stream=True) if not is_failed_word(each)]
WHOLE = [each for each in recorded(stream=False) if not has_failed(each)]
GOOD_STREAMS = [each for each in STREAMS if "error" not in each.expect]
REFUSALS = recorded(stream=False, good=False)

pytestmark = pytest.mark.skipif(not WHOLE, reason="absent: the recordings of providers")


def read(pieces: Iterable[bytes]) -> Answer:
    reader = TARGET.reader(RULES)
    collector = Collector(TARGET.name)
    for piece in pieces:
        collector.add(reader.feed(piece))
    collector.add(reader.end(complete=True))
    assert collector.ended
    assert (0, 0, None) == (reader.broken, reader.surplus, reader.error)
    return collector.answer()


def kind_of(part: Part) -> str:
    match part:
        case Thinking():
            return "reasoning"
        case ToolCall():
            return "custom_tool_call" if part.custom else "function_call"
        case Opaque():
            return part.kind
        case _:
            return "message"


def check(found: Answer, expect: Json) -> None:
    (choice,) = found.choices
    parts = choice.parts
    assert expect.get("model", found.model) == found.model
    assert expect["text"] == "".join(p.text for p in parts if isinstance(p, Text))
    assert expect.get("refusal", "") == "".join(p.text for p in parts if isinstance(p, Refusal))
    thought = "".join(p.text for p in parts if isinstance(p, Thinking))
    assert "".join(expect.get("reasoning_text", "").split()) == "".join(thought.split())
    calls = [
        {
            "name": part.name,
            "arguments": part.arguments if part.custom else arguments(part.arguments),
            "id": part.id,
        }
        for part in parts
        if isinstance(part, ToolCall)
    ]
    wanted = calls_of(expect)
    assert [limited(*pair) for pair in zip(calls, wanted, strict=True)] == wanted
    kinds = [kind for kind, _ in groupby(map(kind_of, parts))]
    told_kinds = [kind for kind, _ in groupby(expect.get("output_items", kinds))]
    if (
        "reasoning" not in kinds and not thought
    ):  # an item without a word and without a seal says nothing
        told_kinds = [kind for kind in told_kinds if kind != "reasoning"]
    assert kinds == told_kinds
    assert expect["finish_reason"] == choice.native
    word = FINISHES[choice.native]
    assert choice.finish in ({"tool_calls", word} if calls else {word, "refusal"})
    check_usage(found.usage, expect.get("usage"))


def check_usage(found: Usage | None, expect: Json | None) -> None:
    if not expect:
        return
    assert found is not None
    for name in {"input", "output", "cached", "cache_write", "reasoning"} & expect.keys():
        assert getattr(found, name) == expect[name] or not expect[name]


@pytest.mark.bug("K34", "K35")
@pytest.mark.parametrize("exchange", WHOLE, ids=ids)
def test_a_whole_answer_says_what_the_provider_said(exchange: Exchange) -> None:
    check(TARGET.read_whole(exchange.body), exchange.expect)
    check_usage(DIALECT.read_answer("responses", exchange.body), exchange.expect.get("usage"))


@pytest.mark.bug("K01", "K34", "K35")
@pytest.mark.parametrize("exchange", GOOD_STREAMS, ids=ids)
def test_a_stream_says_what_the_provider_said_however_it_is_cut(exchange: Exchange) -> None:
    first: Answer | None = None
    for pieces in cuts(exchange):
        answer = read(pieces)
        if first is None:
            first = answer
            check(answer, exchange.expect)
        assert answer == first


@pytest.mark.bug("K37")
@pytest.mark.parametrize("exchange", GOOD_STREAMS, ids=ids)
def test_a_stream_and_its_last_response_are_the_same_answer(exchange: Exchange) -> None:
    last = events_in(exchange.body)[-1]["response"]

    whole = TARGET.read_whole(json.dumps(last).encode())

    assert without_seals(whole) == without_seals(read([exchange.body]))


def without_seals(answer: Answer) -> list[Part]:
    """Return the parts; OpenAI seals the same reasoning anew in each event."""
    bare = (
        Thinking(part.text, summary=part.summary) if isinstance(part, Thinking) else part
        for part in answer.choices[0].parts
    )
    return list(bare)


@pytest.mark.bug("K01")
@pytest.mark.parametrize("exchange", STREAMS, ids=ids)
def test_a_relayed_stream_arrives_byte_for_byte_however_it_is_cut(exchange: Exchange) -> None:
    failed = "error" in exchange.expect
    ends = [exchange.body.find(mark) for mark in (b"event: error", b"event: response.failed")]
    cut = min(end for end in ends if end >= 0) if failed else len(exchange.body)
    for pieces in cuts(exchange):
        watcher = DIALECT.watch("responses", RULES)
        out = b"".join(watcher.feed(piece) for piece in pieces) + watcher.end(complete=True)

        assert out == exchange.body[:cut]
        assert watcher.done is not failed
        if not failed:
            check_usage(watcher.usage, exchange.expect.get("usage"))
            assert watcher.error is None
            assert watcher.events == len(events_in(exchange.body))
    found = breaches(exchange.body, relayed=True)
    assert [each for each in found if not NEWER.search(each)] == []


@pytest.mark.bug("K04", "B127")
@pytest.mark.parametrize("exchange", STREAMS, ids=ids)
def test_a_stream_that_was_cut_is_never_a_success(exchange: Exchange) -> None:
    ends = event_ends(exchange.body)
    for end in [*ends[:4], *ends[-4:]]:
        if b'"response.completed"' in exchange.body[:end]:
            continue
        for complete in (True, False):
            watcher = DIALECT.watch("responses", RULES)
            reader = TARGET.reader(RULES)
            watcher.feed(exchange.body[:end])
            reader.feed(exchange.body[:end])
            for each in (watcher, reader):
                if each.error is None:
                    with pytest.raises(UpstreamError, match="ended before it was complete"):
                        each.end(complete)


@pytest.mark.bug("K37", "B122", "B123")
@pytest.mark.parametrize("exchange", GOOD_STREAMS, ids=ids)
def test_a_stream_that_is_read_and_written_again_is_in_full_grammar(exchange: Exchange) -> None:
    notes = Notes()
    reader = TARGET.reader(RULES)
    writer = CALLER.writer(told(summary="auto"), notes)
    size = 997
    out = b"".join(
        writer.write(reader.feed(exchange.body[at : at + size]))
        for at in range(0, len(exchange.body), size)
    )

    assert breaches(out, typed=len(out) < TYPED_BYTES) == []
    assert notes.warnings == []
    again = read([out])
    assert again.choices[0].finish == read([exchange.body]).choices[0].finish
    assert bare(again) == bare(read([exchange.body]))


def bare(answer: Answer) -> list[Part]:
    """Return the parts without the ids of calls' items, which each writer makes, and all thoughts in one form."""
    found: list[Part] = []
    for part in answer.choices[0].parts:
        match part:
            case ToolCall():
                found.append(ToolCall(part.id, part.name, part.arguments, custom=part.custom))
            case Thinking():
                found.append(codec.replace(part, summary=()))
            case _:
                found.append(part)
    return found


@pytest.mark.bug("K37", "B123")
@pytest.mark.parametrize("exchange", WHOLE, ids=ids)
def test_a_whole_answer_that_is_written_again_is_well_formed(exchange: Exchange) -> None:
    answer = TARGET.read_whole(exchange.body)
    notes = Notes()
    body = CALLER.write_answer(answer, told(summary="auto"), notes)

    if malformed(exchange.body) == []:
        assert malformed(body) == []
    assert notes.warnings == []
    again = TARGET.read_whole(body)
    assert bare(again) == bare(answer)
    assert (again.choices[0].finish, again.model) == (answer.choices[0].finish, answer.model)
    assert json.loads(body)["store"] is False


@pytest.mark.bug("K37")
@pytest.mark.parametrize("exchange", WHOLE, ids=ids)
def test_a_whole_answer_becomes_a_stream_that_says_the_same(exchange: Exchange) -> None:
    stream = DIALECT.synthesise("responses", exchange.body, include_usage=True)

    assert breaches(stream, typed=False) == []
    check(read([stream]), exchange.expect)
    answered = json.loads(exchange.body)
    last = events_in(stream)[-1]["response"]
    for item in (*answered["output"], *last["output"]):
        item["status"] = item.get("status") or "completed"
    assert last == answered


@pytest.mark.bug("K35")
@pytest.mark.parametrize("exchange", STREAMS, ids=ids)
def test_a_failure_inside_of_a_stream_is_told(exchange: Exchange) -> None:
    expect = exchange.expect.get("error")
    reader = TARGET.reader(RULES)
    for pieces in cuts(exchange):
        reader = TARGET.reader(RULES)
        for piece in pieces:
            reader.feed(piece)
        if expect is None:
            assert reader.error is None
            continue
        assert reader.error is not None
        assert reader.error.code == expect.get("code", reader.error.code)
        assert says(reader.error.message, expect)


@pytest.mark.bug("K08")
@pytest.mark.parametrize("exchange", REFUSALS, ids=ids)
def test_what_a_provider_says_is_read_whatever_its_shape(exchange: Exchange) -> None:
    said = TARGET.read_error(exchange.status, exchange.body, lambda text: text)

    wanted = exchange.expect["error"]
    assert says(said.message, wanted) or is_page(exchange)
    assert said.code == wanted.get("code")
    context = wanted.get("code") == "context_length_exceeded"
    assert (TARGET.error_class(said, exchange.status) == "context") is context
