"""What `make check` leaves out is run by `make test`, in full."""

import re
import subprocess

from tests.support.rounds import QUICK, rounds, some
from tests.support.shared import ROOT


def recipe(target: str) -> str:
    """Return the commands that make would run, without running them."""
    command = ["make", "--dry-run", "--assume-old=.venv/.dev", target]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_all_tests_run_in_full_in_make_test() -> None:
    asked = recipe("test")

    assert "pytest" in asked
    assert not re.search(r"TESTS=|\s-m\s(?!pytest)", asked)


def test_the_check_draws_less_often() -> None:
    for target in ("unit-formats", "unit-others"):
        assert "TESTS=quick" in recipe(target)
    assert len(rounds(800)) == (100 if QUICK else 800)
    assert len(some(list(range(80)))) == (10 if QUICK else 80)
