"""Makes the smallest value that a JSON Schema allows, as far as that is plain to see."""

from collections.abc import Mapping
from math import ceil
from typing import Any, cast

from gateway.core.codec import as_object, encode

_MOST_DEPTH = 24
_MOST_ITEMS = 64
_MOST_TEXT = 1024
_MOST_VALUES = 2000
_MOST_BYTES = 65_536
_LEAST_STEP, _MOST_STEP = 1e-6, 1e12
_FORMATS = {
    "date": "2025-01-01",
    "date-time": "2025-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "duration": "P0D",
    "email": "echo@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


def instance_of(schema: object, default_type: str = "object") -> object:
    """Return a small instance of a schema: required members only, first alternatives, least numbers.

    A schema that is too large to look at gives an empty object.
    """
    root = as_object(schema) or {}
    if len(encode(root)) > _MOST_BYTES:
        return {}
    return _Maker(root).make(root, default_type, _MOST_DEPTH)


class _Maker:
    """Makes one instance; a schema that asks for more values than allowed gets null for the rest."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = _MOST_VALUES

    def make(self, schema: Mapping[str, Any], default_type: str, depth: int) -> object:
        """Return a value for one place in the schema."""
        self._left -= 1
        if depth == 0 or self._left < 0:
            return None
        schema = _resolve(schema, self._root)
        given = _given(schema)
        if given:
            return given[0]
        kind = _kind(schema, default_type)
        if kind == "object":
            return self._make_object(schema, depth)
        if kind == "array":
            least = int(min(_number(schema, "minItems") or 0, _MOST_ITEMS))
            items = as_object(schema.get("items")) or {}
            return [self.make(items, "string", depth - 1) for _ in range(least)]
        if kind == "string":
            text = _FORMATS.get(str(schema.get("format")), "")
            return text.ljust(int(min(_number(schema, "minLength") or 0, _MOST_TEXT)), "x")
        if kind in {"integer", "number"}:
            return _least(schema, kind)
        return False if kind == "boolean" else None

    def _make_object(self, schema: Mapping[str, Any], depth: int) -> dict[str, object]:
        properties = _properties(schema)
        return {
            name: self.make(as_object(properties.get(name)) or {}, "string", depth - 1)
            for name in _required(schema)[:_MOST_VALUES]
            if isinstance(name, str)
        }


def _given(schema: Mapping[str, Any]) -> list[object]:
    """Return the values that a schema itself names, if any."""
    for name in ("const", "default"):
        if name in schema:
            return [schema[name]]
    for name in ("enum", "examples"):
        values = schema.get(name)
        if isinstance(values, list) and values:
            return cast("list[object]", values)
    return []


def _resolve(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow references and take first alternatives, a few steps at most."""
    for _ in range(_MOST_DEPTH):
        reference = schema.get("$ref")
        if isinstance(reference, str):
            schema = {**_find(reference, root), **_without(schema, "$ref")}
            continue
        name = next((key for key in ("allOf", "anyOf", "oneOf") if schema.get(key)), None)
        if name is None or not isinstance(schema[name], list):
            break
        parts = [as_object(part) or {} for part in cast("list[object]", schema[name])]
        rest = _without(schema, name)
        schema = _merge([*parts, rest]) if name == "allOf" else _merge([parts[0], rest])
    return schema


def _find(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    found: object = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        if step:
            name = step.replace("~1", "/").replace("~0", "~")
            found = (as_object(found) or {}).get(name)
    return as_object(found) or {}


def _without(schema: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != name}


def _merge(parts: list[Any]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for part in cast("list[dict[str, Any]]", parts):
        properties = {**_properties(merged), **_properties(part)}
        required = [*_required(merged), *_required(part)]
        merged = {**merged, **part, "properties": properties, "required": required}
    if not merged["properties"] and not merged["required"]:
        del merged["properties"], merged["required"]
    return merged


def _properties(schema: Mapping[str, Any]) -> dict[str, Any]:
    return as_object(schema.get("properties")) or {}


def _required(schema: Mapping[str, Any]) -> list[object]:
    names = schema.get("required")
    return cast("list[object]", names) if isinstance(names, list) else []


def _kind(schema: Mapping[str, Any], default_type: str) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        names = [name for name in cast("list[object]", kind) if name != "null"]
        kind = names[0] if names else "null"
    if isinstance(kind, str):
        return kind
    if "properties" in schema:
        return "object"
    return "array" if "items" in schema else default_type


def _number(schema: Mapping[str, Any], name: str) -> float | None:
    value = schema.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _least(schema: Mapping[str, Any], kind: str) -> float:
    """Return zero when it is allowed, else the allowed number nearest to it."""
    step = abs(_number(schema, "multipleOf") or 1)
    if not _LEAST_STEP <= step <= _MOST_STEP:
        step = 1
    low, high = _number(schema, "minimum"), _number(schema, "maximum")
    above, below = _number(schema, "exclusiveMinimum"), _number(schema, "exclusiveMaximum")
    value: float = 0
    if low is not None and low > value:
        value = ceil(low / step) * step
    if above is not None and above >= value:
        value = (int(above // step) + 1) * step
    if high is not None and high < value:
        value = high // step * step
    if below is not None and below <= value:
        value = (ceil(below / step) - 1) * step
    return int(value) if kind == "integer" else value
