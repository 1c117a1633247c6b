"""Any request becomes one that the format takes; what cannot be said is noted or refused."""

import base64
import json
from typing import Any

import pytest

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.core.message import (
    Audio,
    CacheMark,
    File,
    Format,
    Image,
    Message,
    Opaque,
    Part,
    Prompt,
    Sampling,
    ServerTool,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from gateway.dialects.losses import Notes
from gateway.dialects.messages.sides import MessagesTarget
from gateway.dialects.sides import Facts

Json = dict[str, Any]
TARGET = MessagesTarget()
HELLO = Message("user", (Text("Hello"),))
TOOLS = (Tool("f", parameters={"type": "object"}), Tool("g"))
SCHEMA: Json = {"type": "object", "properties": {"n": {"type": "integer"}}}


def ask(origin: str = "openai_chat", **settings: Any) -> Prompt:
    return Prompt(origin, settings.pop("messages", (HELLO,)), **settings)


def write(
    prompt: Prompt, model: str = "claude-sonnet-4-5", most: int | None = None
) -> tuple[Json, list[str]]:
    notes = Notes()
    fields = TARGET.write_request(prompt, Facts("anthropic", model, most), notes)
    return json.loads(codec.join(fields)), notes.warnings


CHOICES: dict[str, tuple[ToolChoice | None, Json | None]] = {
    "absent": (None, None),
    "auto": (ToolChoice("auto"), {"type": "auto"}),
    "none": (ToolChoice("none"), {"type": "none"}),
    "required": (ToolChoice("required"), {"type": "any"}),
    "named": (ToolChoice("named", ("f",)), {"type": "tool", "name": "f"}),
}


@pytest.mark.bug("B103")
@pytest.mark.parametrize("tools", [TOOLS, ()])
@pytest.mark.parametrize("parallel", [None, True, False])
@pytest.mark.parametrize("name", CHOICES)
def test_every_choice_of_tools_is_sent_as_it_was_meant(
    name: str, parallel: bool | None, tools: tuple[Tool, ...]
) -> None:
    choice, plain = CHOICES[name]
    body, warnings = write(ask(tools=tools, choice=choice, parallel=parallel))

    if not tools:
        assert "tool_choice" not in body
        assert bool(warnings) == (name in {"required", "named"})
        return
    if plain is None and parallel is not None:
        plain = {"type": "auto"}
    if plain is not None and parallel is not None and name != "none":
        plain = {**plain, "disable_parallel_tool_use": not parallel}
    assert plain == body.get("tool_choice")
    assert [] == warnings


def test_only_the_allowed_tools_are_offered() -> None:
    body, _ = write(ask(tools=TOOLS, choice=ToolChoice("required", ("g",))))

    assert ["g"] == [tool["name"] for tool in body["tools"]]
    assert {"type": "any"} == body["tool_choice"]


def test_a_tool_without_a_schema_takes_nothing() -> None:
    body, _ = write(ask(tools=(Tool("f"), Tool("g", parameters={"properties": {}}))))

    assert [{"type": "object", "properties": {}}] * 2 == [t["input_schema"] for t in body["tools"]]


def test_a_tool_of_another_provider_is_refused() -> None:
    tool = ServerTool("openai_responses", "file_search", {"type": "file_search"})
    with pytest.raises(InputError) as caught:
        write(ask(tools=(tool,)))
    assert "file_search" in caught.value.message


@pytest.mark.bug("B111")
@pytest.mark.parametrize(
    ("asked", "most", "sent", "noted"),
    [
        (None, None, 64_000, False),  # what the model itself gives at most
        (None, 4096, 4096, False),
        (None, 64_000, 64_000, False),
        (100, 64_000, 100, False),
        (100_000, 64_000, 64_000, True),
        (100_000, None, 100_000, False),
    ],
)
def test_there_is_always_a_limit(
    asked: int | None, most: int | None, sent: int, noted: bool
) -> None:
    body, warnings = write(ask(max_tokens=asked), most=most)

    assert sent == body["max_tokens"]
    assert noted == bool(warnings)


@pytest.mark.bug("B115")
def test_system_texts_come_first_and_in_order() -> None:
    messages = (
        Message("system", (Text("A"), Text("B", cache=CacheMark("1h")))),
        Message("developer", (Text("C"),)),
        HELLO,
    )
    body, _ = write(ask(messages=messages))

    assert body["system"] == [
        {"type": "text", "text": "A"},
        {"type": "text", "text": "B", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
        {"type": "text", "text": "C"},
    ]
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}]


@pytest.mark.bug("B105")
def test_results_and_what_is_said_behind_them_are_one_message() -> None:
    messages = (
        HELLO,
        Message("assistant", (ToolCall("a", "f", '{"x": 1}'), ToolCall("b", "f"))),
        Message("tool", (ToolResult("a", (Text("1"),)), ToolResult("b", is_error=True))),
        Message("user", (Text("go on"),)),
    )
    body, _ = write(ask(messages=messages))

    assert body["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
                {"type": "tool_use", "id": "b", "name": "f", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "1"},
                {"type": "tool_result", "tool_use_id": "b", "is_error": True},
                {"type": "text", "text": "go on"},
            ],
        },
    ]


@pytest.mark.bug("B109")
def test_cache_markers_stay_where_they_are() -> None:
    mark = CacheMark()
    messages = (
        Message("user", (Text("a", cache=mark), Image(url="https://example.com/a", cache=mark))),
        Message("assistant", (ToolCall("a", "f", cache=mark),)),
        Message("tool", (ToolResult("a", (Text("1", cache=mark),), cache=mark),)),
    )
    body, _ = write(ask(messages=messages, tools=(Tool("f", cache=mark),)))

    marked = {"type": "ephemeral"}
    user, model, result = (message["content"] for message in body["messages"])
    assert [marked, marked] == [block["cache_control"] for block in user]
    assert marked == model[0]["cache_control"]
    assert marked == result[0]["cache_control"] == result[0]["content"][0]["cache_control"]
    assert marked == body["tools"][0]["cache_control"]


def data(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.bug("B110")
@pytest.mark.parametrize(
    ("part", "source"),
    [
        (Image("image/jpg", data="/9j/4A=="), {"type": "base64", "media_type": "image/jpeg", "data": "/9j/4A=="}),
        (Image(data="iVBORw0K"), {"type": "base64", "media_type": "image/png", "data": "iVBORw0K"}),
        (Image(url="https://example.com/a"), {"type": "url", "url": "https://example.com/a"}),
        (File(data="JVBERi0x"), {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0x"}),
        (File("text/csv", data=data("a,b")), {"type": "text", "media_type": "text/plain", "data": "a,b"}),
        (File("image/png", data="iVBORw0K"), {"type": "base64", "media_type": "image/png", "data": "iVBORw0K"}),
        (File("image/png", url="https://example.com/a"), {"type": "url", "url": "https://example.com/a"}),
        (File(text="plain"), {"type": "text", "media_type": "text/plain", "data": "plain"}),
        (File(url="https://example.com/a"), {"type": "url", "url": "https://example.com/a"}),
    ],
)  # fmt: skip
def test_pictures_and_files_are_sent(part: Part, source: Json) -> None:
    body, warnings = write(ask(messages=(Message("user", (part,)),)))
    (block,) = body["messages"][0]["content"]

    assert source == block["source"]
    assert [] == warnings


@pytest.mark.bug("B110")
@pytest.mark.parametrize(
    "part",
    [
        Audio(data="AAAA", format="wav"),
        Image("image/tiff", data="AAAA"),
        Image(file_id="file-1"),
        File(file_id="file-1"),
        File("application/msword", data="AAAA"),
        File("video/mp4", url="https://example.com/a.mp4"),
        File("text/plain", data="no base64"),
    ],
)
def test_what_it_cannot_take_is_refused(part: Part) -> None:
    with pytest.raises(InputError) as caught:
        write(ask(messages=(Message("user", (part,)),)))
    assert "invalid_request" == caught.value.code


@pytest.mark.bug("B112")
@pytest.mark.parametrize("arguments", ['{"a":', "null", "[1]", '"x"', '{"a":NaN}'])
def test_arguments_that_are_no_object_are_refused(arguments: str) -> None:
    with pytest.raises(InputError) as caught:
        write(ask(messages=(HELLO, Message("assistant", (ToolCall("call_1", "f", arguments),)))))
    assert "call_1" in caught.value.message


@pytest.mark.bug("B112")
@pytest.mark.parametrize("arguments", ["", "  ", "{}"])
def test_no_arguments_are_an_empty_input(arguments: str) -> None:
    body, _ = write(ask(messages=(HELLO, Message("assistant", (ToolCall("c", "f", arguments),)))))

    assert {} == body["messages"][1]["content"][0]["input"]


def test_items_of_other_providers_are_noted() -> None:
    item = Opaque("openai_responses", "web_search_call", {"type": "web_search_call"})
    body, warnings = write(ask(messages=(HELLO, Message("assistant", (item, Text("a"))))))

    assert [{"type": "text", "text": "a"}] == body["messages"][1]["content"]
    assert 1 == len(warnings)


@pytest.mark.bug("K34")
def test_every_setting_without_a_counterpart_is_named() -> None:
    sampling = Sampling(
        seed=1, presence_penalty=0.5, frequency_penalty=0.5, logit_bias={"1": 1}, logprobs=True
    )
    body, warnings = write(
        ask(
            sampling=sampling,
            verbosity="low",
            store=True,
            cache_key="k",
            metadata={"a": "b"},
            service_tier="flex",
            extra={"prediction": {}},
        )
    )

    named = {warning.partition(":")[0] for warning in warnings}
    assert named == {
        "seed", "presence_penalty", "frequency_penalty", "logit_bias", "logprobs", "verbosity",
        "store", "prompt_cache_key", "metadata", "service_tier", "prediction",
    }  # fmt: skip
    assert {"messages", "max_tokens"} == body.keys()


def test_settings_with_a_counterpart_are_sent() -> None:
    sampling = Sampling(temperature=0.5, top_k=4, stop=("END",))
    body, warnings = write(ask(sampling=sampling, user="u", service_tier="default"))

    assert {"temperature": 0.5, "top_k": 4, "stop_sequences": ["END"]}.items() <= body.items()
    assert ({"user_id": "u"}, "standard_only") == (body["metadata"], body["service_tier"])
    assert [] == warnings


def test_several_answers_are_refused() -> None:
    with pytest.raises(InputError):
        write(ask(sampling=Sampling(n=2)))


@pytest.mark.parametrize(
    ("model", "sampling", "sent", "noted"),
    [
        ("claude-sonnet-4-5", Sampling(temperature=1.7), {"temperature": 1.0}, {"temperature"}),
        ("claude-sonnet-4-5", Sampling(temperature=0.5, top_p=0.5), {"temperature": 0.5}, {"top_p"}),
        ("claude-3-5-haiku", Sampling(temperature=0.5, top_p=0.5), {"temperature": 0.5, "top_p": 0.5}, set[str]()),
        ("claude-opus-4-7", Sampling(temperature=0.5, top_p=0.5, top_k=4), {}, {"temperature", "top_p", "top_k"}),
        ("claude-opus-4-7", Sampling(temperature=1.0), {"temperature": 1.0}, set[str]()),
    ],
)  # fmt: skip
def test_sampling_is_what_the_model_takes(
    model: str, sampling: Sampling, sent: Json, noted: set[str]
) -> None:
    body, warnings = write(ask(sampling=sampling), model)

    assert sent == {key: body[key] for key in ("temperature", "top_p", "top_k") if key in body}
    assert noted == {warning.partition(":")[0] for warning in warnings}


def test_a_schema_is_closed_and_what_it_cannot_say_moves_into_words() -> None:
    schema: Json = {
        "type": "object",
        "properties": {
            "minimum": {"type": "integer", "minimum": 3, "description": "n"},
            "all": {"type": "array", "items": {"type": "object", "properties": {}}},
            "one": {"oneOf": [{"$ref": "#/$defs/d"}, {"type": "null"}]},
        },
        "$defs": {"d": {"type": "object", "additionalProperties": True}},
    }
    body, warnings = write(ask(format=Format("schema", "n", schema, strict=True)))

    sent = body["output_config"]["format"]
    assert sent == {
        "type": "json_schema",
        "schema": {
            "type": "object",
            "properties": {
                "minimum": {"type": "integer", "description": 'n\n\n{"minimum":3}'},
                "all": {
                    "type": "array",
                    "items": {"type": "object", "properties": {}, "additionalProperties": False},
                },
                "one": {"anyOf": [{"$ref": "#/$defs/d"}, {"type": "null"}]},
            },
            "$defs": {"d": {"type": "object", "additionalProperties": False}},
            "additionalProperties": False,
        },
    }
    assert ["response_format"] == [warning.partition(":")[0] for warning in warnings]


def test_closing_a_schema_alone_is_no_change() -> None:
    body, warnings = write(ask(format=Format("schema", schema=SCHEMA)))

    assert {**SCHEMA, "additionalProperties": False} == body["output_config"]["format"]["schema"]
    assert [] == warnings


@pytest.mark.parametrize(
    ("model", "form"),
    [("claude-sonnet-4", Format("schema", schema=SCHEMA)), ("claude-opus-4-5", Format("json"))],
)
def test_a_form_that_the_model_does_not_know_is_never_left_out(model: str, form: Format) -> None:
    with pytest.raises(InputError, match="response_format: is a form of answers"):
        write(ask(format=form), model)


def test_the_beginning_of_an_answer_ends_without_blanks() -> None:
    messages = (HELLO, Message("assistant", (Text("Well, "),)))
    body, _ = write(ask(messages=messages))

    assert "Well," == body["messages"][1]["content"][0]["text"]


def test_alternatives_at_the_top_of_a_schema_are_joined() -> None:
    def needs(name: str) -> Json:
        return {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}

    schema: Json = {"anyOf": [needs("a"), needs("b")], "allOf": [needs("c")]}
    body, warnings = write(ask(tools=(Tool("f", parameters=schema),)))

    sent = body["tools"][0]["input_schema"]
    assert ("object", {"a", "b", "c"}, ["c"]) == (
        sent["type"], set(sent["properties"]), sent["required"],
    )  # fmt: skip
    assert 1 == len(warnings)


def test_a_custom_tool_takes_its_text_as_input() -> None:
    messages = (HELLO, Message("assistant", (ToolCall("c", "patch", "*** x", custom=True),)))
    body, _ = write(ask(messages=messages, tools=(Tool("patch", custom=True),)))

    assert {"input": "*** x"} == body["messages"][1]["content"][0]["input"]
    assert ["input"] == body["tools"][0]["input_schema"]["required"]
