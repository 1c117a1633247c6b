"""What keywords of JSON Schema hold, and which say nothing about values."""

from typing import Any, Final

Json = dict[str, Any]
SCHEMAS: Final = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
"""Keywords that hold a schema; some may be true or false."""
MAPS: Final = frozenset(
    {"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
)
"""Keywords that hold schemas by names, which are no keywords."""
LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
"""Keywords that hold a list of schemas."""
DEFINITIONS: Final = frozenset({"$defs", "definitions"})
SILENT: Final = DEFINITIONS | {
    "$anchor",
    "$comment",
    "$id",
    "$schema",
    "$vocabulary",
    "default",
    "deprecated",
    "description",
    "example",
    "examples",
    "id",
    "readOnly",
    "title",
    "writeOnly",
}
"""Keywords that may go without a word: no value is allowed or forbidden by them."""
_KINDS: Final = {
    "string": {
        "contentEncoding",
        "contentMediaType",
        "enum",
        "format",
        "maxLength",
        "minLength",
        "pattern",
    },
    "number": {
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "maximum",
        "minimum",
        "multipleOf",
    },
    "object": {
        "additionalProperties",
        "maxProperties",
        "minProperties",
        "patternProperties",
        "properties",
        "propertyNames",
        "propertyOrdering",
        "required",
    },
    "array": {"contains", "items", "maxItems", "minItems", "prefixItems", "uniqueItems"},
    "boolean": {"enum"},
    "null": set[str](),
}
KINDS: Final = {**_KINDS, "integer": _KINDS["number"]}
"""Keywords by the type of value that they speak of."""
ALL_KINDS: Final = frozenset(word for words in KINDS.values() for word in words)


def type_of(value: object) -> str:
    """Return the type of a JSON value in the words of JSON Schema."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"
