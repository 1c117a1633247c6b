"""Requests and answers of any format pass: what is sent would be accepted, what comes back keeps the grammar."""

import json
from dataclasses import replace
from random import Random

import pytest

from gateway.core import codec
from gateway.core.answer import Finish
from gateway.core.errors import InputError
from gateway.core.message import Prompt
from gateway.dialects.fit.forced_form import as_call
from gateway.dialects.fit.prompt import fit
from gateway.dialects.losses import Notes
from gateway.dialects.messages.sides import MessagesCaller, MessagesTarget
from gateway.dialects.sides import Facts, Told
from tests.support.grammar_messages import breaches, collected
from tests.support.neutral import Can, answer, events, prompt
from tests.support.rounds import rounds
from tests.support.strict_messages import refusals

CALLER = MessagesCaller()
TARGET = MessagesTarget()
TOLD = Told("req_1", "m", 0, Prompt("anthropic_messages", ()))
ENDS: tuple[Finish, ...] = (
    "stop", "length", "content_filter", "refusal", "stop_sequence", "pause",
)  # fmt: skip
OTHER = Can(
    origin="openai_chat",
    user=frozenset({"text", "image_url", "image_data", "image_detail", "file_data", "file_text"}),
    assistant=frozenset(
        {"text", "thinking", "sealed", "redacted", "refusal", "call", "sealed_call", "cited"}
    ),
    tool=frozenset({"text", "image_data"}),
    answer=frozenset(
        {
            "text", "cited", "thinking", "sealed", "redacted", "refusal", "call", "sealed_call",
            "custom_call", "opaque", "image_url", "audio",
        }
    ),
    roles=("system", "developer"),
    alternates=False,
    ordered=False,
    one_text=False,
    names=True,
    errors=True,
    cached=frozenset({"text", "image", "file", "call", "result", "tool"}),
    maker="gemini",
    finishes=ENDS,
    most_choices=3,
    logprobs=True,
)  # fmt: skip
MODELS = ("claude-3-5-haiku", "claude-sonnet-4-5", "claude-opus-4-6", "claude-opus-4-8", "other")


@pytest.mark.bug("K33", "K34", "B103", "B105")
@pytest.mark.parametrize("seed", rounds(80))
def test_what_is_sent_for_any_request_would_be_accepted(seed: int) -> None:
    rng = Random(seed)
    facts = Facts("anthropic", rng.choice(MODELS), rng.choice((None, 900, 8192)))
    grammar = TARGET.grammar(facts)
    notes = Notes()
    asked = prompt(rng, replace(OTHER, settings=OTHER.settings - {"n"}))
    refused = ""
    try:
        asked, _ = as_call(asked, grammar, notes)
    except InputError as error:
        refused = error.param or "nothing"
    if refused:
        assert refused == "response_format"
        return
    fields = TARGET.write_request(fit(asked, grammar, notes), facts, notes)

    assert [] == refusals(json.loads(codec.join(fields)), prefill=grammar.prefill)


@pytest.mark.bug("K35", "K37", "B004")
@pytest.mark.parametrize("seed", rounds(80))
def test_what_any_answer_becomes_keeps_the_grammar(seed: int) -> None:
    rng = Random(seed)
    whole = answer(rng, OTHER)
    notes = Notes()
    written = json.loads(CALLER.write_answer(whole, TOLD, notes))
    stream = CALLER.writer(TOLD, notes).write(events(rng, whole))

    assert [] == breaches(stream)
    told = [block["type"] for block in collected(stream)]
    assert sorted(told) == sorted(block["type"] for block in written["content"])
    assert whole.id == TARGET.read_whole(json.dumps(written).encode()).id
