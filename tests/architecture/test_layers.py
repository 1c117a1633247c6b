"""A room imports only rooms below it, and each library has one door. Planted breaches are found."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.shared import ROOT

# Where a line is planted, and what is told of it: the contract, and what the planted module reaches.
BREACHES = {
    "redis in a middleware": ("middleware", "import redis", "redis has one door", "redis"),
    "redis in the engine": (
        "engine", "from redis.asyncio import Redis", "redis has one door", "redis",
    ),
    "core looks up": (
        "core", "import gateway.server.planted", "A room imports only rooms below it",
        "gateway.server.planted",
    ),
    "a sibling": (
        "dialects", "import gateway.stores.planted", "A room imports only rooms below it",
        "gateway.stores.planted",
    ),
    "a middleware goes around its port": (
        "middleware", "import gateway.upstream.planted",
        "A middleware reaches the world through its ports", "gateway.upstream.planted",
    ),
    "the framework in the engine": (
        "engine", "import starlette", "The web framework stays at the edge", "starlette",
    ),
    "metrics library in a store": (
        "stores", "import prometheus_client", "The metrics library has one door",
        "prometheus_client",
    ),
    "a second HTTP client": ("upstream", "import httpx2", "httpx2 has one door", "httpx2"),
    "a database in a middleware": (
        "middleware", "import sqlite3", "sqlite3 has one door", "sqlite3",
    ),
    "JSON around the codec": ("dialects", "import msgspec", "JSON has one owner", "msgspec"),
}  # fmt: skip


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """What is told of a copy of the project with every breach in it, by the contract that is broken."""
    project = copy_to(tmp_path_factory.mktemp("planted"))
    for room, line, _, _ in BREACHES.values():
        plant(project, room, line)
    done = lint_imports(project)
    assert done.returncode == 1, done.stdout
    # Each name stands on a line of its own, underlined.
    found = re.split(r"\n\n(.+)\n-+\n\n", done.stdout.partition("Broken contracts\n")[2])
    return dict(zip(found[1::2], found[2::2], strict=True))


def copy_to(folder: Path) -> Path:
    """Copy the project's code, so that breaches can be planted."""
    shutil.copytree(
        ROOT / "gateway", folder / "gateway", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def plant(project: Path, room: str, line: str) -> None:
    """Add a line to the planted module of a room, and make sure that there is one in its neighbours."""
    for name in {room, "server", "stores", "upstream"}:
        folder = project / "gateway" / name
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").touch()
        (folder / "planted.py").touch()
    with (project / "gateway" / room / "planted.py").open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def lint_imports(project: Path, *contracts: str) -> subprocess.CompletedProcess[str]:
    """Run import-linter over a project folder."""
    chosen = [f"--contract={contract}" for contract in contracts]
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo", *chosen],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project), "COLUMNS": "200", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_rooms_stand_as_agreed() -> None:
    done = lint_imports(ROOT)

    assert done.returncode == 0, done.stdout


def test_every_part_of_the_lifecycle_has_its_place() -> None:
    """Its parts stand on two floors, so they are listed one by one."""
    layers = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (listed,) = (
        " ".join(contract["layers"])
        for contract in layers["tool"]["importlinter"]["contracts"]
        if contract["id"] == "layers"
    )
    parts = {path.stem for path in (ROOT / "gateway" / "lifecycle").iterdir()} - {"__init__"}

    assert (
        sorted(part for part in parts - {"__pycache__"} if f"(lifecycle.{part})" not in listed)
        == []
    )


@pytest.mark.parametrize(
    ("room", "contract", "reached"),
    [(room, contract, reached) for room, _, contract, reached in BREACHES.values()],
    ids=BREACHES.keys(),
)
@pytest.mark.slow
def test_a_planted_breach_is_found(
    reports: Mapping[str, str], room: str, contract: str, reached: str
) -> None:
    assert f"gateway.{room}.planted -> {reached} (" in reports[contract]


@pytest.mark.slow
def test_a_room_without_a_place_is_found(tmp_path: Path) -> None:
    project = copy_to(tmp_path)
    plant(project, "attic", "import gateway.core")

    done = lint_imports(project, "layers")

    assert done.returncode == 1, done.stdout
    assert "BROKEN" in done.stdout
