"""The built-in echo: honest, the same every time, and in the shapes that clients know."""

import base64
import json
import struct
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from openai.types import Completion, CreateEmbeddingResponse, Model, ModerationCreateResponse
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from gateway.providers.echo import EchoAnswer, answer
from gateway.providers.echo_schema import instance_of
from tests.support.grammar import breaches

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "minLength": 1},
                    "days": {"type": "integer", "minimum": 2},
                },
                "required": ["city", "days"],
            },
        },
    }
    for name in ("weather", "news")
]


def ask(text: object, **fields: Any) -> dict[str, Any]:
    return {"model": "echo", "messages": [{"role": "user", "content": text}], **fields}


def whole(given: EchoAnswer) -> Any:
    assert given.status == 200
    assert isinstance(given.body, bytes)
    return json.loads(given.body)


def streamed(given: EchoAnswer) -> bytes:
    assert given.status == 200
    assert given.headers == ((b"content-type", b"text/event-stream"),)
    assert isinstance(given.body, Iterator)
    return b"".join(given.body)


def chunks(body: bytes) -> list[ChatCompletionChunk]:
    parts = [part[6:] for part in body.split(b"\n\n") if part]
    return [ChatCompletionChunk.model_validate_json(part, strict=True) for part in parts[:-1]]


REQUESTS: dict[str, dict[str, Any]] = {
    "text": ask("hello there"),
    "unicode": ask("\u00e9 \U0001f600\n\n  data: [DONE]"),
    "empty": ask(""),
    "parts": ask(
        [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "x"}}]
    ),
    "several": ask("hello", n=3),
    "limit": ask("hello", max_tokens=4),
    "stop": ask("hello", stop=["built-in"]),
    "named": ask("please call weather and call news", tools=TOOLS),
    "one": ask("call weather, call news", tools=TOOLS, parallel_tool_calls=False),
    "required": ask("hello", tools=TOOLS, tool_choice="required"),
    "chosen": ask(
        "hello", tools=TOOLS, tool_choice={"type": "function", "function": {"name": "news"}}
    ),
    "unasked": ask("hello", tools=TOOLS),
    "none": ask("call weather", tools=TOOLS, tool_choice="none"),
    "object": ask("hello", response_format={"type": "json_object"}),
}


@pytest.mark.bug("K02")
@pytest.mark.parametrize("asks_usage", [True, False], ids=["usage", "no-usage"])
@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_a_stream_keeps_the_grammar_and_says_what_the_whole_says(
    request_: dict[str, Any], asks_usage: bool
) -> None:
    said = ChatCompletion.model_validate(whole(answer("chat/completions", request_)), strict=True)
    options: dict[str, Any] = {"stream": True}
    if asks_usage:
        options["stream_options"] = {"include_usage": True}
    body = streamed(answer("chat", {**request_, **options}))

    assert breaches(body, asks_usage=asks_usage, count=request_.get("n", 1)) == []
    told = chunks(body)
    deltas = [part.choices[0] for part in told if part.choices and part.choices[0].index == 0]
    text = "".join(part.delta.content or "" for part in deltas)
    assert text == (said.choices[0].message.content or "")
    assert deltas[-1].finish_reason == said.choices[0].finish_reason
    calls: dict[int, str] = {}
    for part in deltas:
        for call in part.delta.tool_calls or []:
            assert call.function is not None
            calls[call.index] = calls.get(call.index, "") + (call.function.arguments or "")
    whole_calls = said.choices[0].message.tool_calls or []
    assert list(calls.values()) == [
        call.function.arguments for call in whole_calls if call.type == "function"
    ]
    if asks_usage:
        assert told[-1].usage == said.usage


def text_of(**fields: Any) -> str:
    return whole(answer("chat", fields))["choices"][0]["message"]["content"]


def test_it_says_what_it_is_and_repeats_the_last_words() -> None:
    text = text_of(**ask("how are you"))

    assert "echo" in text
    assert "no model was asked" in text
    assert text.endswith("how are you")


def test_the_same_request_has_the_same_answer() -> None:
    assert answer("chat", ask("a")) == answer("chat", ask("a"))
    assert whole(answer("chat", ask("a")))["id"] != whole(answer("chat", ask("b")))["id"]


def calls_of(**fields: Any) -> list[tuple[str, Any]]:
    message = whole(answer("chat", fields))["choices"][0]["message"]
    calls = message.get("tool_calls", [])
    return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]


def test_tools_are_called_when_the_text_or_the_choice_says_so() -> None:
    given = {"city": "x", "days": 2}

    assert calls_of(**REQUESTS["named"]) == [("weather", given), ("news", given)]
    assert calls_of(**REQUESTS["one"]) == [("weather", given)]
    assert calls_of(**REQUESTS["required"]) == [("weather", given)]
    assert calls_of(**REQUESTS["chosen"]) == [("news", given)]
    assert calls_of(**REQUESTS["unasked"]) == []
    assert calls_of(**REQUESTS["none"]) == []
    assert calls_of(**ask("call weatherman", tools=TOOLS)) == []


def test_a_tools_answer_is_told_not_called_again() -> None:
    request = ask("call weather", tools=TOOLS)
    request["messages"] += [
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "tool", "tool_call_id": "x", "content": "sunny"},
    ]

    assert calls_of(**request) == []
    assert text_of(**request).endswith("The tool said: sunny")


def test_a_limit_cuts_after_so_many_words() -> None:
    said = whole(answer("chat", REQUESTS["limit"]))

    assert said["choices"][0]["message"]["content"] == "This is the built-in"
    assert said["choices"][0]["finish_reason"] == "length"
    assert said["usage"] == {"prompt_tokens": 1, "completion_tokens": 4, "total_tokens": 5}


def test_a_schema_is_filled() -> None:
    schema = TOOLS[0]["function"]["parameters"]
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}

    assert json.loads(text_of(**ask("hello", response_format=wanted))) == {"city": "x", "days": 2}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"messages": []},
        {"messages": "hi"},
        {"messages": ["hi"]},
        {"messages": [{"content": "x"}]},
        ask("x", n=0),
        ask("x", n="2"),
        ask("x", max_tokens=0),
        ask("x", tools=TOOLS, tool_choice={"type": "function", "function": {"name": "gone"}}),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_a_wrong_request_is_refused_before_anything_is_said(
    body: dict[str, Any], stream: bool
) -> None:
    refused = answer("chat", {**body, "stream": stream})

    assert refused.status == 400
    assert isinstance(refused.body, bytes)
    assert json.loads(refused.body)["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("prompt", ["a b", ["a", "b"], [1, 2], [[1], [2]]])
def test_completions_have_their_shapes(prompt: object) -> None:
    body = {"model": "echo", "prompt": prompt, "n": 2}
    said = Completion.model_validate(whole(answer("completions", body)), strict=True)
    options = {"stream": True, "stream_options": {"include_usage": True}}
    stream = streamed(answer("completions", {**body, **options}))

    count = len(said.choices)
    assert breaches(stream, asks_usage=True, endpoint="completions", count=count) == []
    assert answer("completions", {"prompt": []}).status == 400


@pytest.mark.parametrize("inputs", ["a b", ["a", "b c"], [1, 2, 3], [[1, 2], [3]]])
def test_embeddings_are_unit_vectors_in_both_formats(inputs: object) -> None:
    plain = whole(answer("embeddings", {"model": "echo", "input": inputs, "dimensions": 10}))
    packed = whole(
        answer(
            "embeddings",
            {"model": "echo", "input": inputs, "dimensions": 10, "encoding_format": "base64"},
        )
    )

    CreateEmbeddingResponse.model_validate(plain, strict=True)
    for one, other in zip(plain["data"], packed["data"], strict=True):
        assert list(struct.unpack("<10f", base64.b64decode(other["embedding"]))) == one["embedding"]
        assert sum(x * x for x in one["embedding"]) == pytest.approx(1.0, abs=1e-5)
    assert plain["usage"]["prompt_tokens"] in {2, 3}


def test_equal_inputs_have_equal_vectors_and_others_do_not() -> None:
    data = whole(answer("embeddings", {"model": "echo", "input": ["a", "b", "a"]}))["data"]

    assert data[0]["embedding"] == data[2]["embedding"]
    assert data[0]["embedding"] != data[1]["embedding"]
    assert len(data[0]["embedding"]) == 256
    wrong: list[dict[str, Any]] = [
        {"input": []},
        {"input": None},
        {"input": "a", "dimensions": 0},
        {"input": "a", "dimensions": "9"},
    ]
    assert {answer("embeddings", body).status for body in wrong} == {400}


def test_moderations_flag_nothing_and_say_that_nothing_was_checked() -> None:
    said = ModerationCreateResponse.model_validate(
        whole(answer("moderations", {"input": ["a", "b"]}))
    )

    assert [result.flagged for result in said.results] == [False, False]
    assert "unchecked" in said.model


def test_models_are_listed_and_the_rest_is_not_there() -> None:
    assert (
        Model.model_validate(whole(answer("/models?x=1", {}))["data"][0], strict=True).id == "echo"
    )
    assert answer("images/generations", {}).status == 404


# ---------------------------------------------------------------- schemas

SCHEMAS: list[dict[str, Any]] = [
    {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
    {"type": "object", "properties": {"a": {"type": "string"}}},
    {"type": "array", "items": {"enum": ["x"]}, "minItems": 2},
    {"type": ["null", "integer"], "minimum": 3, "multipleOf": 5},
    {"type": "integer", "exclusiveMinimum": 0},
    {"type": "integer", "maximum": -3},
    {"type": "number", "exclusiveMaximum": 0, "multipleOf": 0.5},
    {"type": "boolean"},
    {"type": "null"},
    {"const": {"a": 1}},
    {"default": [1]},
    {"anyOf": [{"type": "integer"}, {"type": "string"}]},
    {"allOf": [{"properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"required": ["b"]}]},
    {"$defs": {"N": {"type": "string", "format": "uuid"}}, "$ref": "#/$defs/N"},
    {
        "$defs": {
            "N": {
                "type": "object",
                "properties": {"next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/N"}]}},
            }
        },
        "properties": {"n": {"$ref": "#/$defs/N"}},
        "required": ["n"],
    },
    {"type": "string", "format": "date-time", "minLength": 3},
    {},
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=range(len(SCHEMAS)))
def test_an_instance_keeps_its_schema(schema: dict[str, Any]) -> None:
    made = instance_of(schema)

    jsonschema.validate(made, schema)
    assert json.dumps(made)


HUNGRY: dict[str, Any] = {
    "type": "object",
    "properties": {name: {"$ref": "#"} for name in "abcdef"}
    | {"g": {"type": "array", "minItems": 99, "items": {"$ref": "#"}}},
    "required": list("gabcdef"),
}


@pytest.mark.bug("K38")
@pytest.mark.parametrize(
    "schema",
    [
        HUNGRY,
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"type": "string", "minLength": 10**12},
        {"required": ["x" * 99999]},
    ],
)
def test_no_schema_is_hungry_enough_to_hurt(schema: dict[str, Any]) -> None:
    assert len(json.dumps(instance_of(schema))) < 200_000


KEYWORDS = [
    "type",
    "properties",
    "required",
    "items",
    "$ref",
    "anyOf",
    "allOf",
    "enum",
    "minItems",
    "minLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "a",
]
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["#", "object", "array", "a"])
)


@example({"required": None, "properties": 1, "anyOf": [None]})
@example({"type": "number", "minimum": 1e300, "multipleOf": 1e-300})
@given(
    st.recursive(
        LEAVES,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=4)
        ),
        max_leaves=12,
    )
)
def test_no_schema_is_odd_enough_to_fail(schema: object) -> None:
    json.dumps(instance_of(schema))


FIELDS = [
    "messages",
    "role",
    "content",
    "tools",
    "function",
    "name",
    "parameters",
    "tool_choice",
    "stop",
    "response_format",
    "json_schema",
    "schema",
    "type",
    "text",
    "n",
    "max_tokens",
    "prompt",
    "input",
    "stream",
    "stream_options",
    "dimensions",
    "encoding_format",
]


@example(
    {"messages": [{"role": "user", "content": [{"text": 1}, None]}], "stop": 5, "tools": [None, {}]}
)
@given(
    st.dictionaries(
        st.sampled_from(FIELDS),
        st.recursive(
            LEAVES | st.just("user"),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3)
            ),
            max_leaves=8,
        ),
    )
)
def test_no_request_is_odd_enough_to_fail(body: dict[str, Any]) -> None:
    for endpoint in ("chat", "completions", "embeddings", "moderations"):
        given_answer = answer(endpoint, body)
        if not isinstance(given_answer.body, bytes):
            assert b"".join(given_answer.body).endswith(b"data: [DONE]\n\n")
