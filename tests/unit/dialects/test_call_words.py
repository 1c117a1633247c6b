"""What a call says besides its name and arguments: an id always, words of one format never in another (K32, K35)."""

import json
from typing import Any

import pytest

from gateway.core.answer import Answer, Choice
from gateway.core.message import Message, Prompt, Text, ToolCall
from gateway.dialects.losses import Notes
from gateway.dialects.registry import CALLERS, DIALECTS
from gateway.dialects.sides import Told
from tests.support.grammar import breaches

Json = dict[str, Any]
TOLD = Told("req_1", "m", 1, Prompt("openai_chat", (Message("user", (Text("Hi"),)),)))
ANTHROPIC = {"caller": {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}}
OPENAI = {"caller": {"type": "program", "caller_id": "p_1"}, "namespace": "n"}


def call_of(caller: str, call: ToolCall) -> Json:
    """Return the call in an answer as a caller of this format gets it."""
    answer = Answer("x", "id", "m", (Choice(0, (call,), "tool_calls"),))
    said = json.loads(CALLERS[caller].write_answer(answer, TOLD, Notes()))
    match caller:
        case "openai_chat":
            found = said["choices"][0]["message"]["tool_calls"][0]
        case "anthropic_messages":
            found = said["content"][0]
        case _:
            found = said["output"][0]
    whole: Json = found
    return whole


@pytest.mark.bug("K35")
@pytest.mark.parametrize(
    ("caller", "name"),
    [("openai_chat", "id"), ("anthropic_messages", "id"), ("openai_responses", "call_id")],
)
def test_a_call_without_an_id_gets_one(caller: str, name: str) -> None:
    assert call_of(caller, ToolCall("", "f", "{}"))[name]
    assert call_of(caller, ToolCall("own", "f", "{}"))[name] == "own"


@pytest.mark.bug("K32")
def test_words_of_one_format_are_not_told_in_another() -> None:
    anthropics = ToolCall("a", "f", "{}", extra=ANTHROPIC)
    openais = ToolCall("b", "f", "{}", item_id="fc_1", extra=OPENAI)

    assert call_of("anthropic_messages", anthropics)["caller"] == ANTHROPIC["caller"]
    assert call_of("openai_responses", openais)["caller"] == OPENAI["caller"]
    assert "caller" not in call_of("openai_responses", anthropics)
    assert not {"caller", "namespace"} & call_of("anthropic_messages", openais).keys()


@pytest.mark.bug("K02")
def test_a_stream_made_of_a_whole_answer_names_calls_that_have_no_id() -> None:
    call = {"id": "", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call, call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    answer = {"id": "c", "object": "chat.completion", "created": 1, "choices": [choice]}

    body = DIALECTS["openai_chat"].synthesise(
        "chat", json.dumps(answer).encode(), include_usage=False
    )

    assert breaches(body, asks_usage=False) == []
    chunks = [json.loads(event[6:]) for event in body.split(b"\n\n")[:-2]]
    calls = [c for chunk in chunks for c in chunk["choices"][0]["delta"].get("tool_calls", ())]
    assert len({call["id"] for call in calls}) == 2
    assert all(call["id"] and call["type"] == "function" for call in calls)
