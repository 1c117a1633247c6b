"""Opaque state goes round byte for byte, also that of other makers, as far as clients send blocks back (K32)."""

import json
from random import Random
from typing import Any

import pytest

from gateway.core import codec
from gateway.core.answer import Answer, Choice, Event, events_of
from gateway.core.message import Part, Prompt, Text, Thinking, ToolCall
from gateway.dialects.losses import Notes
from gateway.dialects.messages.seal import holds_foreign_seals, holds_unsigned
from gateway.dialects.messages.sides import MessagesCaller
from gateway.dialects.sides import Told
from tests.support.grammar_messages import breaches, collected

Json = dict[str, Any]
CALLER = MessagesCaller()
TOLD = Told("req_1", "m", 0, Prompt("anthropic_messages", ()))
SEALED: list[Part] = [
    Thinking("Hm.", signature="c2ln", maker="anthropic"),
    Thinking("", signature="c2ln", maker="anthropic"),
    Thinking(redacted="b3BhcXVl", maker="anthropic"),
    Thinking("Hm.", signature="c2ln", maker="gemini"),
    Thinking("", signature="c2ln", maker="gemini"),
    Thinking(redacted="gAAA", maker="openai", id="rs_1"),
    Thinking("A\n\nB", redacted="gAAA", maker="openai", id="rs_1", summary=("A", "B")),
    Thinking("Open.", id="rs_2", summary=("Open.",)),
    Thinking("Open."),
    ToolCall("c", "f", '{"a":1}', signature="c2ln", maker="gemini"),
    Text("said", signature="c2ln", maker="gemini"),
]


def back(content: list[Json]) -> tuple[Part, ...]:
    """Return what the gateway reads when a client sends an answer's blocks back."""
    body = {"messages": [{"role": "assistant", "content": content}]}
    return CALLER.read_request(codec.split(json.dumps(body).encode()), Notes()).messages[0].parts


@pytest.mark.bug("K32", "B108")
@pytest.mark.parametrize("part", SEALED)
def test_what_is_sealed_comes_back_from_whole_answers(part: Part) -> None:
    answer = Answer("gemini", "id", "m", (Choice(0, (part, Text("t")), "stop"),))
    body = json.loads(CALLER.write_answer(answer, TOLD, Notes()))

    assert (part, Text("t")) == back(body["content"])


@pytest.mark.bug("K32", "K37", "B108")
@pytest.mark.parametrize("part", SEALED)
def test_what_is_sealed_comes_back_from_streams(part: Part) -> None:
    answer = Answer("gemini", "id", "m", (Choice(0, (part, Text("t")), "stop"),))
    events: list[Event] = events_of(answer)
    stream = CALLER.writer(TOLD, Notes()).write(events)

    assert [] == breaches(stream)
    assert (part, Text("t")) == back(collected(stream))


def test_bytes_that_are_no_seal_of_ours_stay_text() -> None:
    rng = Random(3)
    for marked in ("gw1.", "gw1.gemini.", "gw1.gemini.{", "gw1.gemini.[]", 'gw1.x.{"id": 5}'):
        parts = back(
            [{"type": "thinking", "thinking": "", "signature": marked + str(rng.random())}]
        )

        assert [Thinking] == [type(part) for part in parts]


def test_state_of_others_in_a_request_is_noticed() -> None:
    answer = Answer("gemini", "id", "m", (Choice(0, (SEALED[3],), "stop"),))
    content = json.loads(CALLER.write_answer(answer, TOLD, Notes()))["content"]
    fields = codec.split(json.dumps({"messages": [{"content": content}]}).encode())
    own = codec.split(json.dumps({"messages": [{"content": "gw1.gemini"}]}).encode())

    assert holds_foreign_seals(fields)
    assert not holds_foreign_seals(own)


def test_thinking_without_a_signature_is_noticed() -> None:
    def holds(*content: object) -> bool:
        return holds_unsigned({"messages": codec.raw([{"role": "assistant", "content": content}])})

    bare = {"type": "thinking", "thinking": "hm"}
    own = {**bare, "signature": "c2ln"}
    told = {"type": "text", "text": json.dumps(bare)}

    assert holds(bare)
    assert holds(own, {**bare, "signature": ""})
    assert not holds(own, told)
    assert not holds(told)
    assert not holds_unsigned({})
