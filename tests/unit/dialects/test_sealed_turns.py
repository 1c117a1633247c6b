"""Sealed reasoning through every pair of formats, by clients that carry it and clients that drop it (K32).

A client is given an answer in its own format, and sends it back with the results of its tools.
"""

import json
from typing import Any

import pytest

from gateway.core import codec
from gateway.core.answer import Answer, Choice
from gateway.core.message import Message, Prompt, Reasoning, Text, Thinking
from gateway.core.message import ToolResult as Result
from gateway.dialects.base import StreamRules
from gateway.dialects.fit.prompt import fit
from gateway.dialects.losses import Notes
from gateway.dialects.makers import Makers
from gateway.dialects.opaque import restore, sealed_of, wanted
from gateway.dialects.registry import CALLERS, TARGETS
from gateway.dialects.sides import Facts, Told
from gateway.dialects.translation import write
from tests.support.sealed_turns import (
    CLIENTS,
    IDS,
    OTHER,
    SEAL,
    SEALINGS,
    TOOLS,
    Json,
    Sealing,
    first_request,
    read,
    second_request,
)

pytestmark = pytest.mark.bug("K32", "B100", "B108")


def second_prompt(caller: str, sealing: Sealing, *, carries: bool) -> Prompt:
    return read(caller, second_request(caller, sealing, carries=carries))


def sent(
    prompt: Prompt, sealing: Sealing, kept: dict[str, bytes], domain: str, notes: Notes
) -> str:
    """Return the body for the target, as a translation makes it."""
    target = TARGETS[sealing.target]
    grammar = target.grammar(sealing.facts)
    ids = wanted(prompt, grammar)
    prompt = restore(prompt, {key: kept[key] for key in ids if key in kept}, domain, notes)
    makers = Makers(sealing.facts.kind if sealing.target == "openai_responses" else "")
    prompt = makers.apply(fit(prompt, grammar, notes))
    fields = target.write_request(prompt, sealing.facts, notes)
    return codec.join(fields).decode()


def kept_of(sealing: Sealing) -> dict[str, bytes]:
    answer = Answer(sealing.target, "id_1", "m", (Choice(0, sealing.parts, "tool_calls"),))
    return sealed_of(answer, "account")


def ideal(sealing: Sealing) -> Any:
    """Return the history as the target would get it from one who lost nothing."""
    results = tuple(Result(each, (Text("out"),)) for each in IDS)
    messages = (
        Message("user", (Text("hi"),)),
        Message("assistant", sealing.parts),
        Message("tool", results),
    )
    prompt = Prompt("made_up", messages, TOOLS, reasoning=Reasoning(budget=2000), max_tokens=9000)
    return history(sent(prompt, sealing, {}, "account", Notes()))


def history(body: str) -> Any:
    fields = json.loads(body)
    return next(fields[name] for name in ("messages", "contents", "input") if name in fields)


@pytest.mark.parametrize("carries", [True, False], ids=["carries", "drops"])
@pytest.mark.parametrize("sealed", SEALINGS)
@pytest.mark.parametrize("caller", CLIENTS)
def test_seals_come_back_byte_for_byte_at_their_place(
    caller: str, sealed: str, *, carries: bool
) -> None:
    sealing = SEALINGS[sealed]
    prompt = second_prompt(caller, sealing, carries=carries)
    notes = Notes()
    body = sent(prompt, sealing, kept_of(sealing), "account", notes)

    assert body.count(SEAL) == 1
    assert history(body) == ideal(sealing)
    assert not any("thinking was switched off" in note for note in notes.warnings)


@pytest.mark.parametrize("carries", [True, False], ids=["carries", "drops"])
@pytest.mark.parametrize("sealed", SEALINGS)
@pytest.mark.parametrize("caller", CLIENTS)
def test_another_account_gets_no_seal_and_the_caller_is_told(
    caller: str, sealed: str, *, carries: bool
) -> None:
    sealing = SEALINGS[sealed]
    prompt = second_prompt(caller, sealing, carries=carries)
    notes = Notes()
    body = sent(prompt, sealing, kept_of(sealing), "another", notes)

    assert SEAL not in body
    assert OTHER not in body
    assert any("another account" in note for note in notes.warnings)


@pytest.mark.parametrize("foreign", SEALINGS)
@pytest.mark.parametrize("sealed", SEALINGS)
@pytest.mark.parametrize("caller", CLIENTS)
def test_another_makers_model_gets_no_seal(caller: str, sealed: str, foreign: str) -> None:
    sealing, other = SEALINGS[sealed], SEALINGS[foreign]
    makers = {getattr(part, "maker", "") for part in sealing.parts}
    if makers & {getattr(part, "maker", "") for part in other.parts} - {""}:
        return
    prompt = second_prompt(caller, sealing, carries=True)
    moved = Sealing(other.target, other.facts, sealing.parts)
    body = sent(prompt, moved, kept_of(sealing), "account", Notes())

    assert SEAL not in body
    assert OTHER not in body
    assert "gw1." not in body


@pytest.mark.bug("B120")
@pytest.mark.parametrize("kind", ["openai", "azure", "xai"])
def test_an_answer_of_responses_names_who_sealed_it(kind: str) -> None:
    target, facts = TARGETS["openai_responses"], Facts(kind, "m")
    prompt = read("openai_chat", first_request("openai_chat"))
    about = Told("req_1", "m", 1, prompt)
    grammar = target.grammar(facts)
    way = write(prompt, CALLERS["openai_chat"], target, facts, grammar, about, Notes()).translation
    item: Json = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": SEAL}
    body: Json = {"object": "response", "id": "r", "status": "completed", "output": [item]}
    rules = StreamRules(hide_usage=False, done_required=True)
    stream = way.watch(rules)
    event = {"type": "response.completed", "response": body}
    stream.feed(b"data: " + codec.encode(event) + b"\n\n")

    for answer in (way.read_whole(codec.encode(body), rules)[1], stream.collector.answer()):
        (part,) = answer.choices[0].parts
        assert part == Thinking(signature=SEAL, maker=kind, id="rs_1")
