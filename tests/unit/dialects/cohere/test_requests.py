"""What Cohere is asked says what the neutral request says, up to the table of losses."""

from random import Random

import pytest

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.core.message import (
    Audio,
    File,
    Format,
    Image,
    Message,
    Opaque,
    Part,
    Prompt,
    Reasoning,
    Refusal,
    Sampling,
    ServerTool,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from gateway.dialects.cohere.target import CohereV2
from gateway.dialects.losses import Notes
from gateway.dialects.sides import Facts
from tests.support.cohere_requests import read_prompt
from tests.support.native_recordings import Json, differences, exchanges
from tests.support.neutral import Can, prompt
from tests.support.rounds import rounds

COHERE = CohereV2()
FACTS = Facts(kind="cohere", model="command-a-reasoning-08-2025")
CAN = Can(
    COHERE.name,
    user=frozenset({"text", "image_url", "image_data", "image_detail"}),
    empty_text=False,
    no_arguments="{}",
    settings=frozenset(
        {
            "temperature",
            "top_p",
            "top_k",
            "seed",
            "presence_penalty",
            "frequency_penalty",
            "logprobs",
            "stop",
            "max_tokens",
            "tools",
            "choice",
            "allowed",
            "json",
            "schema",
            "budget",
            "disabled",
            "stream",
        }
    ),
)
HELLO = (Message("user", (Text("Hello"),)),)


def written(asked: Prompt, notes: Notes | None = None) -> Json:
    fields = COHERE.write_request(asked, FACTS, Notes() if notes is None else notes)
    return {name: codec.value_of(field) for name, field in fields.items()}


def _within(value: float | None, least: float, most: float) -> float | None:
    return None if value is None else min(max(value, least), most)


def _nearest(asked: Prompt) -> Prompt:
    """Return what Cohere can be told of a request."""
    sampling = codec.replace(
        asked.sampling,
        top_p=_within(asked.sampling.top_p, 0.01, 0.99),
        presence_penalty=_within(asked.sampling.presence_penalty, 0.0, 1.0),
        frequency_penalty=_within(asked.sampling.frequency_penalty, 0.0, 1.0),
        top_logprobs=None,
    )
    tools = asked.tools
    choice = asked.choice
    if choice is not None and choice.names:
        tools = tuple(t for t in tools if isinstance(t, Tool) and t.name in choice.names)
        choice = ToolChoice("required") if choice.mode != "auto" else None
    return codec.replace(asked, sampling=sampling, tools=tools, choice=choice)


def _unsaid(asked: Prompt) -> Prompt:
    """Return a request without what makes no difference to Cohere."""
    tools = tuple(
        codec.replace(tool, parameters=tool.parameters or {"type": "object", "properties": {}})
        for tool in asked.tools
        if isinstance(tool, Tool)
    )
    form = asked.format
    return codec.replace(
        asked,
        tools=tools,
        choice=None if asked.choice == ToolChoice("auto") else asked.choice,
        format=None if form is None else codec.replace(form, name="", strict=None),
    )


@pytest.mark.bug("K33", "K34")
def test_a_request_read_back_is_the_one_that_was_written_up_to_noted_losses() -> None:
    for seed in rounds(300):
        asked = prompt(Random(seed), CAN)
        notes = Notes()
        body = written(asked, notes) | {"stream": asked.stream}
        nearest = _nearest(asked)
        assert _unsaid(nearest) == read_prompt(body), seed
        if (nearest.sampling, nearest.tools) != (asked.sampling, asked.tools):
            assert notes.warnings, seed


def test_recorded_requests_are_written_as_they_were_sent() -> None:
    for exchange in exchanges("cohere", "/v2/chat"):
        recorded = exchange.request
        notes = Notes()
        body = written(read_prompt(recorded), notes)
        body |= {"model": recorded["model"], "stream": recorded.get("stream", False)}
        assert [] == differences(recorded, body), exchange.id
        assert [] == notes.warnings, exchange.id


def test_the_address_lies_below_the_host() -> None:
    assert b"/v2/chat" == COHERE.path(FACTS)


def test_a_plan_is_what_was_said_before_the_calls() -> None:
    call = ToolCall("c1", "roll", "")
    said: tuple[Part, ...] = (Thinking("Hm."), Text("I will roll."), Text(" Now."), call)
    body = written(Prompt("openai_chat", (*HELLO, Message("assistant", said))))
    assert {
        "role": "assistant",
        "tool_plan": "I will roll. Now.",
        "content": [{"type": "thinking", "thinking": "Hm."}],
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "roll", "arguments": "{}"}}
        ],
    } == body["messages"][1]


def test_results_of_tools_are_messages_of_their_own_and_may_hold_documents() -> None:
    page = File(media_type="text/plain", text="Rain.", name="Weather")
    results = (
        ToolResult("c1", (Text("one"),)),
        ToolResult("c2", (Text("two"), page)),
        ToolResult("c3"),
    )
    body = written(Prompt("openai_chat", (Message("tool", results),)))
    document = {"type": "document", "document": {"data": {"text": "Rain.", "title": "Weather"}}}
    assert [
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
        {
            "role": "tool",
            "tool_call_id": "c2",
            "content": [{"type": "text", "text": "two"}, document],
        },
        {"role": "tool", "tool_call_id": "c3", "content": ""},
    ] == body["messages"]


def test_a_developer_speaks_as_the_system_and_a_refusal_is_text() -> None:
    history = (Message("developer", (Text("Be kind."),)), Message("assistant", (Refusal("No."),)))
    roles = [
        (item["role"], item["content"])
        for item in written(Prompt("openai_chat", history))["messages"]
    ]
    assert [
        ("system", [{"type": "text", "text": "Be kind."}]),
        ("assistant", [{"type": "text", "text": "No."}]),
    ] == roles


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (Reasoning(enabled=True), {"type": "enabled"}),
        (Reasoning(enabled=True, budget=500), {"type": "enabled", "token_budget": 500}),
        (Reasoning(enabled=False), {"type": "disabled"}),
        (Reasoning(effort="none"), {"type": "disabled"}),
        (Reasoning(effort="high"), {"type": "enabled"}),
        (Reasoning(summary="auto"), None),
    ],
)
def test_thinking_is_switched_and_bounded(asked: Reasoning, expected: object) -> None:
    assert expected == written(Prompt("openai_chat", HELLO, reasoning=asked)).get("thinking")


@pytest.mark.bug("K34")
@pytest.mark.parametrize(
    ("asked", "name"),
    [
        (Prompt("x", HELLO, user="u1"), "user"),
        (Prompt("x", HELLO, metadata={"a": "b"}), "metadata"),
        (Prompt("x", HELLO, service_tier="flex"), "service_tier"),
        (Prompt("x", HELLO, store=True), "store"),
        (Prompt("x", HELLO, cache_key="k"), "prompt_cache_key"),
        (Prompt("x", HELLO, verbosity="low"), "verbosity"),
        (Prompt("x", HELLO, parallel=False), "parallel_tool_calls"),
        (Prompt("x", HELLO, reasoning=Reasoning(effort="low")), "reasoning_effort"),
        (
            Prompt("x", HELLO, format=Format("json", description="A")),
            "response_format.json_schema.description",
        ),
        (Prompt("x", HELLO, sampling=Sampling(logit_bias={"1": 2})), "logit_bias"),
        (Prompt("x", HELLO, sampling=Sampling(logprobs=True, top_logprobs=2)), "top_logprobs"),
        (Prompt("x", HELLO, sampling=Sampling(top_k=900)), "top_k"),
        (Prompt("x", HELLO, tools=(Tool("a", strict=True), Tool("b"))), "tools.strict"),
        (Prompt("x", HELLO, extra={"made_up": 1}), "made_up"),
        (Prompt("x", (Message("user", (Text("Hi"),), name="Ann"),)), "name"),
        (Prompt("x", (Message("tool", (ToolResult("c", is_error=True),)),)), "is_error"),
    ],
)
def test_what_cannot_be_said_is_noted_by_name(asked: Prompt, name: str) -> None:
    notes = Notes()
    written(asked, notes)
    assert [name] == [warning.partition(":")[0] for warning in notes.warnings]


@pytest.mark.bug("K34")
@pytest.mark.parametrize(
    "asked",
    [
        Prompt("x", HELLO, sampling=Sampling(n=2)),
        Prompt("x", HELLO, tools=(Tool("a", custom=True),)),
        Prompt("x", HELLO, tools=(ServerTool("y", "web_search", {}),)),
        Prompt("x", (Message("user", (Audio("AAAA", "wav"),)),)),
        Prompt("x", (Message("assistant", (Opaque("y", "search", {}),)),)),
        Prompt("x", (Message("user", (Image(file_id="file-1"),)),)),
        Prompt("x", (Message("user", (File(data="AAAA", media_type="application/pdf"),)),)),
        Prompt("x", (Message("assistant", (ToolCall("c", "a", "text", custom=True),)),)),
    ],
)
def test_what_must_not_be_lost_is_refused(asked: Prompt) -> None:
    with pytest.raises(InputError) as caught:
        written(asked)
    assert "invalid_request" == caught.value.code


def test_tools_that_are_all_strict_are_strict_together() -> None:
    body = written(Prompt("x", HELLO, tools=(Tool("a", strict=True), Tool("b", strict=True))))
    assert body["strict_tools"] is True


def test_cohere_s_own_fields_pass_from_any_caller() -> None:
    extra = {"safety_mode": "STRICT", "documents": ["a"], "citation_options": {"mode": "OFF"}}
    body = written(Prompt("openai_chat", HELLO, extra=extra))
    assert extra == {name: body[name] for name in extra}
