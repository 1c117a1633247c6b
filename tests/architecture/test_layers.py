"""A room imports only rooms below it, and each library has one door. Planted breaches are found."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.shared import ROOT

# Where a line is planted, and the contract that it breaks.
BREACHES = {
    "redis in a middleware": ("middleware", "import redis", "redis"),
    "redis in the engine": ("engine", "from redis.asyncio import Redis", "redis"),
    "core looks up": ("core", "import gateway.server.planted", "layers"),
    "a sibling": ("dialects", "import gateway.stores.planted", "layers"),
    "a middleware goes around its port": (
        "middleware",
        "import gateway.upstream.planted",
        "middleware",
    ),
    "the framework in the engine": ("engine", "import starlette", "server"),
    "metrics library in a store": ("stores", "import prometheus_client", "telemetry"),
    "a second HTTP client": ("upstream", "import httpx2", "httpx2"),
    "a database in a middleware": ("middleware", "import sqlite3", "sqlite3"),
    "JSON around the codec": ("dialects", "import msgspec", "msgspec"),
    "a room without a place": ("attic", "import gateway.core", "layers"),
}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the project's code in which a breach can be planted."""
    shutil.copytree(
        ROOT / "gateway", tmp_path / "gateway", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def plant(project: Path, room: str, line: str) -> None:
    """Add a module with `line` to a room, and make sure that room and its neighbours exist."""
    for name in {room, "server", "stores", "upstream"}:
        folder = project / "gateway" / name
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").touch()
        (folder / "planted.py").touch()
    (project / "gateway" / room / "planted.py").write_text(line + "\n", encoding="utf-8")


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


@pytest.mark.parametrize(("room", "line", "contract"), BREACHES.values(), ids=BREACHES.keys())
def test_a_planted_breach_is_found(copy: Path, room: str, line: str, contract: str) -> None:
    plant(copy, room, line)

    done = lint_imports(copy, contract)

    assert done.returncode == 1, done.stdout
    assert "BROKEN" in done.stdout
