"""Every choice of tools beside every way to call them, with and without tools: sent, noted or refused (B103)."""

from itertools import product
from typing import Literal

import pytest

from gateway.core.errors import InputError
from gateway.core.message import Message, Prompt, ServerTool, Text, Tool, ToolChoice
from gateway.dialects.fit.prompt import fit
from gateway.dialects.grammar import Grammar
from gateway.dialects.losses import Notes

Mode = Literal["auto", "none", "required", "named"]
MODES: tuple[Mode | None, ...] = (None, "auto", "none", "required", "named")

pytestmark = pytest.mark.bug("K34", "B103")


def prompt(
    mode: Mode | None,
    *,
    parallel: bool | None,
    tools: tuple[Tool | ServerTool, ...],
    name: str = "a",
) -> Prompt:
    choice = None if mode is None else ToolChoice(mode, (name,) if mode == "named" else ())
    messages = (Message("user", (Text("hi"),)),)
    return Prompt("openai_chat", messages, tools, choice, parallel)


@pytest.mark.parametrize(("mode", "parallel"), [*product(MODES, (None, True, False))])
def test_a_choice_goes_on_with_tools_and_stays_behind_without(
    mode: Mode | None, *, parallel: bool | None
) -> None:
    notes = Notes()
    with_tools = prompt(mode, parallel=parallel, tools=(Tool("a"), Tool("b")))
    assert fit(with_tools, Grammar(), notes) is with_tools

    without = fit(prompt(mode, parallel=parallel, tools=()), Grammar(), notes)
    assert (without.choice, without.parallel) == (None, None)
    assert [note.partition(":")[0] for note in notes.warnings] == (
        ["tool_choice"] if mode in {"required", "named"} else []
    )


def test_a_tool_that_is_not_offered_cannot_be_chosen() -> None:
    with pytest.raises(InputError) as caught:
        fit(prompt("named", parallel=None, tools=(Tool("b"),)), Grammar(), Notes())
    assert caught.value.message.startswith("tool_choice (a): ")
    assert caught.value.param == "tool_choice"


def test_tools_of_the_provider_itself_may_be_named() -> None:
    tools = (Tool("b"), ServerTool("anthropic_messages", "web_search", {}))
    chosen = prompt("named", parallel=None, tools=tools, name="web_search")

    assert fit(chosen, Grammar(), Notes()) is chosen
