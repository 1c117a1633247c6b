"""Tools and the choice among them, as Converse and the families of models take them (B103)."""

import itertools
from collections.abc import Mapping
from typing import Any

import pytest

from gateway.core.errors import InputError
from gateway.core.message import (
    ServerTool,
    Tool,
    ToolChoice,
)
from gateway.dialects.losses import Notes
from gateway.dialects.sides import Facts
from tests.support.bedrock_written import (
    CALLED,
    CLAUDE,
    CONVERSE,
    GPT,
    LLAMA,
    NOVA,
    OLD,
    WEATHER,
    asked,
    lost,
    written,
)

CHOICES = {
    "absent": None,
    "auto": ToolChoice("auto"),
    "none": ToolChoice("none"),
    "required": ToolChoice("required"),
    "named": ToolChoice("named", ("weather",)),
}
FORCED: Mapping[str, Mapping[str, Any]] = {
    "required": {"any": {}},
    "named": {"tool": {"name": "weather"}},
}
OWN = {
    "required": {"type": "any"},
    "named": {"type": "tool", "name": "weather"},
    "absent": {"type": "auto"},
    "auto": {"type": "auto"},
}


@pytest.mark.bug("B103")
@pytest.mark.parametrize(
    ("mode", "parallel", "has_tools"),
    list(itertools.product(CHOICES, (None, True, False), (True, False))),
)
def test_every_choice_of_tools_is_written_as_it_is_meant(
    mode: str, parallel: bool | None, has_tools: bool
) -> None:
    tools = (WEATHER,) if has_tools else ()
    body = written(asked(tools=tools, choice=CHOICES[mode], parallel=parallel))
    config = body.get("toolConfig", {})
    fields = body.get("additionalModelRequestFields", {})
    is_offered = has_tools and mode != "none"

    assert is_offered == bool(config.get("tools"))
    is_alone = is_offered and parallel is False
    # Said in both places it is refused, even where both say the same.
    assert (FORCED.get(mode) if is_offered and not is_alone else None) == config.get("toolChoice")
    if is_alone:
        assert {**OWN[mode], "disable_parallel_tool_use": True} == fields["tool_choice"]
    else:
        assert "tool_choice" not in fields


@pytest.mark.bug("B103", "B116")
def test_tools_stay_while_a_history_holds_calls() -> None:
    notes = Notes()
    none = written(asked(*CALLED, tools=(WEATHER,), choice=ToolChoice("none")), notes=notes)
    assert "weather" == none["toolConfig"]["tools"][0]["toolSpec"]["name"]
    assert ["tool_choice"] == lost(notes)
    bare = written(asked(*CALLED))
    spec: Mapping[str, Any] = {
        "name": "weather",
        "inputSchema": {"json": {"type": "object", "properties": {}}},
    }
    assert {"tools": [{"toolSpec": spec}]} == bare["toolConfig"]


def test_only_allowed_tools_are_offered() -> None:
    other = Tool("other")
    body = written(asked(tools=(WEATHER, other), choice=ToolChoice("required", ("other",))))

    assert ["other"] == [each["toolSpec"]["name"] for each in body["toolConfig"]["tools"]]
    assert {"any": {}} == body["toolConfig"]["toolChoice"]


@pytest.mark.bug("K34")
def test_tools_that_are_no_functions_are_sent_back_to_their_maker_or_refused() -> None:
    own = ServerTool("bedrock_converse", "systemTool", {"systemTool": {"name": "nova_grounding"}})
    assert [dict(own.value)] == written(asked(tools=(own,)), NOVA)["toolConfig"]["tools"]
    for tool in (ServerTool("openai_responses", "web_search", {}), Tool("patch", custom=True)):
        with pytest.raises(InputError):
            written(asked(tools=(tool,)))


@pytest.mark.bug("K34")
def test_strict_and_single_calls_are_asked_of_models_that_know_them() -> None:
    prompt = asked(tools=(WEATHER,), parallel=False)
    for model, strict, single in ((CLAUDE, True, True), (GPT, True, False), (OLD, None, False)):
        notes = Notes()
        body = written(prompt, model, notes)
        assert strict == body["toolConfig"]["tools"][0]["toolSpec"].get("strict")
        assert single == ("additionalModelRequestFields" in body)
        wanted = ["strict of a tool"] * (not strict) + ["parallel_tool_calls"] * (not single)
        assert wanted == lost(notes)


@pytest.mark.bug("K34", "B103")
def test_a_call_is_forced_where_it_can_be() -> None:
    notes = Notes()
    prompt = asked(tools=(Tool("weather"),), choice=ToolChoice("required"))

    assert "toolChoice" not in written(prompt, LLAMA, notes)["toolConfig"]
    assert ["tool_choice"] == lost(notes)
    assert {"any": {}} == written(prompt, GPT)["toolConfig"]["toolChoice"]


def test_answers_with_tools_are_streamed_where_the_model_streams_them() -> None:
    def verb(model: str, *, tools: bool) -> str:
        facts = Facts("bedrock", model, stream=True, tools=tools)
        return CONVERSE.path(facts).decode().rpartition("/")[2]

    assert "converse-stream" == verb(CLAUDE, tools=True)
    assert "converse-stream" == verb(LLAMA, tools=False)
    assert "converse" == verb(LLAMA, tools=True)
