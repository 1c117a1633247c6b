"""What a caller's chat request says is read; what is not valid is refused by its path, never a crash (K34, B110)."""

import json
from collections.abc import Iterator
from typing import Any, cast

import pytest

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.core.message import (
    Audio,
    CacheMark,
    Citation,
    File,
    Format,
    Image,
    Message,
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
from gateway.dialects.chat.side import ChatSide
from gateway.dialects.losses import Notes

Json = dict[str, Any]
PNG = "data:image/png;base64,iVBORw0KGgo="
HELLO: list[Any] = [{"role": "user", "content": "Hello"}]
LOOK_UP = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}
CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "look_up", "arguments": '{"a": 1}'},
}
FULL: Json = {
    "model": "some-model",
    "messages": [
        {"role": "developer", "content": [{"type": "text", "text": "Be brief."}], "name": "boss"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is it?", "cache_control": {"type": "ephemeral"}},
                {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}},
                {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
                {
                    "type": "file",
                    "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"},
                },
                {"type": "video_url", "video_url": {"url": "https://example.com/a.mp4"}},
            ],
        },
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "Hm."}, {"type": "refusal", "refusal": "No."}],
            "reasoning_content": "I think",
            "reasoning_details": [
                {
                    "type": "reasoning.text",
                    "text": "I think",
                    "signature": "c2ln",
                    "format": "anthropic",
                    "index": 0,
                }
            ],
            "annotations": [{"type": "url_citation", "url_citation": {"url": "https://a.b"}}],
            "audio": {"id": "audio_1"},
            "tool_calls": [
                {**CALL, "extra_content": {"google": {"thought_signature": "c2ln"}}},
                {"id": "call_2", "type": "custom", "custom": {"name": "run", "input": "ls"}},
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "42"},
        {
            "role": "tool",
            "tool_call_id": "call_2",
            "content": [{"type": "text", "text": "a"}],
            "cache_control": {"type": "ephemeral", "ttl": "1h"},
        },
        {
            "role": "assistant",
            "content": None,
            "function_call": {"name": "old", "arguments": "{}"},
            "thinking_blocks": [{"type": "thinking", "thinking": "so", "signature": "c2ln"}],
        },
        {"role": "function", "name": "old", "content": "done"},
    ],
    "tools": [
        {**LOOK_UP, "cache_control": {"type": "ephemeral"}},
        {"type": "custom", "custom": {"name": "run", "format": {"type": "text"}}},
    ],
    "functions": [{"name": "old", "parameters": {}}],
    "tool_choice": {
        "type": "allowed_tools",
        "allowed_tools": {
            "mode": "auto",
            "tools": [{"type": "function", "function": {"name": "a"}}],
        },
    },
    "function_call": {"name": "old"},
    "parallel_tool_calls": True,
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "x", "schema": {"type": "object"}, "strict": True},
    },
    "reasoning_effort": "low",
    "reasoning": {"effort": "high", "max_tokens": 100, "enabled": True},
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "verbosity": "low",
    "stop": ["a", "b"],
    "n": 2,
    "seed": 7,
    "logprobs": True,
    "top_logprobs": 2,
    "max_tokens": 10,
    "max_completion_tokens": 20,
    "temperature": 0.5,
    "top_p": 1,
    "top_k": 40,
    "presence_penalty": 0.1,
    "frequency_penalty": 0.1,
    "logit_bias": {"50256": -100},
    "stream": True,
    "stream_options": {"include_usage": True},
    "prompt_cache_key": "key",
    "metadata": {"a": "b"},
    "user": "me",
    "safety_identifier": "other",
    "service_tier": "flex",
    "store": False,
    "min_p": 0.1,
}


def read(body: Json) -> Prompt:
    return ChatSide().read_request(codec.split(json.dumps(body).encode()), Notes())


def messages(*said: Json) -> tuple[Message, ...]:
    return read({"messages": said}).messages


def assistant(**said: Any) -> tuple[Any, ...]:
    return messages({"role": "assistant", **said})[0].parts


def test_every_setting_is_read() -> None:
    prompt = read({**FULL, "messages": HELLO, "functions": None})

    assert prompt == Prompt(
        origin="openai_chat",
        messages=(Message("user", (Text("Hello"),)),),
        tools=(
            Tool("look_up", parameters={"type": "object"}, cache=CacheMark()),
            Tool("run", custom=True, format={"type": "text"}),
        ),
        choice=ToolChoice("auto", ("a",)),
        parallel=True,
        max_tokens=20,
        sampling=Sampling(0.5, 1, 40, 7, 0.1, 0.1, {"50256": -100}, True, 2, 2, ("a", "b")),
        format=Format("schema", "x", {"type": "object"}, True),
        reasoning=Reasoning(True, "high", 100),
        verbosity="low",
        stream=True,
        include_usage=True,
        user="me",
        metadata={"a": "b"},
        service_tier="flex",
        store=False,
        cache_key="key",
        extra={"safety_identifier": "other", "min_p": 0.1},
    )


def test_every_part_of_a_history_is_read() -> None:
    developer, user, said, results, old, done = read(FULL).messages

    assert developer == Message("developer", (Text("Be brief."),), "boss")
    assert user.parts == (
        Text("What is it?", CacheMark()),
        Image("image/png", "iVBORw0KGgo=", detail="low"),
        Audio("UklGRg==", "wav"),
        File("application/pdf", "JVBE", name="a.pdf"),
        File("video/mp4", url="https://example.com/a.mp4"),
    )
    cited = Citation("openai_chat", {"url": "https://a.b"}, url="https://a.b")
    assert said.parts == (
        Thinking("I think", signature="c2ln", maker="anthropic"),
        Text("Hm.", citations=(cited,)),
        Refusal("No."),
        Audio(id="audio_1"),
        ToolCall("call_1", "look_up", '{"a": 1}', signature="c2ln", maker="gemini"),
        ToolCall("call_2", "run", "ls", custom=True),
    )
    assert results == Message(
        "tool",
        (
            ToolResult("call_1", (Text("42"),)),
            ToolResult("call_2", (Text("a"),), custom=True, cache=CacheMark("1h")),
        ),
    )
    assert old.parts == (
        Thinking("so", signature="c2ln", maker="anthropic"),
        ToolCall("call_legacy_4", "old", "{}"),
    )
    assert done.parts == (ToolResult("call_legacy_4", (Text("done"),), name="old"),)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("auto", ToolChoice()),
        ("none", ToolChoice("none")),
        ("required", ToolChoice("required")),
        ({"type": "function", "function": {"name": "a"}}, ToolChoice("named", ("a",))),
        ({"type": "custom", "custom": {"name": "a"}}, ToolChoice("named", ("a",), custom=True)),
        (
            {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "a"}],
            },
            ToolChoice("required", ("a",)),
        ),
    ],
)
def test_every_choice_of_tools_is_read(choice: Any, expected: ToolChoice) -> None:
    assert read({"messages": HELLO, "tool_choice": choice}).choice == expected


def test_functions_of_old_are_tools() -> None:
    prompt = read(
        {"messages": HELLO, "functions": [{"name": "old"}], "function_call": {"name": "old"}}
    )

    assert [tool.name for tool in prompt.tools if isinstance(tool, Tool)] == ["old"]
    assert prompt.choice == ToolChoice("named", ("old",))


def test_a_tool_of_an_unknown_kind_is_kept_for_those_that_know_it() -> None:
    tool = {"type": "web_search", "depth": 2}

    assert read({"messages": HELLO, "tools": [tool]}).tools == (
        ServerTool("openai_chat", "web_search", tool),
    )


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"reasoning_effort": "none"}, Reasoning(enabled=False, effort="none")),
        ({"reasoning_effort": "xhigh"}, Reasoning(effort="xhigh")),
        ({"reasoning": {"max_tokens": 500}}, Reasoning(enabled=True, budget=500)),
        (
            {"reasoning": {"enabled": True, "exclude": True}},
            Reasoning(True, extra={"exclude": True}),
        ),
        ({"thinking": {"type": "disabled"}}, Reasoning(enabled=False)),
        ({"thinking": {"type": "enabled", "budget_tokens": 9}}, Reasoning(True, budget=9)),
        ({"reasoning": {}}, None),
        ({}, None),
    ],
)
def test_every_way_to_ask_for_thinking_is_read(fields: Json, expected: Reasoning | None) -> None:
    assert read({"messages": HELLO, **fields}).reasoning == expected


def test_a_switch_of_thinking_that_nobody_knows_is_refused() -> None:
    with pytest.raises(InputError) as refused:
        read({"messages": HELLO, "thinking": {"type": "enabledQ", "budget_tokens": 2000}})
    assert (refused.value.code, refused.value.param) == ("invalid_request", "thinking.type")


@pytest.mark.bug("B110")
@pytest.mark.parametrize(
    ("url", "kind", "data"),
    [
        (PNG, "image/png", "iVBORw0KGgo="),
        ("data:image/jpg;base64,/9j/4A==", "image/jpeg", "/9j/4A=="),
        ("data:;base64,R0lGODlh", "image/gif", "R0lGODlh"),
        ("data:image/svg+xml;charset=utf-8,%3Csvg/%3E", "image/svg+xml", "PHN2Zy8+"),
    ],
)
def test_a_picture_inside_of_its_address_is_read(url: str, kind: str, data: str) -> None:
    said = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}

    assert messages(said)[0].parts == (Image(kind, data),)


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ({"file_id": "file-1"}, File(file_id="file-1")),
        (
            {"file_id": "https://a.b/c.pdf"},
            File("application/pdf", url="https://a.b/c.pdf"),
        ),
        ({"file_data": "JVBERi0x", "filename": "x"}, File("application/pdf", "JVBERi0x", name="x")),
        ({"file_data": "aGk=", "filename": "x.txt"}, File("text/plain", "aGk=", name="x.txt")),
    ],
)
def test_every_way_to_give_a_file_is_read(file: Json, expected: File) -> None:
    said = {"role": "user", "content": [{"type": "file", "file": file}]}

    assert messages(said)[0].parts == (expected,)


@pytest.mark.bug("K33", "B102")
def test_a_message_of_calls_has_no_text_however_it_says_so() -> None:
    forms: list[Json] = [{}, {"content": None}, {"content": ""}, {"content": []}]

    for form in forms:
        assert assistant(tool_calls=[CALL], **form) == (ToolCall("call_1", "look_up", '{"a": 1}'),)


@pytest.mark.bug("K32", "B100")
def test_reasoning_that_is_told_twice_counts_once() -> None:
    sealed = {"type": "reasoning.text", "text": "b", "signature": "s", "format": "anthropic"}
    expected = Thinking("b", signature="s", maker="anthropic")

    assert assistant(reasoning_content="b", reasoning_details=[sealed]) == (expected,)
    assert assistant(reasoning="b", reasoning_content="b") == (Thinking("b"),)
    assert assistant(reasoning_content="abc", reasoning_details=[sealed]) == (
        Thinking("a"),
        expected,
        Thinking("c"),
    )


@pytest.mark.bug("K32", "B120")
def test_what_openrouter_sealed_is_kept_whole() -> None:
    entry = {
        "type": "reasoning.text",
        "text": "b",
        "signature": "s",
        "format": "anthropic-claude-v1",
        "index": 0,
    }
    (part,) = assistant(reasoning="b", reasoning_details=[entry])

    assert (part.text, part.maker) == ("b", "openrouter")
    assert json.loads(part.signature) == {k: v for k, v in entry.items() if k != "text"}


@pytest.mark.bug("B109")
def test_a_marker_beside_a_text_marks_the_text() -> None:
    mark = {"type": "ephemeral", "ttl": "1h"}

    assert messages({"role": "system", "content": "Hi", "cache_control": mark})[0].parts == (
        Text("Hi", CacheMark("1h")),
    )


WRONG: list[tuple[Json, str]] = [
    ({"role": "robot", "content": "x"}, "messages[0].role"),
    ({"content": "x"}, "messages[0].role"),
    ({"role": "user"}, "messages[0].content"),
    ({"role": "user", "content": [{"type": "hologram"}]}, "messages[0].content[0].type"),
    ({"role": "user", "content": [{"type": "text", "text": 1}]}, "messages[0].content[0].text"),
    (
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:x"}}]},
        "messages[0].content[0].image_url.url",
    ),
    ({"role": "system", "content": [{"type": "refusal"}]}, "messages[0].content[0].type"),
    ({"role": "tool", "content": "x"}, "messages[0].tool_call_id"),
    (
        {"role": "assistant", "tool_calls": [{"id": "a", "type": "function"}]},
        "messages[0].tool_calls[0].function",
    ),
    (
        {
            "role": "assistant",
            "tool_calls": [{"id": "a", "function": {"name": "b", "arguments": {}}}],
        },
        "messages[0].tool_calls[0].function.arguments",
    ),
]


@pytest.mark.bug("K34")
@pytest.mark.parametrize(("said", "param"), WRONG)
def test_what_is_wrong_in_a_message_is_named(said: Json, param: str) -> None:
    with pytest.raises(InputError) as refused:
        messages(said)

    assert refused.value.param == param
    assert refused.value.code == "invalid_request"
    assert param in refused.value.message


def nodes(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of every value inside of another."""
    yield path
    for key in keys(value):
        yield from nodes(value[key], (*path, key))


def keys(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(cast("Json", value))
    return list(range(len(cast("list[Any]", value)))) if isinstance(value, list) else []


def changed(value: Any, path: tuple[Any, ...], to: Any) -> Any:
    """Return a copy of a value with another one at this place."""
    if not path:
        return to
    copy = value.copy()
    copy[path[0]] = changed(value[path[0]], path[1:], to)
    return copy


def outcome(body: Json) -> Prompt | InputError:
    try:
        return read(body)
    except InputError as refused:
        return refused


ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 2**60, "", "x", "data:,"),
    *([], [None], ["x"], {}, {"type": "x"}),
)


@pytest.mark.bug("K33", "K34", "B112")
def test_no_change_of_a_valid_request_makes_it_crash() -> None:
    read(FULL)
    for field, value in FULL.items():
        alone = {"messages": HELLO, field: value}
        for path in nodes(value):
            for to in ODD:
                said = outcome(changed(alone, (field, *path), to))
                if isinstance(said, InputError):
                    assert said.code == "invalid_request", (field, path, to)
                    assert said.param, (field, path, to)
