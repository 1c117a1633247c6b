"""What kinds of providers need, take and can be asked in is checked where it is written."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.cli.commands import kind_rules, load_tree
from gateway.config.errors import ConfigError
from gateway.config.kinds import Kinds
from gateway.config.loader import load

CLOUD = frozenset({"profile", "credentials_file"})

REST = """
models: {m: {targets: [{provider: p, model: x}]}}
tenants: {t: {keys: [{id: k, secret: sk-7f3k9d2m5q8w1x4z6v0b}], models: [m]}}
"""


@pytest.fixture
def mistakes(tmp_path: Path) -> Callable[[str], list[str]]:
    def find(entry: str) -> list[str]:
        path = tmp_path / "gateway.yaml"
        path.write_text(f"providers:\n  p: {entry}\n{REST}", encoding="utf-8")
        try:
            load_tree(path)
        except ConfigError as error:
            return [f"{each.path}: {each.message}" for each in error.mistakes]
        return []

    return find


@pytest.mark.bug("K41")
@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("{kind: bedrock}", "providers.p: a provider of the kind bedrock needs `region`"),
        ("{kind: vertex, region: us-east5}", "needs `project`"),
        ("{kind: azure}", "needs `base_url`"),
        ("{kind: openai, region: us-east-1}", "providers.p.region: has no effect"),
        ("{kind: gemini, dialect: openai_chat}", "is no choice for the kind gemini"),
        ("{kind: openai, dialect: bedrock_converse}", "the choices are: anthropic_messages"),
        (
            "{kind: vertex, region: r, project: p, credentials_file: /none.json}",
            "providers.p.credentials_file: there is no such file",
        ),
    ],
)
def test_what_cannot_be_used_is_told_with_its_place(
    mistakes: Callable[[str], list[str]], entry: str, words: str
) -> None:
    found = mistakes(entry)

    assert len(found) == 1
    assert words in found[0]


@pytest.mark.parametrize(
    "entry",
    [
        "{kind: bedrock, region: us-east-1}",
        '{kind: vertex, base_url: "https://proxy.example.com/v1"}',
        "{kind: openai, dialect: openai_responses}",
        "{kind: bedrock, region: eu-west-1, dialect: anthropic_messages}",
    ],
)
def test_what_can_be_used_is_taken(mistakes: Callable[[str], list[str]], entry: str) -> None:
    assert mistakes(entry) == []


@pytest.mark.bug("K41")
@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("{kind: bedrock, region: r}", "without an API key, signing its requests needs a thing"),
        ("{kind: bedrock, region: r, profile: me}", "signing its requests needs a thing"),
        ("{kind: bedrock, region: r, api_key: abs-Zq8kLm3PvT7wXy2R}", ""),
        ("{kind: vertex, region: r, project: p}", ""),
        (
            "{kind: vertex, region: r, project: p, credentials_file: FILE}",
            "reading it needs a thing",
        ),
        ("{kind: openai, api_key: sk-Zq8kLm3PvT7wXy2R}", ""),
    ],
)
def test_a_package_that_is_not_there_is_told_before_the_start(
    tmp_path: Path, entry: str, words: str
) -> None:
    path = tmp_path / "gateway.yaml"
    entry = entry.replace("FILE", str(path))
    path.write_text(f"providers:\n  p: {entry}\n{REST}", encoding="utf-8")
    rules = {
        kind: rule._replace(lacks="a thing" if CLOUD & rule.takes else "")
        for kind, rule in kind_rules().items()
    }
    kinds = Kinds(dict.fromkeys(rules, ()), rules)
    try:
        load(path, environ={}, known_kinds=kinds)
        found: list[str] = []
    except ConfigError as error:
        found = [each.message for each in error.mistakes]

    assert len(found) == bool(words)
    assert words in "".join(found)


def test_what_is_installed_here_lacks_nothing() -> None:
    assert {rule.lacks for rule in kind_rules().values()} == {""}
