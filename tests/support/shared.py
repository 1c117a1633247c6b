"""Where the recordings of providers lie, and what a test does when something it needs is absent.

A clone of the project alone has no recordings: those tests skip and say so. Under CI absence fails.
"""

import os
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).resolve().parents[2]
_BESIDE = ROOT.parent / "shared"

SHARED: Path | None = _BESIDE if (_BESIDE / "tools" / "replay_upstream.py").is_file() else None


def absent(what: str) -> NoReturn:
    """Skip the running test because `what` is absent; fail it under CI."""
    if os.environ.get("CI"):
        pytest.fail(f"absent under CI: {what}", pytrace=False)
    pytest.skip(f"absent: {what}")


def lacking(program: str) -> NoReturn:
    """Skip the running test because this machine has no such program; an empty machine need not have it."""
    pytest.skip(f"absent: {program}")


def require_shared() -> Path:
    """Return the folder with `tools/replay_upstream.py` and `recordings`."""
    if SHARED is None:
        absent("../shared with the replay upstream and the recordings of providers")
    return SHARED
