"""A search for tools that the caller runs is a function for targets of other formats, and an item again (K34)."""

import json
from typing import Any

import pytest

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.dialects.losses import Notes
from tests.support.grammar_responses import breaches
from tests.unit.dialects.responses.test_namespaces import (
    DOCS,
    FLAT,
    RULES,
    answer,
    body_of,
    function,
    functions,
    space,
    written,
)

Json = dict[str, Any]
SEARCH: Json = {
    "type": "tool_search",
    "execution": "client",
    "description": "Finds tools",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
}
ASKED: Json = {"model": "m", "input": "Hi", "tools": [function("shell"), SEARCH]}
CALL: Json = {
    "type": "tool_search_call",
    "call_id": "call_1",
    "execution": "client",
    "status": "completed",
    "arguments": {"query": "docs"},
}
OUTPUT: Json = {
    "type": "tool_search_output",
    "call_id": "call_1",
    "execution": "client",
    "status": "completed",
    "tools": [DOCS, function("late", defer_loading=True)],
}

pytestmark = pytest.mark.bug("K34")


def test_the_search_is_offered_as_a_function() -> None:
    notes = Notes()
    found = functions(body_of(written(ASKED, notes=notes)))

    assert [each["name"] for each in found] == ["shell", "tool_search"]
    assert found[1]["description"] == "Finds tools"
    assert found[1]["parameters"] == SEARCH["parameters"]
    assert not notes.warnings


@pytest.mark.parametrize("target", ["openai_chat", "anthropic_messages", "gemini"])
def test_what_was_found_can_be_called_from_then_on(target: str) -> None:
    notes = Notes()
    shell = {"type": "function_call", "call_id": "c", "name": "shell", "arguments": "{}"}
    done = {"type": "function_call_output", "call_id": "c", "output": "x"}
    asked = {**ASKED, "input": [CALL, shell, OUTPUT, done, CALL, OUTPUT]}
    asked["input"][4:] = [{**each, "call_id": "call_2"} for each in (CALL, OUTPUT)]
    sent = codec.join(written(asked, target, notes).fields).decode()

    for name in (FLAT, "mcp__docs__read", "late"):
        assert sent.count(f'"name":"{name}"') == 1, name
    assert sent.count(f"These tools can be called now: {FLAT}, mcp__docs__read, late") == 2
    assert not [text for text in notes.warnings if "seal" not in text and "user" not in text]


def test_history_of_the_search_are_calls_and_results() -> None:
    body = body_of(written({**ASKED, "input": [CALL, {**OUTPUT, "tools": []}]}))

    (said, told) = body["messages"]
    assert said["tool_calls"][0]["function"] == {
        "name": "tool_search",
        "arguments": '{"query":"docs"}',
    }
    assert (told["role"], told["tool_call_id"]) == ("tool", "call_1")
    assert told["content"] == "No tool was found."


def test_what_is_offered_already_is_not_offered_twice() -> None:
    more = space("mcp__docs", function("find"), function("new"))
    tools = [DOCS, function("late"), SEARCH]
    asked = {
        **ASKED,
        "tools": tools,
        "input": [CALL, {**OUTPUT, "tools": [more, function("late")]}],
    }
    names = [each["name"] for each in functions(body_of(written(asked)))]

    assert names == [FLAT, "mcp__docs__read", "late", "tool_search", "mcp__docs__new"]


def test_a_target_of_the_format_gets_everything_as_it_is() -> None:
    body = body_of(written({**ASKED, "input": [CALL, OUTPUT]}, "openai_responses"))

    assert body["tools"][1] == SEARCH
    assert body["input"] == [CALL, OUTPUT]


def test_a_search_of_the_provider_is_left_out_with_a_note() -> None:
    notes = Notes()
    own = {"type": "tool_search"}
    body = body_of(written({**ASKED, "tools": [function("shell"), own]}, notes=notes))

    assert [each["name"] for each in functions(body)] == ["shell"]
    assert any(text.startswith("tools[1] (tool_search)") for text in notes.warnings)


def test_what_is_no_tool_is_refused() -> None:
    for tools in ("x", [1], [{"type": "function"}]):
        with pytest.raises(InputError):
            written({**ASKED, "input": [CALL, {**OUTPUT, "tools": tools}]})


@pytest.mark.parametrize(
    ("arguments", "given"),
    [('{"query": "docs"}', {"query": "docs"}), ("", {}), ('{"query": "do', {})],
)
def test_a_call_of_it_comes_back_as_the_callers_item(arguments: str, given: Json) -> None:
    notes = Notes()
    made = written(ASKED, notes=notes)
    whole, _ = made.translation.read_whole(answer("tool_search", arguments), RULES)
    (plain,) = json.loads(whole)["output"]
    call = {"index": 0, "id": "c", "function": {"name": "tool_search", "arguments": arguments}}
    chunks: list[Json] = [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "tool_calls": [call]}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    ]
    watcher = made.translation.watch(RULES)
    stream = b"".join(b"data: %s\n\n" % json.dumps(each).encode() for each in chunks)
    out = watcher.feed(stream + b"data: [DONE]\n\n") + watcher.end(complete=True)

    assert breaches(out) == []
    events = [json.loads(line[6:]) for line in out.decode().splitlines() if line[:6] == "data: "]
    (done,) = (each["item"] for each in events if each["type"] == "response.output_item.done")
    for item in (plain, done):
        assert item["id"].startswith("tsc_")
        left = {name: value for name, value in item.items() if name != "id"}
        assert left == {**CALL, "call_id": "c", "arguments": given}
    assert any("cut off" in text for text in notes.warnings) is (arguments[-2:] == "do")
