"""Every recorded chat answer is read as what its provider said, plain and cut anywhere (K01, K04, K07, K35)."""

from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from gateway.core import codec
from gateway.core.answer import Answer, Choice, Collector, Event
from gateway.core.errors import UpstreamError
from gateway.core.message import Refusal, Text, Thinking, ToolCall
from gateway.dialects.base import StreamRules, unredacted
from gateway.dialects.chat.side import ChatSide
from gateway.dialects.chat.stream_reader import ChatReader
from gateway.providers.registry import PROVIDERS
from tests.support.folder import folder
from tests.support.neutral import cuts
from tests.support.recordings import Recording, event_ends, load
from tests.support.replayed_directly import arguments
from tests.support.same import FINISHES, calls_of, has_failed, limited, says
from tests.support.shared import absent

CHATS = [each for each in load() if each.endpoint == "chat" and each.status < 400]
PLAIN = [each for each in CHATS if not each.is_stream and not has_failed(each)]
STREAMS = [each for each in CHATS if each.is_stream]


def name(recording: Recording) -> str:
    return recording.id


def rules(recording: Recording) -> StreamRules:
    row = PROVIDERS.get(recording.provider)
    return StreamRules(
        hide_usage=False,
        done_required=row.quirks.done_required if row else False,
        reasoning_outside=bool(row) and row.quirks.reasoning == "outside",
    )


def whole(recording: Recording) -> Answer:
    outside = rules(recording).reasoning_outside
    return ChatSide().read_whole(recording.body, unredacted, reasoning_outside=outside)


def collected(recording: Recording, pieces: list[bytes]) -> tuple[Collector, ChatReader]:
    reader = ChatReader(rules(recording))
    collector = Collector("openai_chat")
    for piece in pieces:
        collector.add(reader.feed(piece))
    collector.add(reader.end(complete=True))
    return collector, reader


def words(choice: Choice, kind: type[Text] | type[Thinking] | type[Refusal]) -> str:
    return "".join(part.text for part in choice.parts if isinstance(part, kind))


def calls(choice: Choice) -> list[dict[str, Any]]:
    return [
        {"name": part.name, "arguments": read_arguments(part), "id": part.id}
        for part in choice.parts
        if isinstance(part, ToolCall)
    ]


def read_arguments(call: ToolCall) -> Any:
    return call.arguments if call.custom else arguments(call.arguments)


def assert_expected(answer: Answer, recording: Recording) -> None:
    """Check an answer against what the provider said."""
    expect = recording.expect
    first = answer.choices[0]
    assert words(first, Text) == (expect.get("text") or "")
    assert words(first, Thinking) == (expect.get("reasoning_text") or "")
    assert words(first, Refusal) == (expect.get("refusal") or "")
    wanted = calls_of(expect)
    assert [limited(*pair) for pair in zip(calls(first), wanted, strict=True)] == wanted
    assert first.native == expect["finish_reason"]
    assert len(answer.choices) == expect.get("n_choices", 1)
    if "choices_text" in expect:
        assert [words(choice, Text) for choice in answer.choices] == expect["choices_text"]
    assert len(first.logprobs) == expect.get("logprobs", len(first.logprobs))
    word = FINISHES.get(expect["finish_reason"])
    if expect.get("refusal"):
        assert first.finish == "refusal"
    elif expect["tool_calls"] and word != "length":
        assert first.finish == "tool_calls"
    elif word is not None:
        assert first.finish == word
    assert answer.model == expect.get("model", answer.model)
    counted = expect.get("usage")
    if counted is None:
        assert answer.usage is None
        return
    assert answer.usage is not None
    assert answer.usage.input == counted["input_total"]
    # What was thought may be counted beside the output, and in the total.
    beside = counted.get("total", 0) - counted["input_total"]
    assert answer.usage.output in {counted["output_total"], beside}
    for kind in ("cached", "cache_write", "reasoning"):
        if counted.get(kind):
            assert getattr(answer.usage, kind) == counted[kind]


def test_there_are_recordings() -> None:
    if folder() is None:
        absent("../shared with the recordings of providers")
    assert PLAIN
    assert STREAMS


@pytest.mark.bug("K35")
@pytest.mark.parametrize("recording", PLAIN, ids=name)
def test_a_plain_answer_is_read_as_the_provider_said(recording: Recording) -> None:
    assert_expected(whole(recording), recording)


def ways_to_cut(body: bytes) -> Iterator[list[bytes]]:
    yield [body]
    for size in (1, 7):
        yield [body[at : at + size] for at in range(0, len(body), size)]
    for seed in range(3):
        yield cuts(Random(seed), body)
    ends = [0, *event_ends(body), len(body)]
    yield [body[start:end] for start, end in pairwise(ends)]


@pytest.mark.bug("K01", "K07", "K35")
@pytest.mark.parametrize("recording", STREAMS, ids=name)
def test_a_stream_is_read_as_the_provider_said_however_it_is_cut(recording: Recording) -> None:
    first: tuple[Answer, Any] | None = None
    for pieces in ways_to_cut(recording.body):
        collector, reader = collected(recording, pieces)
        if "error" in recording.expect:
            said = recording.expect["error"]
            assert reader.error is not None
            assert says(reader.error.message, said)
            assert not collector.answer().choices
            assert not collector.ended
        else:
            assert reader.error is None
            assert collector.ended
            assert_expected(collector.answer(), recording)
        assert reader.broken == reader.surplus == 0
        seen = (collector.answer(), reader.frames)
        assert seen == (first or seen)
        first = seen


@pytest.mark.bug("K04")
@pytest.mark.parametrize("recording", STREAMS, ids=name)
def test_a_stream_that_is_cut_is_never_complete(recording: Recording) -> None:
    body = recording.body
    done = body.rfind(b"data: [DONE]")
    for end in [0, *event_ends(body)]:
        reader = ChatReader(rules(recording))
        events: list[Event] = reader.feed(body[:end])
        if reader.error is not None or 0 <= done < end:
            assert reader.end(complete=True) == []
            continue
        assert not [event for event in events if type(event).__name__ in {"Ended", "Finished"}]
        with pytest.raises(UpstreamError) as cut:
            reader.end(complete=False)
        assert cut.value.code == "upstream_truncated"


@pytest.mark.bug("K37")
@pytest.mark.parametrize("recording", PLAIN, ids=name)
def test_a_plain_answer_told_as_a_stream_is_the_same_answer(recording: Recording) -> None:
    """Hand over what was said in one chunk for each choice: the form in which a stream tells it."""
    said = codec.decode(recording.body)
    for choice in said["choices"]:
        choice["delta"] = choice.pop("message", {})
    chunk = codec.encode(said)
    collector, _ = collected(recording, [b"data: " + chunk + b"\n\ndata: [DONE]\n\n"])

    assert collector.answer() == codec.replace(whole(recording), extra={})
