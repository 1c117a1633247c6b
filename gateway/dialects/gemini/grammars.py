"""What a history must be for a model of Google's, as data."""

from functools import lru_cache

from gateway.dialects.gemini.families import Family
from gateway.dialects.gemini.paths import VERTEX
from gateway.dialects.grammar import Grammar, NameRules, SchemaRules

_KEYWORDS = frozenset(
    {
        "$defs",
        "$ref",
        "additionalProperties",
        "anyOf",
        "default",
        "description",
        "enum",
        "example",
        "format",
        "items",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "nullable",
        "oneOf",
        "pattern",
        "prefixItems",
        "properties",
        "propertyOrdering",
        "required",
        "title",
        "type",
    }
)
_FORMATS = frozenset(
    {"date-time", "date", "time", "enum", "float", "double", "int32", "int64", "byte"}
)
_FIRST_WITH_URLS = _FIRST_WITH_CYCLES = (2, 5)
_BUCKETS = ("gs://",)
"""Addresses of Google's own store, which Vertex reads."""


@lru_cache(maxsize=64)
def grammar_of(kind: str, family: Family) -> Grammar:
    """Return the grammar of a family: results of one turn in one content, system apart, the user last (K33)."""
    fetches = kind == VERTEX or family.version >= _FIRST_WITH_URLS
    return Grammar(
        alternates=True,
        first_user=True,
        system="single",
        empty_text=False,
        prefill=False,
        results_together=True,
        results_complete=True,
        results_text_only=not family.is_third,
        object_arguments=True,
        makers=frozenset({"gemini"}),
        image_urls=fetches,
        file_urls=True,
        own_urls=_BUCKETS if kind == VERTEX else (),
        foreign_urls=() if kind == VERTEX else _BUCKETS,
        most_stops=5,
        items=frozenset({"gemini"}),
        bags=frozenset({"gemini"}),
        titles="none",
        names=NameRules(r"[a-zA-Z_][a-zA-Z0-9_-]*", 64),
        schema=SchemaRules(
            keep=_KEYWORDS,
            refs=False,
            cycles=family.version >= _FIRST_WITH_CYCLES,
            null_as="type_list",
            const_as_enum=True,
            string_enums=False,
            formats=_FORMATS,
        ),
    )
