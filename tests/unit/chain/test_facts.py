"""What is known of models: by any name that hosts give them, ends at their own provider alone, configuration first."""

from datetime import date, timedelta
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from tomllib import loads
from typing import Any

import pytest

from gateway.chain.endings import ending_notes
from gateway.chain.explain import describe, render
from gateway.chain.facts import NO_FACTS, ModelFacts, known_of, together
from gateway.chain.layers import known_middleware
from gateway.chain.prices import Tariff
from gateway.config.loader import load
from gateway.config.schema import Tree
from gateway.core import clock, codec
from gateway.providers.registry import PROVIDERS

Json = dict[str, Any]

TODAY = clock.now().date()
GONE, COMING = TODAY - timedelta(days=1), TODAY + timedelta(days=1)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("anthropic", "claude-opus-4-1-20250805"),
        ("vertex", "claude-opus-4-1@20250805"),
        ("bedrock", "eu.anthropic.claude-opus-4-1-20250805-v1:0"),
        (
            "bedrock",
            "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-opus-4-1-20250805-v1:0",
        ),
        ("openrouter", "anthropic/claude-opus-4.1"),
        ("openai_compatible", "Claude-Opus-4-1"),
    ],
)
def test_a_model_is_known_by_the_names_of_all_its_hosts(kind: str, name: str) -> None:
    known = known_of(kind, "", name)

    assert (known.context, known.output) == (200_000, 32_000)
    assert known.takes == ("text", "image", "file")
    assert known.gives == ("text",)


@pytest.mark.parametrize(
    ("kind", "name", "output"),
    [
        ("openai", "gpt-4o", 16_384),
        ("openai", "gpt-4o-2024-05-13", 4_096),
        ("openai", "ft:gpt-4o-2024-08-06:acme::abc", 16_384),
        ("azure", "gpt-5.4-mini", 128_000),
        ("gemini", "models/gemini-3.8-flash", 65_536),
        ("anthropic", "claude-sonnet-4-5", 64_000),
        ("anthropic", "claude-opus-4-8", 128_000),
        ("groq", "openai/gpt-oss-120b", 65_536),
        ("vllm", "openai/gpt-oss-120b", None),
        ("vllm", "my-own-model", None),
        ("openai", "gpt-4o-transcribe", None),
    ],
)
def test_the_longest_answer_is_that_of_the_very_model(
    kind: str, name: str, output: int | None
) -> None:
    assert known_of(kind, "", name).output == output


def test_a_name_ends_at_its_own_provider_alone() -> None:
    ended = known_of("openai", "", "o1-mini")

    assert (ended.ends, ended.lifecycle) == (date(2025, 10, 27), "retired")
    assert known_of("openai", "https://api.openai.com/v1", "o1-mini").lifecycle == "retired"
    assert known_of("openai", "https://elsewhere.example/v1", "o1-mini").lifecycle == "active"
    assert known_of("azure", "", "o1-mini").lifecycle == "active"
    assert known_of("cohere", "", "command-r").lifecycle == "deprecated"
    assert known_of("cohere_compatible", "", "command-r").ends is None


@pytest.mark.parametrize(
    ("ends", "lifecycle"),
    [(GONE, "retired"), (TODAY, "retired"), (COMING, "deprecated"), (None, "active")],
)
def test_a_model_is_retired_from_its_day_on(ends: date | None, lifecycle: str) -> None:
    assert ModelFacts(ends=ends).lifecycle == lifecycle


def test_several_targets_promise_what_each_of_them_keeps() -> None:
    wide = ModelFacts(1_000, 100, ("text", "image", "file"), ("text",), COMING, deprecated=True)
    narrow = ModelFacts(500, None, ("text", "image"), ("text",))

    both = together([wide, narrow])

    assert both == ModelFacts(500, 100, ("text", "image"), ("text",))
    assert together([wide, wide._replace(ends=GONE)]).ends == COMING
    assert together([]) == NO_FACTS
    assert together([wide, NO_FACTS]).takes == wide.takes


def test_hosts_of_others_models_say_how_long_a_prompt_may_be_there() -> None:
    own = Tariff("a", "anthropic", "").facts("claude-sonnet-4-5")
    host = Tariff("o", "openrouter", "").facts("anthropic/claude-sonnet-4.5")

    assert own.context == known_of("anthropic", "", "claude-sonnet-4-5").context
    assert host.output == own.output
    assert host.context is not None


def test_the_table_says_nothing_twice_or_in_vain() -> None:
    read: dict[str, list[dict[str, Any]]] = loads(
        files("gateway.chain").joinpath("model_facts.toml").read_text("utf-8")
    )
    media = {"text", "image", "audio", "video", "file", "embeddings"}
    names: list[tuple[str, str]] = []
    for row in read["models"]:
        assert row.keys() <= {"names", "at", "context", "output", "takes", "gives"}
        assert set(row.get("takes", ())) | set(row.get("gives", ())) <= media
        assert row.get("output", 1) <= row.get("context", 1 << 30)
        assert set(row.get("at", ())) <= PROVIDERS.keys()
        names += [(name, kind) for name in row["names"] for kind in row.get("at", [""])]
    ends = [(name, row["at"]) for row in read["endings"] for name in row["names"]]
    for listed in (names, ends):
        assert not [one for one, other in pairwise(sorted(listed)) if one == other]
        assert all(name.count("*") <= 1 and name == name.lower() for name, _ in listed)
    assert {kind for _, kind in ends} <= PROVIDERS.keys()
    assert all("day" in row or row["deprecated"] for row in read["endings"])


def tree_of(folder: Path, models: Json) -> Tree:
    providers = {
        "openai": {"kind": "openai", "api_key": "sk-upstream-0123456789abcdef"},
        "other": {"kind": "openai_compatible", "base_url": "https://elsewhere.example/v1"},
    }
    path = folder / "gateway.yaml"
    path.write_bytes(codec.encode({"providers": providers, "models": models}))
    return load(
        path,
        environ={"HOME": str(folder)},
        known_kinds={"openai": (), "openai_compatible": ()},
        known_middleware=known_middleware(),
    )


def test_what_ends_is_told_of_each_target_and_the_configuration_goes_first(tmp_path: Path) -> None:
    old = {"provider": "openai", "model": "o1-mini"}
    elsewhere = {"provider": "other", "model": "o1-mini"}
    tree = tree_of(
        tmp_path,
        {
            "gone": {"targets": [old, elsewhere]},
            "kept": {"targets": [old], "retires": "2999-01-01"},
            "own": {"targets": [elsewhere], "retires": "2020-01-01"},
            "any/*": {"targets": [{"provider": "openai", "model": "*"}]},
        },
    )
    told = [
        "models.gone: openai/o1-mini is served no more since 2025-10-27",
        "models.kept: openai/o1-mini will be served no more from 2999-01-01 on",
        "models.own: other/o1-mini is served no more since 2020-01-01",
    ]

    assert list(ending_notes(tree)) == told
    assert describe(tree)["notes"][-3:] == told


def test_a_plan_tells_the_facts_of_its_targets(tmp_path: Path) -> None:
    limits = {"context_tokens": 9_000}
    target = {"provider": "openai", "model": "gpt-4o"}
    plan = describe(tree_of(tmp_path, {"m": {"targets": [target], "limits": limits}}))

    (told,) = plan["models"]["m"]["targets"]
    assert told["facts"]["context_tokens"] == 9_000
    assert told["facts"]["max_output_tokens"] == 16_384
    line = "9000 tokens in all; 16384 tokens of the answer; takes text, image, file; gives text"
    assert f"      {line}" in render(plan).splitlines()
