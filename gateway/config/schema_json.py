"""Prints the JSON Schema for editors: `python -m gateway.config.schema_json > config/schema.json`."""

import sys
from collections.abc import Mapping
from typing import Any, cast

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from gateway.config.folder import SECTIONS
from gateway.config.schema import Tree
from gateway.core import codec

_REFERENCE = "#/$defs/Reference"


class _Generator(GenerateJsonSchema):
    """Adds what every field may also hold: a reference."""

    def generate(self, schema: CoreSchema, mode: JsonSchemaMode = "validation") -> JsonSchemaValue:
        document = super().generate(schema, mode)
        definitions = cast("dict[str, Any]", document["$defs"])
        for each in (document, *definitions.values()):
            for name, field in cast("dict[str, Any]", each.get("properties", {})).items():
                each["properties"][name] = _with_reference(field)
        definitions["Reference"] = {
            "type": "string",
            "pattern": "^(env:[A-Za-z_][A-Za-z0-9_]*(\\?.*)?|file:.+)$",
            "description": "env:NAME, env:NAME?default or file:path.",
        }
        return document

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Leave out defaults that are whole blocks: they stand at the fields inside."""
        if "default_factory" in schema:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)


def _with_reference(field: Mapping[str, Any]) -> dict[str, Any]:
    """Let a field that is not free text hold a reference too."""
    if any(_is_plain(each) for each in field.get("anyOf", ())):
        return {**field, "anyOf": [*field["anyOf"], {"$ref": _REFERENCE}]}
    if not _is_plain(field):
        return dict(field)
    outer = {name: field[name] for name in ("description", "default", "title") if name in field}
    inner = {name: value for name, value in field.items() if name not in outer}
    return {**outer, "anyOf": [inner, {"$ref": _REFERENCE}]}


def _is_plain(field: Mapping[str, Any]) -> bool:
    """Tell whether a field takes less than any text."""
    plain = field.get("type") in {"integer", "number", "boolean"}
    return plain or "enum" in field or "pattern" in field or "format" in field


def document() -> dict[str, Any]:
    """Return the schema of a file: any of the sections, in the order in which they are explained."""
    schema = Tree.model_json_schema(by_alias=True, schema_generator=_Generator)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "Configuration of llm-gateway"
    schema["properties"] = {name: schema["properties"][name] for name in SECTIONS}
    prices = schema["properties"]["prices"]
    rows = prices["additionalProperties"]
    prices["additionalProperties"] = {"anyOf": [rows["items"], rows]}
    return _without_titles(schema)


def _without_titles(value: Any, *, names: bool = False) -> Any:  # noqa: ANN401  JSON
    """Drop the titles that only repeat the names; `names` says that the keys are names of fields."""
    if isinstance(value, dict):
        block = cast("dict[str, Any]", value)
        return {
            key: _without_titles(each, names=key in {"properties", "$defs"} and not names)
            for key, each in block.items()
            if names or key != "title" or "$schema" in block
        }
    if isinstance(value, list):
        return [_without_titles(each) for each in cast("list[Any]", value)]
    return value


def text() -> str:
    """Return the schema as it stands in config/schema.json."""
    return codec.indented(document())


if __name__ == "__main__":
    sys.stdout.write(text())
