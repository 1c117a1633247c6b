"""Answers as Responses tells them: any stream in full grammar, and the same as the answer in one piece (K37)."""

import json
from random import Random
from typing import Any

import pytest

from gateway.core import codec
from gateway.core.answer import (
    Answer,
    Began,
    Choice,
    Collector,
    Counted,
    Delta,
    Ended,
    Event,
    Finish,
    Finished,
    PartBegan,
    PartEnded,
    Sealed,
    Weighed,
    events_of,
)
from gateway.core.message import (
    Audio,
    Citation,
    Image,
    Opaque,
    Part,
    Prompt,
    Refusal,
    Text,
    Thinking,
    ToolCall,
)
from gateway.core.usage import Usage
from gateway.dialects.base import StreamRules
from gateway.dialects.losses import Notes
from gateway.dialects.responses.caller import ResponsesCaller
from gateway.dialects.responses.dialect import OpenAIResponses
from gateway.dialects.responses.target import ResponsesTarget
from tests.support.grammar_responses import breaches, events_in, malformed
from tests.support.neutral import answer, events
from tests.support.responses_recordings import told
from tests.support.rounds import rounds
from tests.support.writing_responses import CAN

CALLER, DIALECT, TARGET = ResponsesCaller(), OpenAIResponses(), ResponsesTarget()
RULES = StreamRules(hide_usage=False, done_required=True)
Json = dict[str, Any]


def written(found: list[Event], *, sealed: bool = True) -> tuple[bytes, list[str]]:
    notes = Notes()
    writer = CALLER.writer(told(sealed=sealed), notes)
    out = b"".join(writer.write([event]) for event in found)
    assert list(writer.open_choices) == []
    return out, notes.warnings


def read(body: bytes) -> Answer:
    reader = TARGET.reader(RULES)
    collector = Collector(TARGET.name)
    collector.add(reader.feed(body))
    collector.add(reader.end(complete=True))
    return collector.answer()


def alike(one: Answer) -> tuple[object, ...]:
    """Return what two tellings of an answer have in common; each writer makes its own ids."""
    (choice,) = one.choices
    parts = [_bare(part) for part in choice.parts]
    tokens = [token["token"] for token in choice.logprobs]
    usage = one.usage and Usage(*(count or 0 for count in one.usage[:5]))
    return one.model, parts, choice.finish, tokens, usage


def _bare(part: Part) -> Part:
    match part:
        case ToolCall():
            return codec.replace(part, item_id="")
        case Thinking():
            return codec.replace(part, id="")
        case _:
            return part


def without_empty(whole: Answer) -> Answer:
    """Return an answer without what Responses does not tell: texts and thoughts that say nothing."""
    (choice,) = whole.choices
    kept = tuple(
        part
        for part in choice.parts
        if not isinstance(part, Text | Refusal | Thinking)
        or part.text
        or (isinstance(part, Thinking) and part.signature)
    )
    return codec.replace(whole, choices=(codec.replace(choice, parts=kept),))


@pytest.mark.bug("K37", "B122", "B123")
def test_any_stream_is_in_full_grammar_and_says_what_the_answer_says() -> None:
    rng = Random(37)
    for _ in rounds(60):
        whole = without_empty(answer(rng, CAN))
        told_so = events(rng, codec.replace(whole, choices=(_unweighed(whole.choices[0]),)))
        out, warnings = written(told_so)

        assert breaches(out) == []
        assert warnings == []
        expected = codec.replace(whole, choices=(_unweighed(whole.choices[0]),))
        assert alike(read(out)) == alike(_finished(expected))


def _unweighed(choice: Choice) -> Choice:
    return codec.replace(choice, logprobs=())


def _finished(whole: Answer) -> Answer:
    """Return an answer with the finish that reads back: a refusal is what was refused in words, else a filter."""
    (choice,) = whole.choices
    words = any(isinstance(part, Refusal) for part in choice.parts)
    calls = any(isinstance(part, ToolCall) for part in choice.parts)
    finish = choice.finish
    if finish == "refusal" and not words:
        finish = "content_filter"
    if finish == "stop" and words and not calls:
        finish = "refusal"
    return codec.replace(whole, choices=(codec.replace(choice, finish=finish),))


@pytest.mark.bug("K37")
def test_any_whole_answer_is_well_formed_and_reads_back() -> None:
    rng = Random(38)
    for _ in rounds(80):
        whole = without_empty(answer(rng, CAN))
        if not any(isinstance(part, Text) for part in whole.choices[0].parts):
            whole = codec.replace(whole, choices=(_unweighed(whole.choices[0]),))
        notes = Notes()
        body = CALLER.write_answer(whole, told(), notes)

        assert malformed(body) == []
        assert notes.warnings == []
        assert alike(TARGET.read_whole(body)) == alike(_finished(whole))


@pytest.mark.bug("K37")
def test_a_stream_ends_with_the_answer_in_one_piece() -> None:
    rng = Random(39)
    for _ in rounds(50):
        whole = codec.replace(answer(rng, CAN))
        whole = codec.replace(whole, choices=(_unweighed(whole.choices[0]),))
        out, _ = written(events(rng, whole))
        plain = CALLER.write_answer(whole, told(), Notes())

        last = events_in(out)[-1]["response"]
        assert _without_ids(last) == _without_ids(json.loads(plain))


def _without_ids(response: Json) -> Json:
    items = [
        {k: v for k, v in item.items() if k != "id" or item["type"] == "web_search_call"}
        for item in response["output"]
    ]
    return {**response, "id": "", "completed_at": 0, "output": items}


@pytest.mark.bug("K37", "K03")
def test_parts_that_overlap_are_told_one_after_another() -> None:
    one, two = ToolCall("call_1", "a"), ToolCall("call_2", "b")
    out, _ = written(
        [
            Began("id", "m"),
            PartBegan(0, 0, one),
            PartBegan(0, 1, two),
            Delta(0, 1, '{"x"'),
            Delta(0, 0, '{"y"'),
            Delta(0, 1, ":1}"),
            PartEnded(0, 1),
            Delta(0, 0, ":2}"),
            PartEnded(0, 0),
            Finished(0, "tool_calls"),
            Ended(),
        ]
    )

    assert breaches(out) == []
    calls = read(out).choices[0].parts
    assert [part.arguments for part in calls if isinstance(part, ToolCall)] == [
        '{"y":2}',
        '{"x":1}',
    ]


@pytest.mark.bug("K35")
@pytest.mark.parametrize(
    ("finish", "parts", "status", "reason"),
    [
        ("stop", (Text("Hello"),), "completed", None),
        ("stop_sequence", (Text("Hello"),), "completed", None),
        ("tool_calls", (ToolCall("c", "f", "{}"),), "completed", None),
        ("refusal", (Refusal("No."),), "completed", None),
        ("refusal", (), "incomplete", "content_filter"),
        ("content_filter", (), "incomplete", "content_filter"),
        ("length", (Text("Hel"),), "incomplete", "max_output_tokens"),
        ("pause", (Text("Wait"),), "completed", None),
    ],
)
def test_every_end_is_told(
    finish: Finish, parts: tuple[Part, ...], status: str, reason: str | None
) -> None:
    whole = Answer("x", "id", "m", (Choice(0, parts, finish),), Usage(1, 2))
    notes = Notes()

    found = json.loads(CALLER.write_answer(whole, told(), notes))

    assert found["status"] == status
    assert found["incomplete_details"] == (reason and {"reason": reason})
    assert bool(notes.warnings) is (finish == "pause")
    assert [item["status"] for item in found["output"]] == [status] * len(parts)
    out, _ = written(events_of(whole))
    assert breaches(out) == []
    assert events_in(out)[-1]["type"] == f"response.{status}"


@pytest.mark.bug("K35")
def test_a_call_that_was_cut_is_not_complete() -> None:
    whole = Answer("x", "", "m", (Choice(0, (ToolCall("c", "f", '{"a":'),), "length"),))

    found = json.loads(CALLER.write_answer(whole, told(), Notes()))

    assert found["output"][0]["status"] == "incomplete"
    assert TARGET.read_whole(json.dumps(found).encode()).choices[0].finish == "length"


@pytest.mark.bug("K32")
def test_foreign_seals_are_wrapped_where_they_are_asked_for() -> None:
    parts = (
        Thinking("Hmm", signature="sig", maker="anthropic"),
        Thinking(redacted="r", maker="anthropic"),
    )
    whole = Answer("x", "", "m", (Choice(0, (*parts, Text("Hi")), "stop"),))

    asked = json.loads(CALLER.write_answer(whole, told(), Notes()))["output"]
    unasked = json.loads(CALLER.write_answer(whole, told(sealed=False), Notes()))["output"]

    assert [item["type"] for item in asked] == ["reasoning", "reasoning", "message"]
    assert all(item["encrypted_content"].startswith("gw1.anthropic.") for item in asked[:2])
    assert asked[0]["content"] == [{"type": "reasoning_text", "text": "Hmm"}]
    assert [item["type"] for item in unasked] == ["reasoning", "message"]
    assert "encrypted_content" not in unasked[0]


def test_thinking_is_a_summary_where_the_caller_asks_for_summaries() -> None:
    whole = Answer("x", "", "m", (Choice(0, (Thinking("Hmm"),), "stop"),))
    out = CALLER.writer(told(summary="auto"), Notes()).write(events_of(whole))

    assert breaches(out) == []
    (item,) = events_in(out)[-1]["response"]["output"]
    assert item["summary"] == [{"type": "summary_text", "text": "Hmm"}]


def test_pieces_of_a_summary_stay_pieces_in_a_whole_answer() -> None:
    thinking = Thinking("One\n\nTwo", summary=("One", "Two"))
    whole = Answer("x", "", "m", (Choice(0, (thinking,), "stop"),))

    (item,) = json.loads(CALLER.write_answer(whole, told(), Notes()))["output"]

    assert [piece["text"] for piece in item["summary"]] == ["One", "Two"]


@pytest.mark.bug("K32", "B108")
def test_the_seal_of_a_call_follows_it_as_an_item_and_comes_back_on_it() -> None:
    call = ToolCall("call_1", "f", "{}", signature="sig", maker="gemini")
    text = Text("Hi", signature="sig2", maker="gemini")
    whole = Answer("x", "", "m", (Choice(0, (text, call), "tool_calls"),))
    out, _ = written(events_of(whole))
    assert breaches(out) == []

    output = events_in(out)[-1]["response"]["output"]
    fields = {"input": codec.raw([*output, _result("call_1")]), "model": codec.raw("m")}
    prompt = CALLER.read_request(fields, Notes())

    assert [_bare(part) for part in prompt.messages[0].parts] == [text, call]


def _result(call: str) -> Json:
    return {"type": "function_call_output", "call_id": call, "output": "done"}


@pytest.mark.bug("K34")
def test_what_cannot_be_told_is_named() -> None:
    parts = (
        Opaque("anthropic_messages", "web_search_tool_result", {}),
        Audio(data="AAAA", format="wav"),
        Text("Hi", citations=(Citation("anthropic_messages", {"a": 1}),)),
    )
    whole = Answer("x", "", "m", (Choice(0, parts, "stop"),))
    notes = Notes()

    found = json.loads(CALLER.write_answer(whole, told(), notes))

    assert [item["type"] for item in found["output"]] == ["message"]
    assert len(notes.warnings) == 3


def test_a_picture_that_a_model_made_is_an_item() -> None:
    whole = Answer("x", "", "m", (Choice(0, (Image("image/png", "AAAA"),), "stop"),))
    body = CALLER.write_answer(whole, told(), Notes())

    assert malformed(body) == []
    (item,) = json.loads(body)["output"]
    assert (item["type"], item["result"], item["output_format"]) == (
        "image_generation_call",
        "AAAA",
        "png",
    )


def test_what_is_said_of_tokens_goes_to_the_text() -> None:
    weight: Json = {"token": "Hé", "logprob": -0.5, "bytes": None, "top_logprobs": []}
    out, warnings = written(
        [
            Began("id", "m"),
            PartBegan(0, 0, Text("")),
            Weighed(0, (weight,)),
            Delta(0, 0, "Hé"),
            PartEnded(0, 0),
            Weighed(0, (weight,)),
            Finished(0, "stop"),
            Counted(Usage(1, 1)),
            Ended(),
        ]
    )

    assert breaches(out) == []
    assert warnings == []
    (item,) = events_in(out)[-1]["response"]["output"]
    tokens = item["content"][0]["logprobs"]
    assert [token["bytes"] for token in tokens] == [[72, 195, 169]] * 2


@pytest.mark.bug("K37", "K04")
def test_a_stream_may_be_ended_anywhere_in_full_grammar() -> None:
    rng = Random(40)
    for _ in rounds(40):
        found = events(rng, answer(rng, CAN))
        writer = CALLER.writer(told(), Notes())
        out = writer.write(found[: rng.randrange(1, len(found))])
        out += DIALECT.cut_short("responses", b"", writer.open_choices, "the budget is spent")

        assert breaches(out) == []
        last = events_in(out)[-1]
        assert last["type"] == "response.incomplete"
        assert last["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
        assert last["response"]["gateway"] == {"warnings": ["the budget is spent"]}


def test_a_response_repeats_its_request() -> None:
    fields = {
        "model": "m",
        "instructions": "Be kind.",
        "input": "Hello",
        "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}],
        "tool_choice": {"type": "function", "name": "f"},
        "parallel_tool_calls": False,
        "max_output_tokens": 99,
        "temperature": 0.5,
        "text": {"format": {"type": "json_object"}, "verbosity": "low"},
        "metadata": {"a": "b"},
        "prompt_cache_key": "key",
        "reasoning": {"effort": "low"},
        "truncation": "auto",
        "store": False,
    }
    raw = {name: codec.raw(value) for name, value in fields.items()}
    prompt = CALLER.read_request(raw, Notes())
    whole = Answer("x", "", "", (Choice(0, (Text("Hi"),), "stop"),))

    body = CALLER.write_answer(whole, told(prompt), Notes())

    assert malformed(body) == []
    found = json.loads(body)
    same = set(fields) - {"model", "input", "reasoning"}
    assert {name: found[name] for name in same} == {name: fields[name] for name in same}
    assert found["reasoning"] == {"effort": "low", "summary": None}
    assert found["model"] == "some-model"


def test_an_answer_that_nobody_was_asked_for_is_well_formed() -> None:
    made = DIALECT.answer("responses", "m", "No.", "req_1")

    assert malformed(made.body) == []
    assert DIALECT.read_answer("responses", made.body) == Usage(0, 0, 0, 0, 0)
    assert breaches(DIALECT.synthesise("responses", made.body, include_usage=True)) == []


def test_a_seal_that_is_told_late_is_kept() -> None:
    out, _ = written(
        [
            Began("id", "m"),
            PartBegan(0, 0, Thinking()),
            Sealed(0, 0, "sig", "openai"),
            PartEnded(0, 0),
            Finished(0, "stop"),
            Ended(),
        ]
    )

    assert breaches(out) == []
    assert events_in(out)[-1]["response"]["output"][0]["encrypted_content"] == "sig"


def test_no_prompt_needs_tools_or_settings() -> None:
    prompt = Prompt("openai_chat", ())
    whole = Answer("x", "", "", (Choice(0, (), "stop"),))

    assert malformed(CALLER.write_answer(whole, told(prompt), Notes())) == []


@pytest.mark.bug("K37", "B123")
@pytest.mark.parametrize(("said", "shown"), [("flex", "flex"), ("on_demand", "auto")])
def test_no_word_of_another_format_stands_in_a_field_of_few_words(said: str, shown: str) -> None:
    """Groq's `on_demand` would fail clients that check types."""
    whole = Answer(
        "openai_chat", "id", "m", (Choice(0, (Text("Hi"),), "stop"),), extra={"service_tier": said}
    )

    body, _ = written(list(events_of(whole)))

    assert breaches(body) == []
    assert events_in(body)[-1]["response"]["service_tier"] == shown
