"""Random answers in Gemini's own words, in any pieces and at any cut, read as what they say."""

import json
from collections.abc import Iterator
from contextlib import suppress
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from typing import Any, cast

import pytest

from gateway.core import codec
from gateway.core.answer import (
    Answer,
    Choice,
    Collector,
    Delta,
    Event,
    Finished,
    PartBegan,
    PartEnded,
)
from gateway.core.errors import UpstreamError
from gateway.core.message import Part, Text, Thinking, ToolCall
from gateway.core.usage import Usage
from gateway.dialects.base import StreamRules
from gateway.dialects.gemini.side import GeminiTarget
from tests.support import neutral
from tests.support.recordings import is_object
from tests.support.rounds import rounds

GEMINI = GeminiTarget()
Json = dict[str, Any]
WORDS = {"stop": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY", "tool_calls": "STOP"}
CAN = neutral.Can(
    "gemini",
    answer=frozenset({"text", "thinking", "sealed", "call", "sealed_call"}),
    ordered=False,
    empty_text=False,
    maker="gemini",
    most_choices=3,
    usage=("cached", "reasoning", "audio_input", "audio_output"),
)


def as_parts(rng: Random, part: Part) -> Iterator[Json]:
    """Yield a part in the pieces in which a stream may bring it; a seal comes with the last words."""
    match part:
        case ToolCall():
            call: Json = {"id": part.id, "name": part.name}
            if part.arguments or rng.random() < 0.5:
                call["args"] = json.loads(part.arguments or "{}")
            yield {"functionCall": call, **seal(part.signature)}
        case Text() | Thinking():
            thought: Json = {"thought": True} if isinstance(part, Thinking) else {}
            at = rng.randrange(len(part.text)) if part.text and rng.random() < 0.7 else 0
            if at:
                yield {"text": part.text[:at], **thought}
            yield {"text": part.text[at:], **thought, **seal(part.signature)}
        case _:
            raise TypeError(part)


def seal(signature: str) -> Json:
    return {"thoughtSignature": signature} if signature else {}


def pieces(rng: Random, answer: Answer) -> list[Json]:
    """Return the events of a stream that tells an answer, its candidates interleaved."""
    lines = [list(told(rng, choice)) for choice in answer.choices]
    found: list[Json] = []
    while any(lines):
        line = rng.choice([line for line in lines if line])
        found.append({"candidates": [line.pop(0)]})
        if rng.random() < 0.3 and found[-1:] != found[:1]:
            last = found.pop()
            if found[-1]["candidates"][0]["index"] != last["candidates"][0]["index"]:
                found[-1]["candidates"] += last["candidates"]
            else:
                found.append(last)
    created = datetime.fromtimestamp(answer.created, UTC).isoformat()
    about = {"responseId": answer.id, "modelVersion": answer.model, "createTime": created}
    if answer.usage is not None:
        for each in found:
            each["usageMetadata"] = {"promptTokenCount": 1, "candidatesTokenCount": 1}
        found[-1]["usageMetadata"] = counts(answer.usage)
    return [{**each, **about} for each in found]


def told(rng: Random, choice: Choice) -> Iterator[Json]:
    shares = [piece for part in choice.parts for piece in as_parts(rng, part)]
    while shares:
        size = 1 + rng.randrange(2)
        yield {"index": choice.index, "content": {"role": "model", "parts": shares[:size]}}
        shares = shares[size:]
    end: Json = {"index": choice.index, "finishReason": WORDS[choice.finish]}
    yield {**end, **({"content": {"role": "model"}} if rng.random() < 0.5 else {})}


def counts(usage: Usage) -> Json:
    written: Json = {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": (usage.output or 0) - (usage.reasoning or 0),
        "thoughtsTokenCount": usage.reasoning,
        "cachedContentTokenCount": usage.cached,
    }
    for name, count in (
        ("promptTokensDetails", usage.audio_input),
        ("candidatesTokensDetails", usage.audio_output),
    ):
        if count is not None:
            written[name] = [{"modality": "AUDIO", "tokenCount": count}]
    return {name: count for name, count in written.items() if count is not None}


def framed(events: list[Json]) -> bytes:
    written = (json.dumps(each, ensure_ascii=False).encode() for each in events)
    return b"".join(b"data: " + each + b"\r\n\r\n" for each in written)


def plain(answer: Answer) -> Answer:
    """Return an answer without what each format says in its own way."""

    def part(each: Part) -> Part:
        if not isinstance(each, ToolCall):
            return each
        arguments = json.dumps(json.loads(each.arguments or "{}"))
        return codec.replace(each, arguments=arguments)

    choices = tuple(
        codec.replace(choice, native="", parts=tuple(part(each) for each in choice.parts))
        for choice in answer.choices
    )
    return codec.replace(answer, choices=choices)


def reader() -> Any:
    return GEMINI.reader(StreamRules(hide_usage=False, done_required=True, max_event_bytes=1 << 24))


@pytest.mark.bug("K01", "K03", "K37")
def test_random_streams_read_as_what_they_say_at_any_cut() -> None:
    rng = Random(29)
    for _ in rounds(120):
        answer = neutral.answer(rng, CAN)
        read, collector = reader(), Collector("gemini")
        seen: list[Event] = []
        for data in neutral.cuts(rng, framed(pieces(rng, answer))):
            seen += read.feed(data)
        seen += read.end(True)
        collector.add(seen)

        assert plain(answer) == plain(collector.answer())
        assert collector.ended
        check_grammar(seen)


@pytest.mark.bug("K37")
def test_random_answers_are_the_same_whole_and_in_a_stream() -> None:
    rng = Random(31)
    for _ in range(60):
        events = pieces(rng, neutral.answer(rng, CAN))
        read, collector = reader(), Collector("gemini")
        collector.add(read.feed(framed(events)))
        collector.add(read.end(True))

        assert collector.answer() == GEMINI.read_whole(json.dumps(events).encode())


@pytest.mark.bug("K04")
def test_random_streams_without_their_last_event_are_not_complete() -> None:
    rng = Random(37)
    for _ in range(60):
        events = pieces(rng, neutral.answer(rng, replace(CAN, most_choices=1)))
        read = reader()
        read.feed(framed(events[:-1]))
        with pytest.raises(UpstreamError) as cut:
            read.end(True)
        assert cut.value.code == "upstream_truncated"


ODD: tuple[Any, ...] = (None, True, -1, 1e308, 2**63, "", "x", [], {}, [None], {"a": None})


def spoilt(rng: Random, value: Any) -> Any:
    """Return a JSON value in which something is of another kind, or absent."""
    if rng.random() < 0.1 or not value or not isinstance(value, dict | list):
        return rng.choice(ODD)
    holder: Any = copy(cast("Any", value))
    keys: list[Any] = list(holder.keys()) if is_object(holder) else list(range(len(holder)))
    key = rng.choice(keys)
    if rng.random() < 0.1:
        del holder[key]
    else:
        holder[key] = spoilt(rng, holder[key])
    return holder


@pytest.mark.bug("K01", "K35")
def test_whatever_a_provider_sends_is_read_or_refused() -> None:
    rng = Random(43)
    read = 0
    for _ in rounds(500):
        body = json.dumps(spoilt(rng, pieces(rng, neutral.answer(rng, CAN))))
        with suppress(UpstreamError):
            read += GEMINI.read_whole(body.encode()).origin == "gemini"
        with suppress(UpstreamError):
            read += fed(body).origin == "gemini"
    assert read > len(rounds(500)) // 5


def fed(body: str) -> Answer:
    read, collector = reader(), Collector("gemini")
    collector.add(read.feed(b"data: " + body.encode() + b"\n\n"))
    collector.add(read.end(True))
    return collector.answer()


def check_grammar(events: list[Event]) -> None:
    """Check that each part begins and ends once, in order, and before its choice finishes."""
    open_parts: dict[int, int] = {}
    next_at: dict[int, int] = {}
    finished: set[int] = set()
    for event in events:
        match event:
            case PartBegan(choice, at):
                assert choice not in open_parts
                assert at == next_at.get(choice, 0)
                open_parts[choice], next_at[choice] = at, at + 1
            case Delta(choice, at):
                assert open_parts[choice] == at
            case PartEnded(choice, at):
                assert open_parts.pop(choice) == at
            case Finished(choice):
                assert choice not in open_parts
                assert choice not in finished
                finished.add(choice)
            case _:
                continue
