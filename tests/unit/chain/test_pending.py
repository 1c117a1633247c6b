"""What has no effect is told, one line each, and nothing else is."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.chain.explain import describe, render
from gateway.chain.layers import known_middleware
from gateway.chain.pending import setting_notes
from gateway.config.loader import load
from gateway.config.schema import Tree
from gateway.core import codec

BASE: dict[str, Any] = {
    "providers": {"echo": {"kind": "echo"}},
    "models": {"echo": {"targets": [{"provider": "echo", "model": "echo"}]}},
    "tenants": {"team": {"models": ["echo"]}},
}
WRITTEN: list[tuple[dict[str, Any], str]] = [
    ({"telemetry": {"otlp_endpoint": "http://127.0.0.1:4318"}}, "telemetry.otlp_endpoint: "),
    ({"telemetry": {"log_bodies": True}}, "telemetry.log_bodies: "),
    (
        {"tenants": {"team": {"models": ["echo"], "agents": {"support": {"model": "echo"}}}}},
        "tenants.team.agents: ",
    ),
]


def tree_of(folder: Path, more: dict[str, Any], **environ: str) -> Tree:
    path = folder / "gateway.yaml"
    path.write_bytes(codec.encode({**BASE, **more}))
    return load(
        path,
        environ={"HOME": str(folder), **environ},
        known_kinds={"echo": ()},
        known_middleware=known_middleware(),
    )


def lines(tree: Tree) -> Iterator[str]:
    yield from render(describe(tree)).splitlines()


@pytest.mark.parametrize(("written", "start"), WRITTEN, ids=[start for _, start in WRITTEN])
def test_a_setting_without_effect_is_named_at_the_start_and_in_the_plan(
    tmp_path: Path, written: dict[str, Any], start: str
) -> None:
    tree = tree_of(tmp_path, written)
    (note,) = setting_notes(tree)

    assert note.startswith(start)
    assert "\n" not in note
    assert describe(tree)["notes"] == [note]
    assert f"note: {note}" in lines(tree)


def test_what_has_an_effect_or_is_not_written_is_not_named(tmp_path: Path) -> None:
    tree = tree_of(tmp_path, {"telemetry": {"log_bodies": False, "log_level": "debug"}})

    assert list(setting_notes(tree)) == []
    assert [line for line in lines(tree) if line.startswith("note: ")] == []


def test_a_variable_is_named_like_a_written_setting(tmp_path: Path) -> None:
    tree = tree_of(tmp_path, {}, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:4318")

    assert [note.partition(":")[0] for note in setting_notes(tree)] == ["telemetry.otlp_endpoint"]


def test_a_variable_that_was_left_aside_is_named_in_the_plan(tmp_path: Path) -> None:
    tree = tree_of(tmp_path, {}, REDIS_URL="fakeredis://h/0")

    assert [note.partition(" ")[0] for note in describe(tree)["notes"]] == ["REDIS_URL"]
