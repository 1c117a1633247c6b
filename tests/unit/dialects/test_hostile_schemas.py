"""Schemas of any shape at every target: written, told of, or refused; never an error of the gateway's own (K33)."""

from random import Random
from typing import Any

import pytest

from gateway.core.errors import InputError
from gateway.core.message import Format, Message, Prompt, Text, Tool
from gateway.dialects.fit.prompt import fit
from gateway.dialects.losses import Notes
from gateway.dialects.registry import TARGETS
from gateway.dialects.sides import Facts
from tests.support.rounds import rounds

Json = dict[str, Any]
AIMS = (
    ("anthropic_messages", Facts("anthropic", "claude-opus-4-5")),
    ("bedrock_anthropic", Facts("bedrock", "anthropic.claude-opus-4-5")),
    ("bedrock_converse", Facts("bedrock", "anthropic.claude-opus-4-5")),
    ("cohere_v2", Facts("cohere", "command-a")),
    ("gemini", Facts("gemini", "gemini-2.5-pro")),
    ("ollama", Facts("ollama", "llama4")),
    ("openai_chat", Facts("groq", "m")),
    ("openai_responses", Facts("openai", "gpt-5")),
)
WORDS = [
    "$defs",
    "$ref",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "default",
    "definitions",
    "dependentRequired",
    "description",
    "enum",
    "exclusiveMaximum",
    "format",
    "items",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "multipleOf",
    "not",
    "nullable",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "propertyOrdering",
    "required",
    "title",
    "type",
    "uniqueItems",
]
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, 2.5, "", "object", "string", "array", "#/$defs/a", "date", [], {}, [[]], [{}],
    ["object", "null"], [None, {}], {"a": {"type": "string"}}, {"type": "string"}, {"a": []}, {"$ref": "#"},
    [{"type": "object"}, {"type": "null"}], ["a", {"b": []}],
)  # fmt: skip


def written(wire: str, facts: Facts, schema: Json, *, is_tool: bool = False) -> tuple[Any, Notes]:
    notes, side = Notes(), TARGETS[wire]
    prompt = Prompt(
        "openai_chat",
        (Message("user", (Text("hi"),)),),
        tools=(Tool("t", parameters=schema),) if is_tool else (),
        format=None if is_tool else Format("schema", "a", schema),
    )
    return side.write_request(fit(prompt, side.grammar(facts), notes), facts, notes), notes


def any_schema(random: Random, depth: int = 3) -> Json:
    schema: Json = {"type": random.choice(["object", "string", "array"])}
    for word in random.sample(WORDS, random.randint(0, 4)):
        value = random.choice(VALUES)
        if depth and random.random() < 0.5:
            inner = any_schema(random, depth - 1)
            value = random.choice([inner, [inner], {"a": inner}])
        schema[word] = value
    return schema


@pytest.mark.bug("K33", "K34", "B106")
@pytest.mark.parametrize(("wire", "facts"), AIMS)
@pytest.mark.parametrize("is_tool", [False, True], ids=["format", "tool"])
def test_a_schema_of_any_shape_is_written_or_refused(
    wire: str, facts: Facts, is_tool: bool
) -> None:
    random = Random(f"{wire} {is_tool}")
    schemas = [{word: value} for word in WORDS for value in VALUES]
    schemas += [any_schema(random) for _ in rounds(300)]
    for schema in schemas:
        try:
            written(wire, facts, schema, is_tool=is_tool)
        except InputError:
            continue
        except Exception as error:
            raise AssertionError(schema) from error


@pytest.mark.bug("K33", "K34")
@pytest.mark.parametrize(("wire", "facts"), AIMS[:3])
def test_an_object_of_any_names_is_refused_where_objects_are_closed(
    wire: str, facts: Facts
) -> None:
    names = {"type": "object", "additionalProperties": {"type": "string"}}
    schema: Json = {"type": "object", "properties": {"names": names}}

    with pytest.raises(
        InputError, match=r"schema\.properties\.names\.additionalProperties: cannot be"
    ):
        written(wire, facts, schema)


@pytest.mark.bug("K33", "K34")
@pytest.mark.parametrize(("wire", "facts"), AIMS[:3])
@pytest.mark.parametrize(
    "more",
    [{"additionalProperties": {"type": "string"}}, {"properties": {"a": {"type": "object"}}}],
)
def test_an_object_that_was_open_is_closed_with_a_note(wire: str, facts: Facts, more: Json) -> None:
    schema: Json = {"type": "object", "properties": {"a": {"type": "string"}}, **more}

    _, notes = written(wire, facts, schema)

    assert any("was rewritten to the part of JSON Schema" in each for each in notes.warnings)
