"""Schemas in the part of JSON Schema that a target takes: equal or wider, never narrower, names untouched (B106)."""

import json
from collections.abc import Mapping
from random import Random
from typing import Any, cast

import jsonschema
import pytest

from gateway.core.errors import InputError
from gateway.core.message import Format, Message, Prompt, Text, Tool
from gateway.dialects.fit.prompt import fit
from gateway.dialects.fit.schema import compile_schema
from gateway.dialects.fit.schema_merge import ImpossibleError
from gateway.dialects.grammar import Grammar, SchemaRules
from gateway.dialects.losses import Notes
from tests.support.strict_schema import schema_breaches

Json = dict[str, Any]
COMMON = frozenset({"type", "properties", "required", "items", "description", "enum"})
OLD_GEMINI = SchemaRules(
    keep=COMMON | {"anyOf", "nullable", "format", "minimum", "maximum"},
    refs=False,
    null_as="nullable",
    const_as_enum=True,
    string_enums=True,
    formats=frozenset({"date-time"}),
)
RULES = {
    "gemini of old": OLD_GEMINI,
    "one type a node": SchemaRules(keep=COMMON | {"anyOf"}, refs=False, null_as="any_of"),
    "lists of types": SchemaRules(keep=COMMON | {"anyOf", "additionalProperties"}, refs=False),
    "references": SchemaRules(keep=COMMON | {"anyOf", "const", "additionalProperties"}),
    "cycles": SchemaRules(keep=COMMON | {"anyOf", "additionalProperties"}, refs=False, cycles=True),
    "typed": SchemaRules(keep=COMMON | {"anyOf"}, refs=False, null_as="nullable", typed=True),
}
_DEEP = frozenset({"null", "list", "any", "all", "object"})
ODD_NAMES = ("$ref", "const", "enum", "required", "properties", "type", "ref", "a~/b", "%")

pytestmark = pytest.mark.bug("K34", "B106")


def made(schema: Json, rules: SchemaRules = OLD_GEMINI) -> Json:
    found, _ = compile_schema(schema, rules)
    return schema if found is None else dict(found)


def properties(**schemas: Any) -> Json:
    return {"type": "object", "properties": schemas}


class Schemas:
    """Draws schemas: references of every kind, choices, values, odd names, and words that nobody knows."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def root(self) -> Json:
        defs = {name: self.node(2) for name in ("A", "B", "a~/b")}
        return {
            **self.object(2),
            "$defs": defs,
            "$schema": "http://json-schema.org/draft-07/schema",
        }

    def node(self, depth: int) -> Json:
        rng = self._rng
        kinds = ("string", "number", "values", "null", "types", "ref", "const")
        kinds += ("object", "list", "any", "one", "all", "object") if depth else ()
        kind = rng.choice(kinds)
        node = self._deep(kind, depth) if kind in _DEEP else self._flat(kind)
        if rng.random() < 0.2:
            node["description"] = "words"
        if rng.random() < 0.1:
            node["x-unknown"] = {"$ref": "nowhere"}
        return node

    def _flat(self, kind: str) -> Json:
        rng = self._rng
        match kind:
            case "string":
                return {"type": "string", "format": rng.choice(("date-time", "email"))}
            case "number":
                return {"type": rng.choice(("integer", "number")), "minimum": rng.randrange(3)}
            case "values":
                pool = ("a", "b", 1, 2, None) if rng.random() < 0.4 else ("a", "b", "c")
                return {"enum": rng.sample(pool, rng.randrange(1, 4))}
            case "types":
                return {"type": rng.sample(("string", "integer", "null", "boolean"), 2)}
            case "ref":
                refs = ("#/$defs/A", "#/$defs/B", "#/$defs/a~0~1b", "#/properties/x", "#")
                return {"$ref": rng.choice(refs)}
            case "one":
                return {"oneOf": [{"const": each} for each in ("a", "b")]}
            case _:
                return {"const": rng.choice(("a", 1, None, True))}

    def _deep(self, kind: str, depth: int) -> Json:
        match kind:
            case "null":
                return {"anyOf": [self.node(max(depth - 1, 0)), {"type": "null"}]}
            case "list":
                return {"type": "array", "items": self.node(depth - 1)}
            case "any":
                return {"anyOf": [self.node(depth - 1) for _ in range(self._rng.randrange(1, 3))]}
            case "all":
                return {"allOf": [self.object(0), self.object(0)]}
            case _:
                return self.object(depth - 1)

    def object(self, depth: int) -> Json:
        rng = self._rng
        names = rng.sample((*ODD_NAMES, "x", "y", "z"), 3)
        node = properties(**{name: self.node(depth) for name in names})
        if rng.random() < 0.5:
            node["required"] = rng.sample((*names, "gone"), 2)
        if rng.random() < 0.4:
            node["additionalProperties"] = rng.choice((True, False, {"type": "string"}))
        node["properties"].setdefault("x", {"type": "string"})
        return node


def value(rng: Random, depth: int = 3) -> Any:
    plain = (None, "a", "b", 1, 2, 0.5, True, "2020-01-01T00:00:00Z")
    kind = rng.randrange(4 if depth else 2)
    if kind < 2:
        return rng.choice(plain)
    if kind == 2:
        return [value(rng, depth - 1) for _ in range(rng.randrange(2))]
    names = (*ODD_NAMES, "x", "y", "z")
    return {name: value(rng, depth - 1) for name in names if rng.random() < 0.4}


def plain(schema: Any) -> Any:
    """Write `nullable` in the words of JSON Schema, so that a validator reads it."""
    if isinstance(schema, list):
        return [plain(each) for each in cast("list[Any]", schema)]
    if not isinstance(schema, Mapping):
        return schema
    node = cast("Mapping[str, Any]", schema)
    out = {
        key: {name: plain(each) for name, each in inner.items()}
        if key in {"properties", "$defs"}
        else (inner if key in {"enum", "const", "required"} else plain(inner))
        for key, inner in node.items()
        if key != "nullable"
    }
    return {"anyOf": [out, {"type": "null"}]} if node.get("nullable") is True else out


@pytest.mark.parametrize("name", RULES)
def test_any_schema_is_rewritten_to_the_rules_or_refused(name: str) -> None:
    written = 0
    for seed in range(50):
        schema = Schemas(Random(seed)).root()
        before = json.dumps(schema)
        try:
            found = made(schema, RULES[name])
        except ImpossibleError:
            continue
        written += 1
        assert list(schema_breaches(found, RULES[name])) == [], seed
        assert json.dumps(schema) == before
        assert made(found, RULES[name]) == found, seed
    assert written > 25


@pytest.mark.parametrize("name", sorted(RULES.keys() - {"typed"}))
def test_what_was_allowed_stays_allowed(name: str) -> None:
    """A value that the caller's schema takes is never one that the target's refuses."""
    judged = 0
    for seed in range(25):
        rng = Random(seed)
        schema = Schemas(rng).root()
        try:
            found = plain(made(schema, RULES[name]))
        except ImpossibleError:
            continue
        before = jsonschema.Draft202012Validator(schema)
        after = jsonschema.Draft202012Validator(found)
        for _ in range(40):
            instance = value(rng)
            if is_valid(before, instance):
                judged += 1
                assert is_valid(after, instance), seed
    assert judged > 5


def is_valid(validator: Any, instance: Any) -> bool:
    """Judge a value; references that only lead to each other say nothing."""
    try:
        return bool(validator.is_valid(instance))
    except RecursionError:
        return False


def test_references_are_written_out_wherever_they_point() -> None:
    schema = {
        **properties(
            x={"$ref": "#/$defs/Place", "description": "mine"},
            y={"type": "array", "items": {"$ref": "#/properties/x"}},
            z={"$ref": "#/$defs/a~1b%25"},
        ),
        "$defs": {
            "Place": properties(at={"$ref": "#/$defs/At"}),
            "At": {"type": "number", "title": "At"},
            "a/b%": {"type": "string"},
        },
    }
    found = made(schema)

    place = {"type": "object", "properties": {"at": {"type": "number"}}, "description": "mine"}
    assert found["properties"]["x"] == place
    assert found["properties"]["y"]["items"] == place
    assert found["properties"]["z"] == {"type": "string"}
    assert "$defs" not in found


def test_recursion_ends_and_is_noted() -> None:
    tree = properties(
        value={"type": "integer"}, left={"$ref": "#/$defs/T"}, right={"$ref": "#/$defs/T"}
    )
    found, lost = compile_schema({"$ref": "#/$defs/T", "$defs": {"T": tree}}, OLD_GEMINI)

    assert found is not None
    text = json.dumps(found)
    assert "$ref" not in text
    assert text.count('"value"') > 1
    assert "$ref" in lost
    loop = {"$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}, "$ref": "#/$defs/A"}
    assert made(loop) == {}


TREE = properties(
    value={"type": "integer"},
    left={"$ref": "#/$defs/T", "description": "The left one."},
    right={"anyOf": [{"$ref": "#/$defs/T"}, {"type": "null"}]},
    more={"type": "array", "items": {"allOf": [{"$ref": "#/$defs/T"}]}},
)
KEPT: Json = {"$ref": "#/$defs/T"}


def test_recursion_stays_where_it_is_unrolled() -> None:
    schema = {**properties(tree={"$ref": "#/$defs/T"}), "required": ["tree"], "$defs": {"T": TREE}}
    found, lost = compile_schema(schema, RULES["cycles"])

    tree = properties(
        value={"type": "integer"},
        left={"description": "The left one.", "anyOf": [KEPT]},
        right={"anyOf": [KEPT, {"type": "null"}]},
        more={"type": "array", "items": KEPT},
    )
    assert found == {**properties(tree=tree), "required": ["tree"], "$defs": {"T": tree}}
    assert not lost
    assert made(properties(tree={"$ref": "#"}), RULES["cycles"]) == {
        **properties(tree={"$ref": "#/$defs/root"}),
        "$defs": {"root": properties(tree={"$ref": "#/$defs/root"})},
    }


def test_recursion_that_is_always_needed_is_cut_and_noted() -> None:
    tree = {**properties(parts={"type": "array", "items": KEPT}), "required": ["parts"]}
    for schema in ({**KEPT, "$defs": {"T": tree}}, {**properties(t=KEPT), "$defs": {"T": tree}}):
        found, lost = compile_schema(schema, RULES["cycles"])
        assert found is not None
        assert "$ref" not in json.dumps(found)
        assert "$ref" in lost


def test_what_does_not_hold_itself_is_written_out() -> None:
    schema = {**properties(a=KEPT, b=KEPT), "$defs": {"T": properties(x={"type": "string"})}}

    assert "$defs" not in made(schema, RULES["cycles"])


@pytest.mark.parametrize("name", ["gemini of old", "cycles"])
def test_many_references_to_each_other_stay_small(name: str) -> None:
    names = [f"N{number}" for number in range(12)]
    node = properties(**{name: {"$ref": f"#/$defs/{name}"} for name in names})
    found = made({**node, "$defs": dict.fromkeys(names, node)}, RULES[name])

    assert len(json.dumps(found)) < 2_000_000


def test_properties_may_have_the_names_of_keywords() -> None:
    schema = properties(**{name: {"type": "string"} for name in ODD_NAMES})
    schema["required"] = list(ODD_NAMES)

    assert made(schema) == schema


def test_null_is_written_in_the_targets_way() -> None:
    optional = {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}], "title": "T"}
    listed = {"type": ["string", "null"]}
    schema = properties(a=optional, b=listed)

    assert made(schema)["properties"] == {
        "a": {"type": "string", "enum": ["a"], "nullable": True},
        "b": {"type": "string", "nullable": True},
    }
    assert made(schema, RULES["one type a node"])["properties"] == {
        "a": {"anyOf": optional["anyOf"]},
        "b": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    }
    narrow = SchemaRules(keep=COMMON, refs=False)
    assert made(schema, narrow)["properties"] == {
        "a": {"type": ["string", "null"], "enum": ["a", None]},
        "b": listed,
    }


def test_values_that_are_no_texts_are_told_in_words() -> None:
    schema = properties(size={"enum": [1, 2, 3], "description": "How big."}, only={"const": "x"})
    found, lost = compile_schema(schema, OLD_GEMINI)

    assert found is not None
    assert found["properties"] == {
        "size": {"type": "integer", "description": "How big. Allowed values: 1, 2, 3."},
        "only": {"type": "string", "enum": ["x"]},
    }
    assert lost == "enum"


def test_only_properties_that_are_there_are_required() -> None:
    schema = {**properties(a={"type": "string"}), "required": ["a", "gone"]}

    assert made(schema)["required"] == ["a"]
    assert "required" not in made({**properties(a={}), "required": ["gone"]})


def test_words_without_meaning_go_without_a_note_and_others_with_one() -> None:
    quiet = {
        **properties(a={"type": "string", "title": "A", "default": "x"}),
        "$id": "u",
        "title": "T",
    }
    found, lost = compile_schema(quiet, OLD_GEMINI)
    assert found == properties(a={"type": "string"})
    assert lost == ""

    loud = {**properties(a={"type": "string", "pattern": "^a"}), "additionalProperties": False}
    assert compile_schema(loud, OLD_GEMINI)[1] == "pattern, additionalProperties"


def test_big_integers_are_unchanged() -> None:
    schema = properties(a={"type": "integer", "minimum": 2**70, "title": "x"})

    assert made(schema)["properties"]["a"] == {"type": "integer", "minimum": 2**70}


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        (properties(a={"$ref": "https://example.com/x"}), "/properties/a/$ref"),
        (properties(a={"$ref": "#/$defs/gone"}), "/properties/a/$ref"),
        (properties(a={"allOf": [{"type": "string"}, {"type": "object"}]}), "/properties/a/type"),
        (properties(a={"items": False}), "/properties/a/items"),
        (properties(a={"enum": []}), "/properties/a/enum"),
        (properties(a=3), "/properties/a"),
        ({"properties": []}, "/properties"),
    ],
)
def test_what_would_mean_something_else_is_refused_with_tool_and_path(
    schema: Json, path: str
) -> None:
    prompt = prompt_with(Tool("find", parameters=schema))
    with pytest.raises(InputError) as caught:
        fit(prompt, Grammar(schema=OLD_GEMINI), Notes())

    assert caught.value.message.startswith(f"tools[0] (find) at {path}: ")
    assert caught.value.http == 400


def test_a_schema_nested_without_end_is_refused() -> None:
    schema: Json = {"type": "string"}
    for _ in range(400):
        schema = {"type": "array", "items": schema}
    with pytest.raises(InputError):
        fit(prompt_with(Tool("find", parameters=schema)), Grammar(schema=OLD_GEMINI), Notes())


def test_tools_and_the_answers_format_are_rewritten_and_noted_by_name() -> None:
    schema = properties(a={"type": "string", "pattern": "^a"})
    notes = Notes()
    prompt = prompt_with(Tool("find", parameters=schema), Format("schema", "n", schema))
    found = fit(prompt, Grammar(schema=OLD_GEMINI), notes)

    tool = found.tools[0]
    assert isinstance(tool, Tool)
    assert tool.parameters == properties(a={"type": "string"})
    assert found.format is not None
    assert found.format.schema == properties(a={"type": "string"})
    assert [note.partition(":")[0] for note in notes.warnings] == [
        "tools[0] (find) pattern",
        "the schema of the answer pattern",
    ]
    assert fit(prompt, Grammar(), Notes()) is prompt


def prompt_with(tool: Tool, form: Format | None = None) -> Prompt:
    return Prompt("openai_chat", (Message("user", (Text("hi"),)),), (tool,), format=form)
