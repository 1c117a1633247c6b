"""How often a random test draws: in full among all tests, an eighth as often in `make check` (TESTS=quick)."""

import os
from typing import TypeVar

T = TypeVar("T")

QUICK = os.environ.get("TESTS") == "quick"


def rounds(full: int) -> range:
    """Return what a loop over `full` draws runs through."""
    return range(max(full // 8, 2) if QUICK else full)


def some(cases: list[T]) -> list[T]:
    """Return the cases that a loop over all of them tries."""
    return cases[::8] if QUICK else cases
