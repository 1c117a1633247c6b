"""Everything that is wrong with a configuration is told at once, and nothing that is right."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from gateway.cli.commands import load_tree
from gateway.config.errors import ConfigError
from gateway.core import codec

GOOD: dict[str, Any] = {
    "server": {"port": 4000, "workers": 2},
    "stores": {"state": "redis://127.0.0.1:1/0", "database": "memory"},
    "providers": {
        "echo": {"kind": "echo"},
        "own": {"kind": "openai_compatible", "base_url": "http://127.0.0.1:1/v1", "api_key": "sk-own-0123456789abcdef"},
    },
    "models": {
        "m": {"targets": [{"provider": "echo", "model": "m"}]},
        "n": {"targets": [{"provider": "own", "model": "n"}]},
    },
    "prices": {"own/n": {"input": 1, "output": 2}},
    "stacks": {"safe": [{"limits": {"concurrent": 3}}, {"budget": {"limits": [{"usd": 1, "per": "day"}]}}]},
    "defaults": {"chain": [{"stack": "safe"}, {"fallback": {"models": ["n"]}}]},
    "tenants": {
        "acme": {"models": ["m", "n"], "keys": [{"id": "web", "secret": "gw-0123456789abcdef0123456789"}]},
        "zoo": {"models": ["m"], "use": ["retry"], "chain": [{"stack": "safe"}, "retry"]},
    },
}  # fmt: skip
Way = tuple[str | int, ...]


def ways(value: Any, way: Way = ()) -> Iterator[Way]:
    """Yield the way to every value, of chains and stacks to the whole alone."""
    if way:
        yield way
    if way[-1:] == ("chain",) or way[:1] == ("stacks",) or not isinstance(value, dict | list):
        return
    whole = cast("Any", value)
    names: list[Any] = [*whole] if isinstance(whole, dict) else [*range(len(whole))]
    for name in names:
        yield from ways(whole[name], (*way, name))


def broken(way: Way, wrong: object) -> dict[str, Any]:
    """Return the good configuration with something else in one place."""
    config: Any = copy.deepcopy(GOOD)
    place = config
    for part in way[:-1]:
        place = place[part]
    place[way[-1]] = wrong
    return config


def mistakes(folder: Path, config: dict[str, Any]) -> list[str]:
    path = folder / "gateway.yaml"
    path.write_bytes(codec.encode(config))
    try:
        load_tree(path)
    except ConfigError as error:
        return [f"{each.path}: {each.message}" for each in error.mistakes]
    return []


def test_the_good_one_is_good(tmp_path: Path) -> None:
    assert mistakes(tmp_path, GOOD) == []


@pytest.mark.parametrize(
    "wrong", [None, 17.5, "", "zz", [], [[]], {"zz": 1}, [None, "zz"]], ids=str
)
def test_chains_are_not_blamed_for_what_stands_elsewhere(tmp_path: Path, wrong: object) -> None:
    for way in ways(GOOD):
        told = mistakes(tmp_path, broken(way, wrong))
        blamed = [
            each
            for each in told
            if ".chain[" in each
            and "there is no stack" not in each
            and "there is no model" not in each
        ]
        if way[-1] != "chain":
            assert blamed == [], way


@pytest.mark.parametrize(
    "way",
    [way for way in ways(GOOD) if way[:2] != ("tenants", "zoo") and way != ("tenants",)],
    ids=str,
)
def test_mistakes_of_chains_are_told_beside_all_others(tmp_path: Path, way: Way) -> None:
    config = broken(way, {"zz": [17.5]})
    config["tenants"]["zoo"]["chain"] = [{"retry": {"max_retries": "many"}}]

    told = mistakes(tmp_path, config)

    assert "tenants.zoo.chain[0].retry.max_retries: must be a whole number" in told
    assert len(told) == len(set(told))


def test_what_is_refused_in_a_chain_leaves_its_other_entries(tmp_path: Path) -> None:
    config = copy.deepcopy(GOOD)
    config["tenants"]["zoo"]["chain"] = [
        {"limits": {"concurrent": 0}},
        {"retry": {}, "hedge": {}},
        {"retry": {"jitter": "some"}},
        "nothing",
        {"plugin": "gone.py:Gone"},
        {"fallback": {"models": ["n", "zz"]}},
    ]  # fmt: skip

    told = [each for each in mistakes(tmp_path, config) if each.startswith("tenants.zoo")]

    assert [each.partition(": ")[0].removeprefix("tenants.zoo.chain") for each in told] == [
        "[0].limits.concurrent",
        "[1]",
        "[2].retry.jitter",
        "[3]",
        "[4]",
        "[5].fallback.models",
    ]
