"""K41 at every place of a good tree: rename, repeat, unset, retype or empty it, and the right line is named."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

import pytest
import yaml

from tests.support.rounds import some

Check = Callable[..., list[str]]
Path = tuple[str | int, ...]

GOOD = """\
server:
  host: 127.0.0.1
  port: 8080
  admin: {host: 127.0.0.1, port: 8081, key: env:ACME_ADMIN}
  workers: 2
  max_in_flight: 100
  drain_s: 1.5
stores:
  state: memory
  database: sqlite:keys.db
  on_state_down: open
telemetry: {log_level: debug, log_bodies: true, otlp_endpoint: "http://127.0.0.1:4318"}
providers:
  one:
    kind: openai
    api_keys:
      - env:OPENAI_KEY
    timeout:
      connect_s: 2
      idle_s: 30
    status_map: {"404": NOT_FOUND}
    headers: {x-team: blue}
    verify_tls: true
    quota_group: g1
    organization: org
  two:
    kind: openai_compatible
    base_url: http://127.0.0.1:8000/v1
    api_key: env:OPENAI_KEY
    transport: httpx
    http2: true
    proxy: http://127.0.0.1:3128
models:
  fast:
    balance: session
    targets:
      - provider: one
        model: gpt
        weight: 3
        params: {temperature: 0.2, stop: [a, b]}
      - {provider: two, model: llama}
    limits: {context_tokens: 1000, max_output_tokens: 100}
    supports: [tools, images]
  claude-*:
    targets: [{provider: two, model: "c-*"}]
prices:
  one/gpt: {input: 0.15, output: 0.6, cache_read: 0.075, from: 2024-07-18}
  two/llama:
    - {input: 1, output: 2}
    - {input: 1, output: 2, cache_write: 3, from: 2026-01-01}
tenants:
  acme:
    keys:
      - {id: web, secret: env:ACME_KEY}
      - id: ci
        hash: "sha256:7b4f2e3c8d9f0a1b2c3d4e5f60718293a4b5c6d7e8f90123456789abcdef0123"
        models: [fast]
        expires: 2027-01-01
    models: [fast, claude-*]
    providers: [one]
    chain:
      - retry
      - limits: {requests: {per_minute: 600}, log: true}
      - guardrail:
          id: pii
          mode: off
          for_tools: [search]
          when: {models: [fast], paths: [/v1/chat/completions]}
          input: [{kind: pii, action: redact}]
      - stack: standard
    agents:
      support:
        model: fast
        system: You help.
        chain: [retry]
        tools: [{name: search}]
        prompt_middleware: agents/support/middleware.yaml
defaults:
  chain: [retry]
stacks:
  standard: [budget, {fallback: {models: [fast]}}]
"""
ADMIN = "ad-H2kLz8QpXn5TgYv1MbWc7RdS"

# Names that the operator chooses: renaming one is no mistake where nothing else refers to it.
FREE_NAMES = re.compile(
    r"(tenants|tenants/acme/agents|stacks|models|providers|providers/one/headers)/[^/]+\Z|prices/\w+/\w+\Z"
)
# Blocks that the configuration hands on as they are.
RAW = re.compile(
    r".*/params(/.*)?\Z|.*/tools/\d.*|(tenants/.*/chain|defaults/chain|stacks/[^/]+)/\d+/\w+"
    r"(?!/(id|mode|log|for_tools|when)(/|\Z))(/.*)?\Z"
)
OPTIONS = re.compile(r".*/chain/\d+/\w+/(id|mode|log|for_tools|when)\Z")
ENTRY = re.compile(r"(.*/chain|stacks/\w+)/\d+\Z")
NULL = re.compile(r".*/(models|chain|supports|api_keys|when|paths|for_tools)\Z")
MAY_BE_EMPTY = re.compile(
    r"tenants/\w+/(models|providers|chain)\Z|.*/agents/\w+/(chain|tools)\Z|defaults/chain\Z|.*/supports\Z"
)


@dataclass(frozen=True)
class Spot:
    """A value of the good tree, and where its key and the value itself stand in the text."""

    path: Path
    node: yaml.Node
    key: yaml.Node | None

    @property
    def name(self) -> str:
        return "/".join(map(str, self.path))

    @property
    def line(self) -> int:
        return self.node.start_mark.line + 1

    def replaced(self, text: str) -> str:
        """Return the tree with another value here."""
        start, end = self.node.start_mark.index, self.node.end_mark.index
        # A block ends, for the parser, where the next token begins.
        return GOOD[:start] + text + GOOD[start + len(GOOD[start:end].rstrip()) :]


def spots(node: yaml.Node, path: Path = (), key: yaml.Node | None = None) -> Iterator[Spot]:
    if path:
        yield Spot(path, node, key)
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            yield from spots(value, (*path, name.value), name)
    elif isinstance(node, yaml.SequenceNode):
        for at, value in enumerate(node.value):
            yield from spots(value, (*path, at))


SPOTS = list(spots(cast("yaml.Node", yaml.compose(GOOD))))
SCALARS = some([spot for spot in SPOTS if isinstance(spot.node, yaml.ScalarNode)])
BLOCKS = some([spot for spot in SPOTS if isinstance(spot.node, yaml.MappingNode)])
LISTS = some([spot for spot in SPOTS if isinstance(spot.node, yaml.SequenceNode)])
KEYS = some([spot for spot in SPOTS if spot.key is not None])


Lines = Callable[[str], set[int]]


@pytest.fixture
def lines(check_text: Check) -> Lines:
    """Return the lines that the mistakes of a text name."""

    def lines(text: str) -> set[int]:
        found = check_text(text, ACME_ADMIN=ADMIN)
        assert all(re.match(r"\d+:\d+: ", mistake) for mistake in found), found
        return {int(mistake.split(":")[0]) for mistake in found}

    return lines


def where(spot: Spot) -> set[int]:
    """Return the lines at which a mistake about a value may be reported: its own and its key's."""
    return {spot.line} if spot.key is None else {spot.line, spot.key.start_mark.line + 1}


def missed(lines: Lines, found: list[Spot], *values: str) -> list[str]:
    """Return the spots where another value is accepted, or refused at a wrong line."""
    return [
        f"{spot.name} = {value}"
        for spot in found
        for value in values
        if not lines(spot.replaced(value)) & where(spot)
    ]


def known(found: list[Spot]) -> list[Spot]:
    return [spot for spot in found if not RAW.match(spot.name)]


def test_the_tree_is_good_before(lines: Lines) -> None:
    assert lines(GOOD) == set()
    assert len(SPOTS) > 120


@pytest.mark.bug("K41")
def test_a_renamed_key_is_refused(lines: Lines) -> None:
    wrong: list[str] = []
    for spot in known(KEYS):
        # An unknown field of an entry is an option: only its kind can refuse it.
        if FREE_NAMES.match(spot.name) or OPTIONS.match(spot.name):
            continue
        assert spot.key is not None
        end = spot.key.end_mark.index - (GOOD[spot.key.end_mark.index - 1] in "\"'")
        if spot.key.start_mark.line + 1 not in lines(GOOD[:end] + "zz" + GOOD[end:]):
            wrong.append(spot.name)

    assert wrong == []


@pytest.mark.bug("K41")
@pytest.mark.parametrize(
    ("name", "used"),
    [
        ("  one:\n", "provider: one"),
        ("  two:\n", "provider: two"),
        ("  fast:\n", "models: [fast, claude-*]"),
        ("  claude-*:\n", "models: [fast, claude-*]"),
        ("  standard:", "stack: standard"),
        ("one/gpt", "zone/gpt"),
    ],
)
def test_a_renamed_name_is_missed_where_it_is_used(lines: Lines, name: str, used: str) -> None:
    text = GOOD.replace(name, name.replace(name.strip(), f"z{name.strip()}"), 1)

    assert text[: text.index(used)].count("\n") + 1 in lines(text)


@pytest.mark.bug("K41")
def test_a_key_that_stands_twice_is_refused(lines: Lines) -> None:
    wrong: list[str] = []
    for spot in KEYS:
        assert spot.key is not None
        start = spot.key.start_mark
        key = GOOD[start.index : spot.key.end_mark.index]
        is_flow = GOOD[: start.index].rstrip(" ")[-1:] in {"{", ","}
        again = f"{key}: 1, " if is_flow else f"{key}: 1\n{' ' * start.column}"
        found = lines(GOOD[: start.index] + again + GOOD[start.index :])
        if start.line + 1 + (not is_flow) not in found:
            wrong.append(spot.name)

    assert wrong == []


@pytest.mark.bug("K41")
def test_an_unset_variable_is_refused(lines: Lines) -> None:
    assert missed(lines, SCALARS, "env:NOWHERE_SET") == []


@pytest.mark.bug("K41")
def test_a_plain_value_of_the_wrong_type_is_refused(lines: Lines) -> None:
    assert missed(lines, known(SCALARS), "[[x]]", "{zz: {y: x}}", "-7.5") == []
    flags = [spot for spot in known(SCALARS) if GOOD[spot.node.start_mark.index :][:4] == "true"]
    assert missed(lines, flags, "yes", "1") == []
    others = [spot for spot in known(SCALARS) if spot not in flags]
    assert missed(lines, others, "true") == []


@pytest.mark.bug("K41")
def test_a_block_or_list_of_the_wrong_type_is_refused(lines: Lines) -> None:
    assert missed(lines, known(BLOCKS + LISTS), "7", "true") == []
    assert (
        missed(
            lines, [spot for spot in known(BLOCKS + LISTS) if not ENTRY.match(spot.name)], "word"
        )
        == []
    )
    # null is the default of these, spelled out.
    assert (
        missed(lines, [spot for spot in known(BLOCKS + LISTS) if not NULL.match(spot.name)], "null")
        == []
    )


@pytest.mark.bug("K41")
def test_a_value_that_is_left_out_is_refused(lines: Lines) -> None:
    # Nothing between two commas of a flow list is not there at all.
    assert missed(lines, [spot for spot in SPOTS if spot.key is not None], "") == []


@pytest.mark.bug("K41")
def test_what_is_empty_is_refused(lines: Lines) -> None:
    full = [spot for spot in known(LISTS) if not MAY_BE_EMPTY.match(spot.name)]
    assert missed(lines, full, "[]") == []
    assert missed(lines, known(BLOCKS), "{}") == []
    assert missed(lines, known(SCALARS), '""') == []
