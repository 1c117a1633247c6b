"""Tools that another provider runs are left out with a note, and refused where the caller insists on one."""

import json
from typing import Any

import pytest

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.core.message import Message, Prompt, ServerTool, Text, Tool, ToolChoice
from gateway.dialects.fit.prompt import fit
from gateway.dialects.grammar import Grammar
from gateway.dialects.losses import Notes
from gateway.dialects.registry import CALLERS, TARGETS
from gateway.dialects.sides import Facts

pytestmark = pytest.mark.bug("K34", "B103")
SEARCH = ServerTool("anthropic_messages", "web_search_20250305", {"name": "web_search"})
OWN = Tool("a")
OTHER = Grammar(items=frozenset({"gemini"}))


def prompt(choice: ToolChoice | None, *tools: Tool | ServerTool) -> Prompt:
    """Return a request with these tools."""
    return Prompt("anthropic_messages", (Message("user", (Text("hi"),)),), tools, choice)


@pytest.mark.parametrize(
    ("choice", "kept"),
    [
        (None, None),
        (ToolChoice("auto"), ToolChoice("auto")),
        (ToolChoice("none"), ToolChoice("none")),
        (ToolChoice("required"), ToolChoice("required")),
        (ToolChoice("named", ("a",)), ToolChoice("named", ("a",))),
        (ToolChoice("auto", ("a", "web_search")), ToolChoice("auto", ("a",))),
        (ToolChoice("required", ("web_search", "a")), ToolChoice("required", ("a",))),
        (ToolChoice("auto", ("web_search",)), ToolChoice("none")),
    ],
)
def test_the_model_does_without_what_it_may_do_without(
    choice: ToolChoice | None, kept: ToolChoice | None
) -> None:
    notes = Notes()
    fitted = fit(prompt(choice, SEARCH, OWN), OTHER, notes)

    assert (fitted.tools, fitted.choice) == ((OWN,), kept)
    (note,) = notes.warnings
    assert note.startswith("tools[0] (web_search_20250305): ")
    assert fit(fitted, OTHER, Notes()) is fitted


def test_nothing_is_chosen_where_no_tool_stays() -> None:
    fitted = fit(prompt(ToolChoice("auto"), SEARCH), OTHER, Notes())

    assert (fitted.tools, fitted.choice) == ((), None)


@pytest.mark.parametrize(
    ("choice", "tools"),
    [
        (ToolChoice("named", ("web_search",)), (OWN, SEARCH)),
        (ToolChoice("required", ("web_search",)), (OWN, SEARCH)),
        (ToolChoice("required"), (SEARCH,)),
    ],
)
def test_a_tool_that_is_insisted_on_is_refused(
    choice: ToolChoice, tools: tuple[Tool | ServerTool, ...]
) -> None:
    with pytest.raises(InputError) as caught:
        fit(prompt(choice, *tools), OTHER, Notes())

    at = tools.index(SEARCH)
    assert caught.value.param == f"tools[{at}]"
    assert caught.value.message.startswith(f"tools[{at}] (web_search_20250305): ")


def test_own_tools_stay() -> None:
    asked = prompt(ToolChoice("named", ("web_search",)), SEARCH)

    for items in (None, frozenset({"anthropic_messages"})):
        assert fit(asked, Grammar(items=items), Notes()).tools == (SEARCH,)


FORMATS = sorted(name for name in TARGETS if name != "openai_responses")


@pytest.mark.parametrize("name", FORMATS)
def test_an_assistant_with_a_search_of_openais_works_everywhere(name: str) -> None:
    said: dict[str, Any] = {
        "input": "Hi",
        "tools": [{"type": "function", "name": "shell", "parameters": {}}, {"type": "web_search"}],
        "tool_choice": "auto",
    }
    fields = {key: codec.raw(value) for key, value in said.items()}
    notes, side = Notes(), TARGETS[name]
    facts = Facts("x", "anthropic.claude-sonnet-4-5-20250929-v1:0", 64)
    asked = CALLERS["openai_responses"].read_request(fields, notes)

    body = codec.join(side.write_request(fit(asked, side.grammar(facts), notes), facts, notes))

    assert "shell" in json.dumps(json.loads(body))
    assert b"web_search" not in body
    assert any(note.startswith("tools[1] (web_search): ") for note in notes.warnings)
    forced = codec.replace(asked, choice=None, extra={"tool_choice": {"type": "web_search"}})
    with pytest.raises(InputError, match=r"tools\[1\] \(web_search\)"):
        fit(forced, side.grammar(facts), Notes())
