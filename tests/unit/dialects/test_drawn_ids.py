"""Ids that the gateway draws for answers are no words of a model; all others are looked at (X-2)."""

import json
from typing import Any

import pytest

from gateway.core import codec
from gateway.core.answer import Answer, Choice, events_of
from gateway.core.ids import new_call_id, new_request_id
from gateway.core.message import Message, Prompt, Text, Thinking, ToolCall
from gateway.dialects.leaves import answer_tree, event_tree, request_tree
from gateway.dialects.losses import Notes
from gateway.dialects.registry import CALLERS
from gateway.dialects.sides import Told

Json = dict[str, Any]
PARTS = (Thinking("first"), Text("fine words"), ToolCall("", "look", "{}"))
ANSWER = Answer("deepseek", "", "m", (Choice(0, PARTS, "tool_calls"),))
IDS = frozenset({"id", "call_id", "tool_use_id", "item_id"})
PROMPT = Prompt("openai_chat", (Message("user", (Text("hi"),)),))


def ids_in(tree: Any) -> list[str]:
    """Return the ids that are looked at."""
    return [leaf.holder[leaf.key] for leaf in tree.leaves if leaf.key in IDS]


@pytest.mark.contract("X-2")
@pytest.mark.parametrize("caller", sorted(CALLERS))
def test_what_the_gateway_draws_is_not_judged(caller: str) -> None:
    told = Told(new_request_id(), "m", 1, PROMPT)
    side = CALLERS[caller]
    whole = side.write_answer(ANSWER, told, Notes())
    stream = side.writer(told, Notes()).write(events_of(ANSWER))
    lines = [line[5:].strip() for line in stream.split(b"\n") if line.startswith(b"data:")]

    drawn = [*ids_in(answer_tree(whole))]
    for line in lines:
        if line != b"[DONE]":
            drawn += ids_in(event_tree(line))
    assert drawn == []
    assert "fine words" in str([leaf.holder for leaf in answer_tree(whole).leaves])


@pytest.mark.contract("X-2")
@pytest.mark.parametrize(
    "own", ["msg_gw-a-bad-word", "call_bad", "msg_gwzz" + "0" * 24, "bad", "call_" + "0" * 24 + "x"]
)
def test_any_other_id_of_an_answer_is_judged(own: str) -> None:
    item: Json = {"type": "message", "id": own, "content": []}
    body = json.dumps({"id": "resp_1", "object": "response", "output": [item]}).encode()

    assert ids_in(answer_tree(body)) == [own]


@pytest.mark.contract("X-2")
def test_ids_of_a_request_are_judged_whatever_they_look_like() -> None:
    item: Json = {"type": "function_call", "call_id": new_call_id(), "name": "f", "arguments": "{}"}
    fields = {"input": codec.raw([item])}

    assert item["call_id"] in ids_in(request_tree(fields))
