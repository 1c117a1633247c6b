"""One piece of sealed reasoning that cannot be sent goes alone: what stands beside it goes on as it came (K32)."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from gateway.core import codec
from gateway.dialects.losses import Notes
from gateway.dialects.registry import CALLERS, TARGETS
from gateway.dialects.sides import Facts, Told
from gateway.dialects.translation import write

Json = dict[str, Any]
CLAUDE = {
    "anthropic_messages": Facts("anthropic", "claude-sonnet-4-5", 64_000),
    "bedrock_anthropic": Facts("bedrock", "anthropic.claude-opus-4-6-v1", 64_000),
    "bedrock_converse": Facts("bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0", 64_000),
    "vertex_anthropic": Facts("vertex", "claude-opus-4-6", 64_000),
}
HIDDEN, SEAL = "aGlkZGVu", "c2VhbA=="
FOREIGN = ("gw1.gemini.c2ln", 'gw1.openai.{"signature":"x"}', "gw1.", "")
UNKNOWN = "Zm9yZ2Vk"
"""Looks like any seal of Anthropic's: only Anthropic can tell."""

pytestmark = pytest.mark.bug("K32")


def details(seal: str, *, index: int | None = None) -> Json:
    """Return a turn of chat as this gateway writes it; `index` where all entries have the same."""
    maker, _, inner = seal.removeprefix("gw1.").partition(".") if "." in seal else ("", "", "")
    text = {"type": "reasoning.text", "text": "hm", "format": maker or "anthropic", "index": 0}
    text["signature"] = inner if maker else seal.removeprefix("gw1.")
    hidden = {"type": "reasoning.encrypted", "data": HIDDEN, "format": "anthropic"}
    return {"reasoning_details": [text, {**hidden, "index": 1 if index is None else index}]}


def blocks(seal: str) -> Json:
    text = {"type": "thinking", "thinking": "hm", "signature": seal}
    return {"thinking_blocks": [text, {"type": "redacted_thinking", "data": HIDDEN}]}


def both(seal: str) -> Json:
    """Return a turn that tells each piece in its own way."""
    first, second = details(seal)["reasoning_details"], blocks(seal)["thinking_blocks"]
    return {"reasoning_details": first[:1], "thinking_blocks": second[1:]}


def chat(turn: Json) -> Json:
    said = {"role": "assistant", "content": "So", **turn}
    asked = {"role": "user", "content": "Hi"}
    return {"messages": [asked, said, asked]}


def messages(seal: str) -> Json:
    content = [*blocks(seal)["thinking_blocks"], {"type": "text", "text": "So"}]
    asked = {"role": "user", "content": "Hi"}
    return {"max_tokens": 9, "messages": [asked, {"role": "assistant", "content": content}, asked]}


HISTORIES: dict[str, tuple[str, Callable[[str], Json]]] = {
    "messages": ("anthropic_messages", messages),
    "details": ("openai_chat", lambda seal: chat(details(seal))),
    "details of one index": ("openai_chat", lambda seal: chat(details(seal, index=0))),
    "blocks": ("openai_chat", lambda seal: chat(blocks(seal))),
    "both": ("openai_chat", lambda seal: chat(both(seal))),
}


def sent(caller: str, wire: str, body: Json) -> tuple[Json, list[str]]:
    """Return what the model is told of its own turn, and what the caller is told."""
    notes, side = Notes(), TARGETS[wire]
    prompt = CALLERS[caller].read_request({k: codec.raw(v) for k, v in body.items()}, notes)
    told = Told("req_1", "m", 0, prompt)
    grammar = side.grammar(CLAUDE[wire])
    out = write(prompt, CALLERS[caller], side, CLAUDE[wire], grammar, told, notes)
    return codec.value_of(out.fields["messages"])[1], notes.warnings


def hidden_in(turn: Json) -> list[Json]:
    return [block for block in turn["content"] if b"edacted" in codec.encode(block)]


@pytest.mark.parametrize("wire", CLAUDE)
@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("seal", FOREIGN)
def test_a_foreign_seal_takes_nothing_with_it(seal: str, history: str, wire: str) -> None:
    caller, make = HISTORIES[history]

    turn, warnings = sent(caller, wire, make(seal))

    assert len(hidden_in(turn)) == 1
    assert '"hm"' not in json.dumps(turn)
    assert [text.partition(": ")[2][:25] for text in warnings] == ["is not sealed for this ta"]


@pytest.mark.parametrize("wire", CLAUDE)
@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("seal", [SEAL, UNKNOWN])
def test_seals_of_the_maker_stand_beside_each_other(seal: str, history: str, wire: str) -> None:
    caller, make = HISTORIES[history]

    turn, warnings = sent(caller, wire, make(seal))

    assert len(hidden_in(turn)) == 1
    assert seal in json.dumps(turn)
    assert warnings == []


def test_a_piece_that_is_told_twice_is_sent_once() -> None:
    turn, _ = sent("openai_chat", "anthropic_messages", chat({**details(SEAL), **blocks(SEAL)}))
    plain = {"reasoning_details": [{"type": "reasoning.text", "text": "hm"}], **blocks(SEAL)}
    sealed, _ = sent("openai_chat", "anthropic_messages", chat(plain))

    assert turn == sealed
    assert [block["type"] for block in turn["content"]] == ["thinking", "redacted_thinking", "text"]
