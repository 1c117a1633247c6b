"""Checks that a schema is what a target takes: the last look at what the compiler wrote."""

from collections.abc import Iterator
from typing import cast

from gateway.core import codec
from gateway.dialects.fit.schema_words import DEFINITIONS, LISTS, MAPS, SCHEMAS, Json
from gateway.dialects.grammar import SchemaRules


def breach(schema: object, rules: SchemaRules, path: str = "") -> str | None:
    """Return the path of the first node that the rules do not allow, None for none."""
    node = codec.as_object(schema)
    if node is None:
        return path or "/"
    for key in node:
        if key == "$ref" or key in DEFINITIONS:
            is_known = rules.refs or rules.cycles
        else:
            is_null = key == "nullable" and rules.null_as == "nullable"
            is_known = rules.keep is None or key in rules.keep or is_null
        if not is_known:
            return f"{path}/{key}"
    if not _is_typed(node, rules) or not _has_texts(node, rules):
        return path or "/"
    return next(
        (
            found
            for name, each in _children(node)
            if (found := breach(each, rules, f"{path}/{name}"))
        ),
        None,
    )


def _is_typed(node: Json, rules: SchemaRules) -> bool:
    return rules.null_as == "type_list" or not isinstance(node.get("type"), list)


def _has_texts(node: Json, rules: SchemaRules) -> bool:
    values = node.get("enum")
    if not rules.string_enums or not isinstance(values, list):
        return True
    return all(isinstance(value, str) for value in cast("list[object]", values))


def _children(node: Json) -> Iterator[tuple[str, object]]:
    for key, value in node.items():
        if key in SCHEMAS and not isinstance(value, bool):
            yield key, value
        elif key in MAPS:
            for name, each in (codec.as_object(value) or {}).items():
                yield f"{key}/{name}", each
        elif key in LISTS and isinstance(value, list):
            for number, each in enumerate(cast("list[object]", value)):
                yield f"{key}/{number}", each
