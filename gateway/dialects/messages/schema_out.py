"""Schemas of answers as the format takes them: closed objects, and few words about values."""

from collections.abc import Mapping
from typing import Any, cast

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.dialects.losses import refuse

COMBINED = frozenset({"anyOf", "oneOf", "allOf"})
"""Words that may not stand at the top of a tool's schema."""
_KEPT = frozenset(
    {
        "$defs",
        "$ref",
        "additionalProperties",
        "allOf",
        "anyOf",
        "const",
        "default",
        "definitions",
        "description",
        "enum",
        "format",
        "items",
        "pattern",
        "properties",
        "required",
        "title",
        "type",
    }
)
_FORMATS = frozenset(
    "date-time time date duration email hostname uri ipv4 ipv6 uuid".split()  # noqa: SIM905  one line
)
_OF_SCHEMAS = frozenset({"$defs", "definitions", "properties"})
_LISTS = frozenset({"anyOf", "allOf"})
_MOST_ITEMS = 1


def closed(schema: Mapping[str, Any], place: str) -> tuple[dict[str, Any], bool]:
    """Return a schema as the format takes it, and whether anything but its closing was changed.

    Every object is closed; words that the format does not know move into the description, for the model to read.
    Raises InputError `invalid_request` with the place of an object of any names: closed, it could only be empty.
    """
    written: dict[str, Any] = {}
    moved: dict[str, Any] = {}
    changed = False
    for word, value in schema.items():
        key = "anyOf" if word == "oneOf" and "anyOf" not in schema else word
        changed = changed or key != word
        if not _known(key, value):
            moved[word] = value
            continue
        written[key], inner = _inside(key, value, f"{place}.{key}")
        changed = changed or inner
    if moved:
        said = codec.encode(moved).decode()
        told = written.get("description")
        written["description"] = f"{told}\n\n{said}" if told else said
    if _is_object(written):
        others: object = written.get("additionalProperties")
        if codec.as_object(others) and not written.get("properties"):
            raise _of_any_names(place)
        is_open = others is not False and (others is not None or "properties" not in written)
        changed = changed or is_open
        written["additionalProperties"] = False
    return written, changed or bool(moved)


def joined(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without alternatives at its top: it takes the members of them all, and needs those of none.

    What all parts of an `allOf` need stays needed. Looser than before, never stricter.
    """
    written = {word: value for word, value in schema.items() if word not in COMBINED}
    properties = dict(codec.as_object(schema.get("properties")) or {})
    required = list(_names(schema.get("required")))
    for word in COMBINED & schema.keys():
        variants = schema[word]
        for variant in cast("list[object]", variants) if isinstance(variants, list) else []:
            node = codec.as_object(variant) or {}
            properties = {**(codec.as_object(node.get("properties")) or {}), **properties}
            if word == "allOf":
                required += _names(node.get("required"))
    written["properties"] = properties
    if required:
        written["required"] = list(dict.fromkeys(required))
    return written


def _names(value: object) -> list[str]:
    names = cast("list[object]", value) if isinstance(value, list) else []
    return [name for name in names if isinstance(name, str)]


def _known(key: str, value: object) -> bool:
    if key == "minItems":
        return isinstance(value, int) and value <= _MOST_ITEMS
    if key == "format":
        return isinstance(value, str) and value in _FORMATS
    return key in _KEPT


def _is_object(node: Mapping[str, Any]) -> bool:
    kind: object = node.get("type")
    return kind == "object" or (isinstance(kind, list) and "object" in kind) or "properties" in node


def _of_any_names(place: str) -> InputError:
    param = place.partition(".")[0]
    return refuse("schema_unsupported", f"{place}.additionalProperties", param=param)


def _inside(key: str, value: object, place: str) -> tuple[object, bool]:
    """Return the value of a keyword with the schemas in it closed."""
    if key in _OF_SCHEMAS and isinstance(value, dict):
        schemas = cast("dict[str, object]", value)
        named = {name: _node(each, f"{place}.{name}") for name, each in schemas.items()}
        return {name: node for name, (node, _) in named.items()}, any(
            changed for _, changed in named.values()
        )
    if key in _LISTS and isinstance(value, list):
        listed = cast("list[object]", value)
        nodes = [_node(each, f"{place}.{at}") for at, each in enumerate(listed)]
        return [node for node, _ in nodes], any(changed for _, changed in nodes)
    if key == "items":
        return _node(value, place)
    return value, False


def _node(value: object, place: str) -> tuple[object, bool]:
    node = codec.as_object(value)
    return closed(node, place) if node is not None else (value, False)
