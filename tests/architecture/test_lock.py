"""What is installed is what was looked at: hashed, few, recent, free of what we refuse."""

import re
import tomllib
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.support.shared import ROOT

REQUIREMENTS = ROOT / "requirements"
LOCKS = ("build", "runtime", "dev")
RUNTIME_PACKAGES = 35

# Oldest releases without a hole that is known and matters here. Dated 30 November 2026.
FLOORS = {
    "starlette": "1.3.1",
    "uvicorn": "0.54",
    "h11": "0.16",
    "httpx2": "2.12",
    "httpcore2": "2.12",
    "redis": "8",
    "pydantic-settings": "2.14.2",
    "python-multipart": "0.0.31",
    "orjson": "3.9.15",
}
REFUSED_AT_RUN_TIME = {"aiohttp", "gunicorn", "httpx", "python-multipart", "requests", "urllib3"}

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def entries(lock: str) -> list[str]:
    """Return the entries of a lock, each on one line, without comments."""
    text = (REQUIREMENTS / f"{lock}.lock").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    return [entry for entry in "\n".join(lines).replace("\\\n", " ").splitlines() if entry.strip()]


def pins(lock: str) -> dict[str, Version]:
    """Return name and version of every package of a lock."""
    found = [re.match(r"([A-Za-z0-9._-]+)==([^\s;]+)", entry) for entry in entries(lock)]
    return {canonicalize_name(pin[1]): Version(pin[2]) for pin in found if pin}


def asked(requirements: list[str]) -> list[Requirement]:
    """Return the requirements that hold on the machines we serve."""
    parsed = [Requirement(text) for text in requirements]
    return [one for one in parsed if one.marker is None or one.marker.evaluate()]


@pytest.mark.parametrize("lock", LOCKS)
def test_every_line_is_a_pin_with_hashes(lock: str) -> None:
    pin = re.compile(
        r"[A-Za-z0-9._-]+==[^\s;]+(\s*;[^-]+(-[^-]+)*?)?(\s+--hash=sha256:[0-9a-f]{64})+\s*"
    )

    assert [entry for entry in entries(lock) if not pin.fullmatch(entry)] == []
    assert len(entries(lock)) == len(pins(lock))


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_place_to_download_from(lock: str) -> None:
    text = (REQUIREMENTS / f"{lock}.lock").read_text(encoding="utf-8")

    assert not re.search(r"://|^-|^\s+-(?!-hash=)|@ ", text, re.MULTILINE)


def test_the_runtime_tree_stays_small() -> None:
    assert len(pins("runtime")) <= RUNTIME_PACKAGES


def test_what_is_refused_is_absent() -> None:
    assert REFUSED_AT_RUN_TIME & set(pins("runtime")) == set()


@pytest.mark.parametrize("lock", LOCKS)
def test_no_package_is_older_than_its_floor(lock: str) -> None:
    old = {
        name: str(version)
        for name, version in pins(lock).items()
        if version < Version(FLOORS.get(name, "0"))
    }

    assert old == {}


def test_tests_run_on_the_versions_that_are_shipped() -> None:
    tested = pins("dev")

    assert {name: tested.get(name) for name in pins("runtime")} == pins("runtime")


@pytest.mark.parametrize(
    ("lock", "requirements"),
    [
        ("build", PROJECT["build-system"]["requires"]),
        ("runtime", PROJECT["project"]["dependencies"]),
        ("dev", PROJECT["dependency-groups"]["dev"]),
    ],
    ids=LOCKS,
)
def test_the_lock_answers_what_the_project_asks(lock: str, requirements: list[str]) -> None:
    locked = pins(lock)

    stale = [
        str(one)
        for one in asked(requirements)
        if (version := locked.get(canonicalize_name(one.name))) is None
        or not one.specifier.contains(version, prereleases=True)
    ]

    assert stale == [], "make lock"


def test_a_library_whose_inside_we_use_is_held_to_one_minor_version() -> None:
    uvicorn = next(
        one for one in asked(PROJECT["project"]["dependencies"]) if one.name == "uvicorn"
    )

    assert uvicorn.specifier.contains("0.54.9")
    assert not uvicorn.specifier.contains("0.55.0")


def test_every_runtime_dependency_is_justified() -> None:
    record = ROOT / "docs" / "decisions" / "001-runtime-dependencies.md"
    rows = re.findall(r"^\| `([^`]+)` \|", record.read_text(encoding="utf-8"), re.MULTILINE)

    assert sorted(rows) == sorted(
        Requirement(text).name for text in PROJECT["project"]["dependencies"]
    )
