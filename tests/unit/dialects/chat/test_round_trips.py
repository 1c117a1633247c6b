"""What can be said in chat completions comes back as it was, in requests, answers and streams (K02, K32, K37)."""

from dataclasses import replace
from random import Random

import pytest

from gateway.core import codec
from gateway.core.answer import Answer, Choice, Collector
from gateway.core.message import Citation, Prompt, Reasoning, Text
from gateway.dialects.base import StreamRules
from gateway.dialects.chat.side import ChatSide
from gateway.dialects.losses import Notes
from gateway.dialects.sides import Facts, Told
from tests.support.grammar import breaches
from tests.support.neutral import SETTINGS, Can, answer, cuts, events, prompt
from tests.support.rounds import rounds

SIDE = ChatSide()
ROUTED = Can(
    "openai_chat",
    user=frozenset(
        {"text", "image_url", "image_data", "image_detail", "audio", "file_data", "pdf_url"}
    ),
    assistant=frozenset({"text", "thinking", "call"}),
    tool=frozenset({"text", "image_url", "image_data"}),
    roles=("system", "developer"),
    alternates=False,
    empty_text=False,
    names=True,
    cached=frozenset({"text", "image", "file", "call", "result", "tool"}),
    settings=SETTINGS - {"custom_tools", "allowed", "summary"},
    no_arguments="{}",
)
OPENAI = replace(
    ROUTED,
    user=frozenset({"text", "image_url", "image_data", "image_detail", "audio", "file_id"}),
    assistant=frozenset({"text", "refusal", "audio_id", "call", "custom_call"}),
    tool=frozenset({"text"}),
    cached=frozenset(),
    settings=SETTINGS - {"budget", "metadata", "summary", "top_k"},
)
MISTRAL = replace(
    ROUTED,
    user=frozenset({"text", "image_url", "image_data"}),
    assistant=frozenset({"text", "thinking"}),
    tool=frozenset({"text"}),
    roles=("system",),
    names=False,
    cached=frozenset(),
    settings=frozenset({"temperature", "top_p", "stop", "tools", "max_tokens", "effort", "json"}),
)
TARGETS = {"openrouter": ROUTED, "openai": OPENAI, "mistral": MISTRAL}
ANSWERS = Can(
    "openai_chat",
    answer=frozenset(
        {
            "text",
            "cited",
            "thinking",
            "sealed",
            "redacted",
            "refusal",
            "call",
            "sealed_call",
            "custom_call",
        }
    ),
    finishes=("stop", "length", "content_filter", "refusal"),
    most_choices=3,
    logprobs=True,
    no_arguments="{}",
    maker="gemini",
    empty_text=False,
    citation=lambda rng: Citation("x", {}, url=f"https://a.b/{rng.random()}", title="A"),
)


def told(asked: bool = True) -> Told:
    return Told("req_0123", "m", 1, Prompt("openai_chat", (), include_usage=asked))


@pytest.mark.bug("K33", "K34")
@pytest.mark.parametrize("kind", TARGETS)
def test_a_request_comes_back_as_it_was(kind: str) -> None:
    for seed in rounds(150):
        asked = prompt(Random(seed), TARGETS[kind])
        if asked.reasoning == Reasoning(enabled=False):
            asked = codec.replace(asked, reasoning=Reasoning(enabled=False, effort="none"))
        notes = Notes()
        fields = SIDE.write_request(asked, Facts(kind, "some-model"), notes)
        read = SIDE.read_request(fields, Notes())

        # Streaming is said by who sends the request.
        read = codec.replace(read, stream=asked.stream, include_usage=asked.include_usage)
        assert read == asked, seed
        assert notes.warnings == [], seed


def same(whole: Answer) -> Answer:
    """Return an answer without what chat completions say otherwise: the provider's word, places in texts."""
    choices = [
        codec.replace(choice, native="", parts=tuple(map(uncited, choice.parts)))
        for choice in whole.choices
    ]
    return codec.replace(whole, choices=tuple(choices), extra={})


def uncited(part: object) -> object:
    if not isinstance(part, Text):
        return part
    addresses = tuple(Citation("", {}, each.url, each.title) for each in part.citations if each.url)
    return codec.replace(part, citations=addresses)


@pytest.mark.bug("K32", "K35")
def test_a_whole_answer_comes_back_as_it_was() -> None:
    for seed in rounds(400):
        whole = answer(Random(seed), ANSWERS)
        notes = Notes()

        read = SIDE.read_whole(SIDE.write_answer(whole, told(), notes))

        assert same(read) == same(whole), seed
        assert notes.warnings == [], seed


@pytest.mark.bug("K02", "K03", "K37")
def test_a_stream_comes_back_as_it_was_and_keeps_the_grammar() -> None:
    for seed in rounds(400):
        rng = Random(seed)
        whole = answer(rng, ANSWERS)
        spoken = events(rng, whole)
        asked = rng.random() < 0.5
        notes = Notes()
        writer = SIDE.writer(told(asked), notes)
        body = b"".join(writer.write([event]) for event in spoken)
        reader, collector = SIDE.reader(StreamRules(False, True)), Collector("openai_chat")
        for piece in cuts(rng, body):
            collector.add(reader.feed(piece))
        collector.add(reader.end(complete=True))

        expected = same(whole) if asked else codec.replace(same(whole), usage=None)
        assert same(collector.answer()) == expected, seed
        assert SIDE.writer(told(asked), notes).write(spoken) == body, seed
        assert writer.open_choices == []
        assert notes.warnings == [], seed
        counted = asked and whole.usage is not None
        assert breaches(body, asks_usage=counted, count=len(whole.choices)) == [], seed


@pytest.mark.bug("K37")
def test_a_stream_says_what_the_whole_answer_says() -> None:
    for seed in rounds(200):
        rng = Random(seed)
        whole = answer(rng, ANSWERS)
        body = SIDE.writer(told(), Notes()).write(events(rng, whole))
        collector = Collector("openai_chat")
        reader = SIDE.reader(StreamRules(False, True))
        collector.add([*reader.feed(body), *reader.end(complete=True)])
        plain = SIDE.read_whole(SIDE.write_answer(whole, told(), Notes()))

        assert collector.answer() == codec.replace(plain, extra={}), seed


def test_an_answer_without_anything_is_still_one() -> None:
    whole = Answer("x", "", "", (Choice(0, (), "stop"),))

    read = SIDE.read_whole(SIDE.write_answer(whole, told(), Notes()))

    assert read == Answer(
        "openai_chat", "chatcmpl-req_0123", "m", (Choice(0, (), "stop", "stop"),), None, 1
    )
