"""The linter refuses what the house refuses: each ban is tried with a planted line."""

import subprocess
import sys
import tomllib
from typing import Any

import pytest

from tests.support.shared import ROOT

PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
RUFF = PYPROJECT["tool"]["ruff"]["lint"]
BANNED: list[str] = sorted(RUFF["flake8-tidy-imports"]["banned-api"])


def refusals(code: str, path: str) -> str:
    """Return what ruff says about `code` if it stood at `path`."""
    command = [
        sys.executable, "-m", "ruff", "check", "--quiet", "--no-cache", "--output-format=concise",
        f"--config={ROOT / 'pyproject.toml'}", f"--stdin-filename={ROOT / path}", "-",
    ]  # fmt: skip
    done = subprocess.run(command, input=code, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout


def planted(name: str) -> str:
    """Return an import of `name`, with the use of it."""
    module, _, leaf = name.rpartition(".")
    return f"from {module} import {leaf}\n\nprint({leaf})\n" if module else f"import {name}\n"


def test_every_banned_name_is_refused_in_a_middleware() -> None:
    said = refusals("".join(map(planted, BANNED)), "gateway/middleware/planted.py")

    assert [name for name in BANNED if f"TID251 `{name}` is banned" not in said] == []


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("time.monotonic", "gateway/core/clock.py"),
        ("msgspec", "gateway/core/codec.py"),
        ("asyncio.create_task", "gateway/lifecycle/inflight.py"),
        ("os.environ", "gateway/config/settings.py"),
    ],
)
def test_the_owner_may_use_it(name: str, owner: str) -> None:
    assert "TID251" not in refusals(planted(name), owner)


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ("BLE001", "try:\n    print()\nexcept Exception:\n    print()\n"),
        ("PGH003", "x: int = 1  # type: ignore\n"),
        ("PLW0603", "N = 1\n\n\ndef f() -> None:\n    global N\n    N = 2\n"),
        ("C901", "def f(x: int) -> int:\n" + "    if x: x += 1\n" * 13 + "    return x\n"),
        ("PLR0913", "def f(a: int, b: int, c: int, d: int, e: int, f: int, g: int, h: int): ...\n"),
        ("D100", "x = 1\n"),
        ("D103", '"""Doc."""\n\n\ndef f() -> None:\n    return None\n'),
        ("E501", f"x = '{'x' * 120}'\n"),
        ("S105", "password = 'hunter22'\n"),
        ("ASYNC251", "import time\n\n\nasync def f() -> None:\n    time.sleep(1)\n"),
        ("RUF006", "import asyncio\n\n\nasync def f() -> None:\n    asyncio.create_task(f())\n"),
    ],
)
def test_a_refused_habit_is_refused(rule: str, code: str) -> None:
    assert rule in refusals(code, "gateway/middleware/planted.py")


def test_every_ignored_rule_has_its_reason_on_the_line() -> None:
    lines = (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    start = lines.index("ignore = [")
    ignored = lines[start + 1 : lines.index("]", start)]

    assert [line for line in ignored if "#" not in line] == []


def test_a_warning_fails_a_test() -> None:
    options = PYPROJECT["tool"]["pytest"]["ini_options"]

    assert options["filterwarnings"][0] == "error"
    assert options["xfail_strict"] is True
    assert {"--strict-markers", "--strict-config"} <= set(options["addopts"])


def test_types_are_checked_strictly_in_code_and_tests() -> None:
    assert PYPROJECT["tool"]["pyright"]["typeCheckingMode"] == "strict"
    assert {"gateway", "tests"} <= set(PYPROJECT["tool"]["pyright"]["include"])
