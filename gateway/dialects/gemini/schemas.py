"""Schemas in the small form of Google's own where it says all there is, else as JSON Schema (B106)."""

import re
from collections.abc import Mapping
from typing import Any, cast

from gateway.core import codec

_COPIED = frozenset(
    {
        "default",
        "description",
        "example",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "nullable",
        "pattern",
        "propertyOrdering",
        "required",
        "title",
    }
)
_FORMATS = {
    "string": frozenset({"enum", "date-time"}),
    "number": frozenset({"float", "double"}),
    "integer": frozenset({"int32", "int64"}),
}
_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object"})
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")


def small_form(schema: Mapping[str, Any], *, is_top: bool = True) -> dict[str, Any] | None:
    """Return a schema in the small form; None when it holds what that form has no word for.

    The small form is strict: an object below the top must name properties, in plain words, and a list its items;
    the values of an enum are texts that are not empty.
    """
    kind, may_be_null = _type_of(schema.get("type"))
    if kind not in _TYPES:
        return None
    found: dict[str, Any] = {"type": kind.upper()}
    if may_be_null:
        found["nullable"] = True
    for name, value in schema.items():
        if name in _COPIED or _fits(name, value, kind):
            found[name] = value
        elif name in {"properties", "items"}:
            inner = _inner(name, value)
            if inner is None:
                return None
            found[name] = inner
        elif name != "type":
            return None
    if not is_top and kind == "object" and not found.get("properties"):
        return None
    return None if kind == "array" and "items" not in found else found


def _inner(name: str, value: object) -> dict[str, Any] | None:
    holder = codec.as_object(value)
    if holder is None:
        return None
    if name == "items":
        return small_form(holder, is_top=False)
    found: dict[str, Any] = {}
    for key, each in holder.items():
        schema = codec.as_object(each) if _NAME.match(key) else None
        small = small_form(schema, is_top=False) if schema is not None else None
        if small is None:
            return None
        found[key] = small
    return found


def _type_of(value: object) -> tuple[str, bool]:
    """Return the one type besides null, and whether it may be null."""
    if isinstance(value, str):
        return value.lower(), False
    if isinstance(value, list):
        words = [str(each).lower() for each in cast("list[object]", value)]
        others = [word for word in words if word != "null"]
        if len(others) == 1:
            return others[0], "null" in words
    return "", False


def _fits(name: str, value: object, kind: str) -> bool:
    """Tell whether a keyword that the small form knows may stand beside the others with this value."""
    match name:
        case "enum":
            return kind == "string" and _are_texts(value)
        case "format":
            return isinstance(value, str) and value in _FORMATS.get(kind, ())
        case _:
            return False


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, str) and each for each in cast("list[object]", value)
    )
