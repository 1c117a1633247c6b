"""Custom tools at targets that know only functions: offered as functions, and calls of them turned back."""

import json
from random import Random

import pytest

from gateway.core.answer import (
    Answer,
    Began,
    Choice,
    Collector,
    Delta,
    Event,
    Finished,
    PartBegan,
    PartEnded,
)
from gateway.core.message import Message, Prompt, Text, Tool, ToolCall, ToolChoice, ToolResult
from gateway.dialects.fit.custom_tools import CustomTools, InputText, as_functions
from gateway.dialects.losses import Notes

FORM = {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}
PATCH = '*** Begin Patch\n+ "a\\b" \t é 日本 👩‍👩‍👧 \x00\n*** End Patch'
PROMPT = Prompt(
    "openai_responses",
    (
        Message("user", (Text("Fix it"),)),
        Message("assistant", (ToolCall("c1", "apply_patch", PATCH, custom=True),)),
        Message("tool", (ToolResult("c1", (Text("Done"),), custom=True),)),
    ),
    tools=(Tool("apply_patch", "Edits files", custom=True, format=FORM), Tool("f")),
    choice=ToolChoice("named", ("apply_patch",), custom=True),
)


@pytest.mark.bug("K34")
def test_a_custom_tool_is_offered_as_a_function_of_one_text() -> None:
    notes = Notes()
    asked = as_functions(PROMPT, notes)

    tool = asked.tools[0]
    assert isinstance(tool, Tool)
    assert not tool.custom
    assert tool.parameters is not None
    assert tool.parameters["required"] == ["input"]
    assert "start: /.+/" in tool.parameters["properties"]["input"]["description"]
    assert asked.tools[1] is PROMPT.tools[1]
    assert asked.choice == ToolChoice("named", ("apply_patch",))
    call, result = asked.messages[1].parts[0], asked.messages[2].parts[0]
    assert isinstance(call, ToolCall)
    assert isinstance(result, ToolResult)
    assert json.loads(call.arguments) == {"input": PATCH}
    assert not call.custom
    assert not result.custom
    assert len(notes.warnings) == 1


def test_a_prompt_without_custom_tools_has_none() -> None:
    assert not CustomTools.of(Prompt("x", (), tools=(Tool("f"),)))
    assert CustomTools.of(PROMPT)


def test_a_prompt_without_any_stays_as_it_is() -> None:
    asked = Prompt("x", (Message("user", (Text("Hi"),)),), tools=(Tool("f"),))
    whole = Answer("x", "", "", (Choice(0, (ToolCall("c", "f", "{}"),), "tool_calls"),))

    assert as_functions(asked, Notes()) is asked
    assert CustomTools.of(asked).answer(whole) is whole


def test_calls_of_the_history_are_those_of_functions_without_their_tools() -> None:
    call = ToolCall("c", "run", "ls", custom=True)
    asked = Prompt("x", (Message("assistant", (Text("Now"), call)),))

    (message,) = as_functions(asked, Notes()).messages
    assert message.parts == (Text("Now"), ToolCall("c", "run", '{"input":"ls"}'))


@pytest.mark.bug("K34")
@pytest.mark.parametrize("ascii_only", [True, False])
def test_calls_are_turned_back(ascii_only: bool) -> None:
    arguments = json.dumps({"input": PATCH}, ensure_ascii=ascii_only)
    other = ToolCall("c2", "f", '{"input": "x"}')
    parts = (ToolCall("c1", "apply_patch", arguments), other)
    whole = Answer("x", "", "", (Choice(0, parts, "tool_calls"),))

    found = CustomTools.of(PROMPT).answer(whole)

    assert found.choices[0].parts == (ToolCall("c1", "apply_patch", PATCH, custom=True), other)


@pytest.mark.bug("K34", "K01")
def test_calls_are_turned_back_as_they_come_however_they_are_cut() -> None:
    rng = Random(1)
    for round_ in range(60):
        arguments = json.dumps(
            {"input": PATCH}, ensure_ascii=round_ % 2 == 0, indent=rng.choice((None, 2))
        )
        events: list[Event] = [Began(), PartBegan(0, 0, ToolCall("c1", "apply_patch"))]
        at = 0
        while at < len(arguments):
            size = rng.choice((1, 2, 3, 7, 100)) if round_ else 1
            events.append(Delta(0, 0, arguments[at : at + size]))
            at += size
        other = ToolCall("c2", "f", "{}")
        events += [PartBegan(0, 1, other), Delta(0, 1, ""), PartEnded(0, 1)]
        events += [PartEnded(0, 0), Finished(0, "tool_calls")]
        stream, collector = CustomTools.of(PROMPT).stream(), Collector("x")
        for event in events:
            collector.add(stream.events([event]))

        part, last = collector.answer().choices[0].parts
        assert last == other
        assert part == ToolCall("c1", "apply_patch", PATCH, custom=True)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("", ""),
        ("{}", ""),
        ("{", ""),
        ('{"inp', ""),
        ('{"patch": "x"}', "x"),
        ('{"a": "x", "input": "y"}', "y"),
        ('{"a": "x", "b": "y"}', '{"a": "x", "b": "y"}'),
        ('{"input": 3}', '{"input": 3}'),
        ('"x"', '"x"'),
        ("plain text", "plain text"),
        ('{"input": "cut of', "cut of"),
        ('{"input": "cut\\', "cut"),
        ('{"input": "x", "more": 1}', "x"),
        ('{"input": "\\ud83d!"}', "\ufffd!"),
        ('{"input": "\\ud83d\\u0041"}', "\ufffdA"),
        ('{"input": "\\ud83d\\n"}', "\ufffd\n"),
        ('{"input": "\\q"}', "\ufffd"),
    ],
)
def test_what_has_another_form_is_given_whole(arguments: str, text: str) -> None:
    whole, single = InputText(), InputText()

    assert whole.feed(arguments) + whole.end() == text
    assert "".join(map(single.feed, arguments)) + single.end() == text
