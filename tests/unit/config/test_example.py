"""What users copy must work: the example, the schema for editors, the tables of the docs."""

import json
import re
import secrets
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gateway.chain.layers import known_middleware
from gateway.config import schema_json, tables
from gateway.config.loader import check, load
from gateway.config.node import Node
from gateway.config.reading import read
from gateway.providers.registry import PROVIDERS

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "config"
KINDS = {kind: (row.key_variable,) for kind, row in PROVIDERS.items()}
MIDDLEWARE = known_middleware()


def asked_for() -> set[str]:
    text = "".join(file.read_text() for file in EXAMPLE.rglob("*.yaml"))
    return set(re.findall(r"env:([A-Z][A-Z0-9_]*)(?!\?)\b(?!\?)", text)) - {"NAME"}


def test_the_example_has_no_mistakes() -> None:
    environ = {name: secrets.token_urlsafe(32) for name in asked_for()} | {"HOME": "/nowhere"}

    found = check(EXAMPLE, environ=environ, known_kinds=KINDS, known_middleware=MIDDLEWARE)

    assert [str(each) for each in found] == []
    tree = load(EXAMPLE, environ=environ, known_kinds=KINDS)
    assert set(tree.tenants) == {"acme", "globex", "initech"}
    assert [entry.kind for entry in tree.chain_of("globex")] == ["budget", "retry"]
    assert [entry.kind for entry in tree.chain_of("initech")] == ["retry"]


def test_the_example_names_every_variable_that_it_needs() -> None:
    text = (EXAMPLE / "gateway.yaml").read_text()
    listed = text[text.index("It needs these variables") : text.index("Keys of this gateway")]

    assert asked_for() == set(re.findall(r"[A-Z][A-Z0-9_]{4,}", listed))


def mistakes_of(schema: dict[str, Any], tree: Any) -> list[str]:
    validator: Any = jsonschema.Draft202012Validator(schema)
    return [f"{each.json_path}: {each.message}" for each in validator.iter_errors(tree)]


def plain(node: Node) -> Any:
    if isinstance(node.value, dict):
        return {key: plain(each) for key, each in node.value.items()}
    if isinstance(node.value, list):
        return [plain(each) for each in node.value]
    return node.value


@pytest.mark.parametrize("file", sorted(EXAMPLE.rglob("*.yaml")), ids=lambda file: file.name)
def test_editors_find_the_schema_and_accept_the_example(file: Path) -> None:
    first = file.read_text().splitlines()[0]
    schema = file.parent / first.removeprefix("# yaml-language-server: $schema=")
    root = read(file).root
    assert root is not None

    assert mistakes_of(json.loads(schema.read_text()), plain(root)) == []


WRONG: list[dict[str, Any]] = [
    {"servr": {}},
    {"server": {"prot": 1}},
    {"server": {"port": "x"}},
    {"tenants": {"t": {"keys": [{"secret": "x"}]}}},
    {"models": {"m": {"targets": []}}},
    {"defaults": {"chain": [{"a": {}, "b": {}}]}},
    {"prices": {"a/b": {"input": "x", "output": 1}}},
]
REFERRING: list[dict[str, Any]] = [
    {"server": {"port": "env:PORT?4000", "workers": "file:workers"}},
    {"telemetry": {"log_bodies": "env:BODIES", "log_level": "env:LEVEL"}},
    {"models": {"m": {"targets": [{"provider": "a", "model": "b", "weight": "env:N"}]}}},
    {
        "models": {
            "m": {
                "targets": [{"provider": "a", "model": "b"}],
                "limits": {"context_tokens": "env:N"},
            }
        }
    },
]


document = cache(schema_json.document)


@pytest.mark.parametrize("tree", WRONG)
def test_editors_mark_what_the_loader_refuses(tree: dict[str, Any]) -> None:
    assert mistakes_of(document(), tree) != []


@pytest.mark.parametrize("tree", REFERRING)
def test_editors_accept_references(tree: dict[str, Any]) -> None:
    assert mistakes_of(document(), tree) == []


def test_the_schema_is_that_of_the_models() -> None:
    assert (EXAMPLE / "schema.json").read_text() == schema_json.text(), (
        "run python -m gateway.config.schema_json > config/schema.json"
    )


def test_the_tables_are_those_of_the_models() -> None:
    page = (ROOT / "docs/configuration.md").read_text()

    assert page == tables.fill(page), "run python -m gateway.config.tables docs/configuration.md"


def fields(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, definition in {"": schema, **schema["$defs"]}.items():
        for field, facts in definition.get("properties", {}).items():
            yield f"{name}.{field}", facts


def test_every_field_is_described_and_has_a_place_in_the_docs() -> None:
    schema = document()
    page = (ROOT / "docs/configuration.md").read_text()
    models = {name for name, facts in schema["$defs"].items() if "properties" in facts}

    assert {f"<!-- table: {name} -->" for name in models} <= set(
        re.findall(r"<!-- table: \w+ -->", page)
    )
    assert [
        name for name, facts in fields(schema) if "description" not in facts and "$ref" not in facts
    ] == []
