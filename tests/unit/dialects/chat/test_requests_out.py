"""What providers that speak chat completions are sent: each kind in its own way, nothing left out in silence (K34)."""

from typing import Any

import pytest

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.core.message import (
    CacheMark,
    File,
    Format,
    Image,
    Message,
    Part,
    Prompt,
    Reasoning,
    Refusal,
    Role,
    Sampling,
    ServerTool,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from gateway.dialects.chat.manners import MANNERS
from gateway.dialects.chat.side import ChatSide
from gateway.dialects.fit.prompt import fit
from gateway.dialects.losses import Notes
from gateway.dialects.sides import Facts
from gateway.providers.registry import PROVIDERS

Json = dict[str, Any]
HELLO = Message("user", (Text("Hello"),))
LOOK_UP = Tool("look_up", parameters={"type": "object"})
CALL = ToolCall("call_1", "look_up", '{"a": 1}')
RESULT = Message("tool", (ToolResult("call_1", (Text("42"),)),))


def write(
    prompt: Prompt, kind: str = "openai", notes: Notes | None = None, model: str = "m"
) -> Json:
    fields = ChatSide().write_request(prompt, Facts(kind, model), notes or Notes())
    return {name: codec.value_of(raw) for name, raw in fields.items()}


def asked(*messages: Message, **settings: Any) -> Prompt:
    return Prompt("anthropic_messages", messages or (HELLO,), **settings)


def said(kind: str, *parts: Part, role: Role = "assistant", notes: Notes | None = None) -> Json:
    """Return the first message as this kind of provider gets it."""
    return write(asked(Message(role, parts), HELLO), kind, notes)["messages"][0]


def test_every_manner_is_of_a_kind_of_provider() -> None:
    assert MANNERS.keys() <= PROVIDERS.keys()


def test_a_plain_request_says_no_more_than_was_asked() -> None:
    assert write(asked()) == {"messages": [{"role": "user", "content": "Hello"}]}


@pytest.mark.parametrize(
    ("kind", "role"), [("openai", "developer"), ("openrouter", "developer"), ("groq", "system")]
)
def test_developers_are_the_system_where_they_are_not_known(kind: str, role: str) -> None:
    assert said(kind, Text("Be brief."), role="developer") == {
        "role": role,
        "content": "Be brief.",
    }


@pytest.mark.bug("K32", "B100")
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("deepseek", {"content": "b", "reasoning_content": "a"}),
        ("moonshot", {"content": "b", "reasoning_content": "a"}),
        ("groq", {"content": "b", "reasoning": "a"}),
        (
            "mistral",
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "a"}]},
                    {"type": "text", "text": "b"},
                ]
            },
        ),
        (
            "openrouter",
            {
                "content": "b",
                "reasoning_details": [
                    {"type": "reasoning.text", "text": "a", "format": None, "index": 0}
                ],
            },
        ),
    ],
)
def test_reasoning_goes_back_where_the_provider_looks_for_it(kind: str, expected: Json) -> None:
    assert said(kind, Thinking("a"), Text("b")) == {"role": "assistant", **expected}


@pytest.mark.bug("K32", "B120")
def test_what_a_provider_sealed_goes_back_as_it_came() -> None:
    entry = {"type": "reasoning.encrypted", "data": "x", "format": "openai-responses-v1", "id": "i"}
    sealed = Thinking(redacted=codec.encode(entry).decode(), maker="openrouter")
    call = codec.replace(CALL, signature="c2ln", maker="gemini")

    assert said("openrouter", sealed, Text("b"))["reasoning_details"] == [entry]
    assert said("gemini", call)["tool_calls"][0]["extra_content"] == {
        "google": {"thought_signature": "c2ln"}
    }


@pytest.mark.bug("K34")
def test_reasoning_that_a_provider_does_not_take_is_left_out_with_a_note() -> None:
    notes = Notes()

    assert said("openai", Thinking("a"), Text("b"), notes=notes) == {
        "role": "assistant",
        "content": "b",
    }
    assert len(notes.warnings) == 1


def test_calls_and_results_are_written() -> None:
    history = asked(HELLO, Message("assistant", (CALL,)), RESULT, tools=(LOOK_UP,))
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "look_up", "arguments": '{"a": 1}'},
    }
    result = {"role": "tool", "tool_call_id": "call_1", "content": "42"}

    for kind, content in (("openai", None), ("zai", "")):
        body = write(history, kind)
        assert body["messages"][1:] == [
            {"role": "assistant", "content": content, "tool_calls": [call]},
            result,
        ]
        assert body["tools"] == [
            {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}
        ]


@pytest.mark.bug("B112")
def test_a_call_without_arguments_has_an_empty_object() -> None:
    call = said("openai", ToolCall("a", "f", " "))["tool_calls"][0]

    assert call["function"]["arguments"] == "{}"


def test_calls_come_with_reasoning_where_it_is_wanted() -> None:
    history = (HELLO, Message("assistant", (CALL,)), RESULT)
    thinking, plain = Reasoning(enabled=True), Reasoning(enabled=False)

    for kind in ("deepseek", "moonshot"):
        for on in (asked(*history, reasoning=thinking), asked(*history)):
            assert write(on, kind)["messages"][1]["reasoning_content"] == ""
        off = write(asked(*history, reasoning=plain), kind)
        assert "reasoning_content" not in off["messages"][1]


def test_a_forced_call_goes_before_thinking_where_both_are_refused() -> None:
    notes = Notes()
    forced = asked(
        tools=(LOOK_UP,), choice=ToolChoice("required"), reasoning=Reasoning(enabled=True)
    )

    body = write(forced, "deepseek", notes)

    assert (body["tool_choice"], body["thinking"]) == ("required", {"type": "disabled"})
    assert len(notes.warnings) == 1


WAYS_TO_THINK: list[tuple[str, Reasoning, Json, int]] = [
    ("openai", Reasoning(effort="low"), {"reasoning_effort": "low"}, 0),
    ("openai", Reasoning(enabled=False), {"reasoning_effort": "none"}, 0),
    ("openai", Reasoning(enabled=True, budget=1024), {"reasoning_effort": "low"}, 1),
    ("openai", Reasoning(enabled=True, budget=8000), {"reasoning_effort": "medium"}, 1),
    ("openai", Reasoning(enabled=True, budget=30_000), {"reasoning_effort": "high"}, 1),
    ("openrouter", Reasoning(True, budget=1024), {"reasoning": {"max_tokens": 1024}}, 0),
    ("openrouter", Reasoning(effort="low"), {"reasoning": {"effort": "low"}}, 0),
    ("openrouter", Reasoning(enabled=False), {"reasoning": {"enabled": False}}, 0),
    ("deepseek", Reasoning(enabled=False), {"thinking": {"type": "disabled"}}, 0),
    (
        "deepseek",
        Reasoning(effort="high"),
        {"thinking": {"type": "enabled"}, "reasoning_effort": "high"},
        0,
    ),
    ("deepseek", Reasoning(True, budget=9), {"thinking": {"type": "enabled"}}, 1),
    ("zai", Reasoning(effort="high"), {"reasoning_effort": "high"}, 0),
    ("alibaba", Reasoning(True, budget=9), {"enable_thinking": True, "thinking_budget": 9}, 0),
    ("alibaba", Reasoning(enabled=False), {"enable_thinking": False}, 0),
]


@pytest.mark.parametrize(("kind", "reasoning", "expected", "noted"), WAYS_TO_THINK)
def test_every_kind_is_asked_to_think_in_its_own_way(
    kind: str, reasoning: Reasoning, expected: Json, noted: int
) -> None:
    notes = Notes()
    body = write(asked(reasoning=reasoning), kind, notes)

    assert {k: v for k, v in body.items() if k != "messages"} == expected
    assert len(notes.warnings) == noted


@pytest.mark.bug("K34", "B103")
@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (ToolChoice("auto"), "auto"),
        (ToolChoice("none"), "none"),
        (ToolChoice("required"), "required"),
        (
            ToolChoice("named", ("look_up",)),
            {"type": "function", "function": {"name": "look_up"}},
        ),
        (
            ToolChoice("auto", ("look_up",)),
            {
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "auto",
                    "tools": [{"type": "function", "function": {"name": "look_up"}}],
                },
            },
        ),
    ],
)
def test_every_choice_of_tools_is_written(choice: ToolChoice, expected: Any) -> None:
    body = write(asked(tools=(LOOK_UP,), choice=choice, parallel=False))

    assert body["tool_choice"] == expected
    assert body["parallel_tool_calls"] is False


@pytest.mark.bug("B103")
def test_without_tools_nothing_is_said_about_calls() -> None:
    body = write(asked(choice=ToolChoice("none"), parallel=False))

    assert body.keys() == {"messages"}


def test_only_the_allowed_tools_are_offered_where_choices_among_them_are_not_known() -> None:
    other = Tool("other")
    body = write(asked(tools=(LOOK_UP, other), choice=ToolChoice("required", ("look_up",))), "groq")

    assert [tool["function"]["name"] for tool in body["tools"]] == ["look_up"]
    assert body["tool_choice"] == "required"


def test_custom_tools_are_functions_of_one_text_where_they_are_not_known() -> None:
    custom = Tool("run", custom=True)
    call = Message("assistant", (ToolCall("a", "run", "ls", custom=True),))
    result = Message("tool", (ToolResult("a", (Text("x"),), custom=True),))
    history = asked(HELLO, call, result, tools=(custom,))

    own = write(history)
    assert own["tools"] == [{"type": "custom", "custom": {"name": "run"}}]
    assert own["messages"][1]["tool_calls"][0]["custom"] == {"name": "run", "input": "ls"}
    other = write(history, "groq")
    assert other["tools"][0]["function"]["parameters"]["required"] == ["input"]
    assert other["messages"][1]["tool_calls"][0]["function"]["arguments"] == '{"input":"ls"}'


@pytest.mark.bug("K34")
def test_tools_that_another_provider_runs_are_refused_by_name() -> None:
    search = ServerTool("anthropic_messages", "web_search_20250305", {})

    with pytest.raises(InputError) as refused:
        write(asked(tools=(LOOK_UP, search)))

    assert refused.value.param == "tools[1]"
    own = ServerTool("openai_chat", "web_search", {"type": "web_search"})
    assert write(asked(tools=(own,)))["tools"] == [{"type": "web_search"}]


FORMS: list[tuple[Format, Json]] = [
    (Format("text"), {"type": "text"}),
    (Format("json"), {"type": "json_object"}),
    (
        Format("schema", schema={}, strict=True),
        {"type": "json_schema", "json_schema": {"name": "answer", "schema": {}, "strict": True}},
    ),
]


@pytest.mark.parametrize(("form", "expected"), FORMS)
def test_every_form_of_answers_is_written(form: Format, expected: Json) -> None:
    assert write(asked(format=form))["response_format"] == expected


@pytest.mark.bug("K34", "B106")
def test_a_setting_is_written_or_noted() -> None:
    settings: Json = {
        "sampling": Sampling(0.5, 0.9, 40, 7, 0.1, 0.2, {"1": 2}, True, 2, 3, ("END",)),
        "tools": (LOOK_UP,),
        "parallel": True,
        "verbosity": "low",
        "user": "me",
        "metadata": {"a": "b"},
        "service_tier": "flex",
        "store": True,
        "cache_key": "key",
        "extra": {"betas": ["x"]},
    }
    names = {
        *("temperature", "top_p", "top_k", "seed", "presence_penalty", "frequency_penalty"),
        *("logit_bias", "logprobs", "top_logprobs", "n", "stop", "parallel_tool_calls"),
        *("verbosity", "user", "metadata", "service_tier", "store", "prompt_cache_key", "betas"),
    }
    for kind in PROVIDERS:
        notes = Notes()
        body = write(asked(**settings), kind, notes)
        noted = {text.partition(":")[0] for text in notes.warnings}
        assert noted | (body.keys() & names) == names, kind
        assert not noted & body.keys(), kind


def test_what_was_not_to_be_kept_is_not_worth_a_note() -> None:
    notes = Notes()
    write(asked(store=False), "groq", notes)

    assert notes.warnings == []


def test_openai_keeps_metadata_only_beside_stored_answers() -> None:
    assert "metadata" not in write(asked(metadata={"a": "b"}))
    assert "metadata" in write(asked(metadata={"a": "b"}, store=True))


def test_markers_go_to_those_that_know_them() -> None:
    marked = Text("Hello", cache=CacheMark("1h"))
    prompt = asked(Message("user", (marked,)))
    mark = {"type": "ephemeral", "ttl": "1h"}

    (message,) = write(
        fit(prompt, ChatSide().grammar(Facts("openrouter", "m")), Notes()), "openrouter"
    )["messages"]
    assert message["content"] == [{"type": "text", "text": "Hello", "cache_control": mark}]
    (message,) = write(fit(prompt, ChatSide().grammar(Facts("groq", "m")), Notes()), "groq")[
        "messages"
    ]
    assert message["content"] == "Hello"


FILES: list[tuple[str, File, Json | None]] = [
    (
        "openai",
        File("application/pdf", "JVBE", name="a.pdf"),
        {
            "type": "file",
            "file": {"file_data": "data:application/pdf;base64,JVBE", "filename": "a.pdf"},
        },
    ),
    ("openai", File(file_id="file-1"), {"type": "file", "file": {"file_id": "file-1"}}),
    (
        "openai",
        File("text/plain", text="hi"),
        {
            "type": "file",
            "file": {"file_data": "data:text/plain;base64,aGk=", "filename": "file.plain"},
        },
    ),
    (
        "mistral",
        File(url="https://a.b/c.pdf", name="c"),
        {"type": "document_url", "document_url": "https://a.b/c.pdf", "document_name": "c"},
    ),
    ("groq", File("application/pdf", "JVBE"), None),
    (
        "openrouter",
        File("video/mp4", url="https://a.b/c.mp4"),
        {"type": "video_url", "video_url": {"url": "https://a.b/c.mp4"}},
    ),
]


@pytest.mark.bug("B110")
@pytest.mark.parametrize(("kind", "file", "expected"), FILES)
def test_a_file_is_written_or_refused_by_its_place(
    kind: str, file: File, expected: Json | None
) -> None:
    prompt = asked(Message("user", (Text("Read."), file)))
    if expected is not None:
        assert write(prompt, kind)["messages"][0]["content"][1] == expected
        return
    with pytest.raises(InputError) as refused:
        write(prompt, kind)
    assert refused.value.param == "messages[0].content[1]"


def test_a_picture_by_its_id_is_refused() -> None:
    with pytest.raises(InputError):
        write(asked(Message("user", (Image(file_id="x"),))))


def test_a_refusal_of_the_history_is_text_where_refusals_are_not_known() -> None:
    assert said("openai", Refusal("No."))["refusal"] == "No."
    assert said("groq", Refusal("No."))["content"] == "No."


@pytest.mark.bug("K33")
def test_mistral_gets_the_turns_that_it_insists_on() -> None:
    call = Message("assistant", (codec.replace(CALL, id="abcdefghi"),))
    result = Message("tool", (ToolResult("abcdefghi", (Text("42"),)),))
    prefill = Message("assistant", (Text("So"),))

    body = write(asked(HELLO, call, result, HELLO, prefill), "mistral")

    roles = [message["role"] for message in body["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert body["messages"][-1]["prefix"] is True
