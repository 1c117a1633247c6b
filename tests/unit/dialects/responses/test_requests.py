"""Requests of the Responses format: read from callers, written to providers, and what is refused by name."""

from typing import Any

import pytest

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.core.message import (
    CacheMark,
    File,
    Image,
    Message,
    Opaque,
    Prompt,
    Reasoning,
    Refusal,
    ServerTool,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from gateway.dialects.fit.prompt import fit
from gateway.dialects.losses import Notes
from gateway.dialects.responses.caller import ResponsesCaller
from gateway.dialects.responses.sealed import holds_foreign_seals, holds_unsealed
from gateway.dialects.responses.settings import SEALED
from gateway.dialects.responses.target import ResponsesTarget
from gateway.dialects.sides import Facts
from tests.support.codex import CODEX
from tests.support.native_recordings import differences

CALLER, TARGET = ResponsesCaller(), ResponsesTarget()
FACTS = Facts("openai", "gpt-5")
Json = dict[str, Any]


def read(body: Json, notes: Notes | None = None) -> Prompt:
    fields = {name: codec.raw(value) for name, value in body.items()}
    return CALLER.read_request(fields, notes or Notes())


def said(*items: Json, **more: Any) -> Prompt:
    return read({"model": "m", "input": list(items), **more})


def write(asked: Prompt, notes: Notes | None = None, facts: Facts = FACTS) -> Json:
    fields = TARGET.write_request(asked, facts, notes or Notes())
    return {name: codec.value_of(raw) for name, raw in fields.items()}


def test_a_text_is_what_the_user_says() -> None:
    assert read({"input": "Hello"}).messages == (Message("user", (Text("Hello"),)),)


def test_instructions_come_first() -> None:
    asked = read({"instructions": "Be kind.", "input": [{"role": "user", "content": "Hi"}]})

    assert asked.messages[0] == Message("system", (Text("Be kind."),))
    assert write(asked)["instructions"] == "Be kind."


def test_every_kind_of_content_is_read() -> None:
    asked = said(
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "Look", "prompt_cache_breakpoint": {"ttl": "30m"}},
                {"type": "input_image", "image_url": "https://example.com/a.png", "detail": "low"},
                {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
                {"type": "input_image", "file_id": "file-1"},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:;base64,JVBERi0="},
                {"type": "input_file", "file_url": "https://example.com/b.pdf"},
                {"type": "input_file", "file_id": "file-2"},
            ],
        },
        {"role": "developer", "content": "Be quick."},
    )

    assert asked.messages[0].parts == (
        Text("Look", cache=CacheMark("30m")),
        Image(url="https://example.com/a.png", detail="low"),
        Image("image/png", "AAAA"),
        Image(file_id="file-1"),
        File("application/pdf", "JVBERi0=", name="a.pdf"),
        File("application/pdf", url="https://example.com/b.pdf"),
        File(file_id="file-2"),
    )
    assert asked.messages[1] == Message("developer", (Text("Be quick."),))


@pytest.mark.bug("K33")
def test_what_a_model_made_in_one_go_is_one_message() -> None:
    asked = said(
        {"role": "user", "content": "Hi"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "seal"},
        {
            "type": "message",
            "role": "assistant",
            "content": [
                {"type": "output_text", "text": "Let me see.", "annotations": []},
                {"type": "refusal", "refusal": "Not that."},
            ],
        },
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}", "id": "fc_1"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "g", "input": "raw"},
        {"type": "function_call_output", "call_id": "c1", "output": "one"},
        {
            "type": "custom_tool_call_output",
            "call_id": "c2",
            "output": [{"type": "input_text", "text": "two"}],
        },
        {"role": "user", "content": "Go on"},
    )

    assert asked.messages == (
        Message("user", (Text("Hi"),)),
        Message(
            "assistant",
            (
                Thinking(signature="seal", maker="openai", id="rs_1"),
                Text("Let me see."),
                Refusal("Not that."),
                ToolCall("c1", "f", "{}", item_id="fc_1"),
                ToolCall("c2", "g", "raw", custom=True),
            ),
        ),
        Message(
            "tool",
            (ToolResult("c1", (Text("one"),)), ToolResult("c2", (Text("two"),), custom=True)),
        ),
        Message("user", (Text("Go on"),)),
    )


def test_what_codex_sends_is_read_and_written_again() -> None:
    notes = Notes()
    asked = read(CODEX, notes)

    assert notes.warnings == []
    assert asked.reasoning == Reasoning(effort="medium", summary="auto", extra={SEALED: True})
    assert (asked.cache_key, asked.parallel, asked.store) == ("0199-thread", False, False)
    assert asked.stream
    assert asked.extra == {}
    assert asked.tools[1] == Tool(
        "apply_patch",
        "Edits files",
        custom=True,
        format={"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /.+/"}},
    )
    assert asked.tools[2] == ServerTool(TARGET.name, "web_search", CODEX["tools"][2])
    fitted = fit(asked, TARGET.grammar(FACTS), notes)
    assert notes.warnings == []
    again = {**write(fitted), "model": CODEX["model"], "stream": True}
    assert differences(_as_sent(CODEX), again) == []


def _as_sent(body: Json) -> Json:
    """Return a request without what says nothing to a provider: status, and texts as lists of one."""
    items: list[Json] = []
    for item in body["input"]:
        kept = {k: v for k, v in item.items() if k != "status" or "action" in item}
        if kept.get("role"):
            kept.pop("type", None)
        items.append(kept)
    return {**body, "input": items}


def test_a_call_of_the_callers_own_shell_is_a_call_to_other_targets() -> None:
    asked = read(CODEX)

    call = asked.messages[5].parts[0]
    assert isinstance(call, ToolCall)
    assert (call.id, call.name) == ("call_2", "local_shell")
    assert codec.decode(call.arguments) == CODEX["input"][5]["action"]


def test_items_of_the_providers_own_tools_are_kept_as_they_are() -> None:
    item = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    output: Json = {"type": "computer_call_output", "call_id": "c", "output": {}}
    asked = said(item, output, {"role": "user", "content": "Go on"})

    assert asked.messages[0] == Message(
        "assistant", (Opaque(TARGET.name, "web_search_call", item),)
    )
    assert asked.messages[1] == Message(
        "user", (Opaque(TARGET.name, "computer_call_output", output),)
    )
    assert write(asked)["input"][:2] == [item, output]


@pytest.mark.bug("K32")
def test_ids_that_were_made_here_do_not_go_to_providers() -> None:
    item: Json = {"type": "reasoning", "summary": [], "encrypted_content": "seal"}
    asked = said({"id": "rs_gw0123", **item}, {"id": "rs_0123", **item}, _user())

    found = write(asked)["input"]

    assert ["id" in each for each in found[:2]] == [False, True]


def _user() -> Json:
    return {"role": "user", "content": "Go on"}


@pytest.mark.bug("K32", "B120")
def test_what_others_sealed_comes_back_as_it_was() -> None:
    seal = 'gw1.anthropic.{"text":"Hmm","signature":"sig"}'
    asked = said({"type": "reasoning", "summary": [], "encrypted_content": seal}, _user())

    assert asked.messages[0].parts == (Thinking("Hmm", signature="sig", maker="anthropic"),)
    notes = Notes()
    fitted = fit(asked, TARGET.grammar(FACTS), notes)
    assert len(write(fitted)["input"]) == 1
    assert len(notes.warnings) == 1


def test_a_request_with_seals_of_others_is_known_without_being_read() -> None:
    item = {"type": "reasoning", "encrypted_content": "gw1.anthropic.{}"}

    assert holds_foreign_seals({"input": codec.raw([item])})
    for items in ([{**item, "encrypted_content": "gAAA"}], "a text with gw1. in it", []):
        assert not holds_foreign_seals({"input": codec.raw(items)})
    assert not holds_foreign_seals({})


@pytest.mark.bug("K32")
def test_reasoning_told_here_that_nobody_sealed_is_noticed() -> None:
    item: Json = {"type": "reasoning", "id": "rs_gw0001", "summary": []}

    assert holds_unsealed({"input": codec.raw([item])})
    for change in ({"encrypted_content": "gAAA"}, {"id": "rs_1"}, {"type": "message"}):
        assert not holds_unsealed({"input": codec.raw([{**item, **change}])})
    assert not holds_unsealed({"input": codec.raw('the id "rs_gw0001"')})
    assert not holds_unsealed({})


@pytest.mark.parametrize("seal", ["gw1.anthropic.{", "gw1.anthropic.[]", "gw1..", "gw1."])
def test_a_broken_seal_is_no_failure(seal: str) -> None:
    said({"type": "reasoning", "summary": [], "encrypted_content": seal}, _user())


def test_a_choice_among_some_tools_is_read_and_written() -> None:
    tools = [
        {"type": "function", "name": "f"},
        {"type": "custom", "name": "g"},
        {"type": "web_search"},
    ]
    choice = {"type": "allowed_tools", "mode": "required", "tools": tools}
    asked = read({"input": "Hi", "tools": tools, "tool_choice": choice})

    assert asked.choice == ToolChoice("required", ("f", "g", "web_search"))
    assert write(asked)["tool_choice"] == choice


def test_a_choice_of_a_providers_own_tool_stays_in_the_format() -> None:
    asked = read(
        {"input": "Hi", "tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}}
    )

    assert asked.choice is None
    assert write(asked)["tool_choice"] == {"type": "web_search"}


@pytest.mark.bug("K34")
def test_unknown_fields_are_kept_for_the_same_format() -> None:
    asked = read({"input": "Hi", "new_field": {"a": 1}, "max_tool_calls": 3, "truncation": "auto"})

    assert asked.extra == {"new_field": {"a": 1}, "max_tool_calls": 3, "truncation": "auto"}
    assert write(asked)["new_field"] == {"a": 1}


@pytest.mark.bug("K34")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("previous_response_id", "resp_1"),
        ("conversation", "conv_1"),
        ("conversation", {"id": "conv_1"}),
        ("background", True),
        ("prompt", {"id": "pmpt_1"}),
    ],
)
def test_what_needs_stored_state_is_refused(field: str, value: object) -> None:
    with pytest.raises(InputError) as refused:
        read({"input": "Hi", field: value})

    assert refused.value.param == field
    read({"input": "Hi", field: None})


def test_to_ask_for_storing_is_answered_with_a_warning() -> None:
    notes = Notes()
    read({"input": "Hi", "store": True}, notes)
    assert len(notes.warnings) == 1

    read({"input": "Hi", "store": False}, notes)
    read({"input": "Hi"}, notes)
    assert len(notes.warnings) == 1


INVALID: list[tuple[Json, str | None]] = [
    ({}, "input"),
    ({"input": []}, "input"),
    ({"input": 7}, "input"),
    ({"input": [7]}, "input[0]"),
    ({"input": [{}]}, "input[0].type"),
    ({"input": [{"role": "wizard", "content": "x"}]}, "input[0].role"),
    ({"input": [{"role": "user", "content": [{"type": "poem"}]}]}, "input[0].content[0].type"),
    ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, None),
    ({"input": [{"role": "user", "content": [{"type": "input_file"}]}]}, "input[0].content[0]"),
    ({"input": [{"type": "function_call", "name": "f"}]}, "input[0].call_id"),
    (
        {"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": {}}]},
        "input[0].arguments",
    ),
    ({"input": [{"type": "function_call_output", "output": "x"}]}, "input[0].call_id"),
    ({"input": [{"type": "function_call_output", "call_id": "c"}]}, "input[0].output"),
    ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input[0]"),
    ({"input": [{"type": "reasoning", "summary": "x"}]}, "input[0].summary"),
    ({"input": "Hi", "tools": [{"type": "function"}]}, "tools[0].name"),
    ({"input": "Hi", "tools": [{}]}, "tools[0].type"),
    ({"input": "Hi", "tool_choice": "perhaps"}, "tool_choice"),
    ({"input": "Hi", "text": {"format": {"type": "yaml"}}}, "text.format.type"),
    ({"input": "Hi", "max_output_tokens": -1}, "max_output_tokens"),
    ({"input": "Hi", "temperature": "warm"}, "temperature"),
    ({"input": "Hi", "include": "all"}, "include"),
    ({"input": "Hi", "stream": "yes"}, "stream"),
    ({"input": "Hi", "reasoning": 3}, "reasoning"),
]


@pytest.mark.bug("K33", "K34")
@pytest.mark.parametrize(("body", "param"), INVALID)
def test_what_is_not_valid_is_refused_by_its_path(body: Json, param: str | None) -> None:
    with pytest.raises(InputError) as refused:
        read(body)

    assert refused.value.code == "invalid_request"
    assert param is None or refused.value.param == param
