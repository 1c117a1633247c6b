"""A strict reader of schemas: says where one leaves the part of JSON Schema that a target takes (B106)."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from gateway.dialects.grammar import SchemaRules

_REFS = frozenset({"$ref", "$defs", "definitions"})
_NAMED = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_ONE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_MANY = ("anyOf", "oneOf", "allOf", "prefixItems")


def schema_breaches(schema: object, rules: SchemaRules, path: str = "") -> Iterator[str]:
    """Yield everything that a target with these rules would refuse."""
    if rules.keep is None:
        return
    if not isinstance(schema, Mapping):
        yield f"{path}: no schema"
        return
    node = cast("Mapping[str, Any]", schema)
    allowed = set(rules.keep) - _REFS
    if rules.refs:
        allowed |= _REFS
    elif rules.cycles:
        allowed |= {"$ref"} if path else {"$defs"}
        if "$ref" in node and len(node) > 1:
            yield f"{path}: more than a reference"
        if not path:
            yield from _needed_cycles(node)
    if rules.null_as == "nullable":
        allowed.add("nullable")
    yield from (f"{path}: keyword {key}" for key in node if key not in allowed)
    yield from _node(node, rules, path)
    for place, each in _inner(node):
        yield from schema_breaches(each, rules, f"{path}/{place}")


def _needed_cycles(root: Mapping[str, Any]) -> Iterator[str]:
    """Yield every reference that stands in no property that may be absent, or that leads nowhere."""

    def walk(node: Mapping[str, Any], path: str, is_needed: bool) -> Iterator[str]:
        if "$ref" in node:
            if is_needed:
                yield f"{path}: a reference that is always needed"
            if node["$ref"].removeprefix("#/$defs/") not in root.get("$defs", {}):
                yield f"{path}: a reference to {node['$ref']}"
        needed = node.get("required", ())
        for place, each in _inner(node):
            head, _, name = place.partition("/")
            may_lack = head == "properties" and name not in needed
            if isinstance(each, Mapping):
                inner = cast("Mapping[str, Any]", each)
                yield from walk(inner, f"{path}/{place}", is_needed and not may_lack)

    yield from walk(root, "", is_needed=True)


def _inner(node: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for key in _NAMED:
        for name, each in node.get(key, {}).items():
            yield f"{key}/{name}", each
    for key in _ONE:
        if key in node and not (isinstance(node[key], bool) and key != "items"):
            yield key, node[key]
    for key in _MANY:
        for number, each in enumerate(node.get(key, [])):
            yield f"{key}/{number}", each


def _node(schema: Mapping[str, Any], rules: SchemaRules, path: str) -> Iterator[str]:
    kind = schema.get("type")
    if isinstance(kind, list) and rules.null_as != "type_list":
        yield f"{path}: a list of types"
    texts = kind == "string" and all(isinstance(e, str) and e for e in schema.get("enum", ()))
    if rules.string_enums and "enum" in schema and not texts:
        yield f"{path}: an enum of other than texts"
    if rules.formats is not None and "format" in schema and schema["format"] not in rules.formats:
        yield f"{path}: format {schema['format']}"
    if "required" in schema:
        missing = set(schema["required"]) - set(schema.get("properties", {}))
        if missing:
            yield f"{path}: required {missing} are no properties"
    if rules.typed and "type" not in schema and "anyOf" not in schema and "$ref" not in schema:
        yield f"{path}: no type"
    if rules.typed and kind == "array" and "items" not in schema:
        yield f"{path}: no items"
