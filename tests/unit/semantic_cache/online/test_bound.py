"""The bounds are Clopper and Pearson's."""

import pytest

from gateway.middleware.semantic_cache.online.bound import is_above, is_below, upper


@pytest.mark.parametrize(
    ("wrong", "seen", "expected"),
    # Closed form where nothing was wrong: 1 - 0.1 ** (1 / n); the others from published tables.
    [(0, 10, 0.20567), (0, 100, 0.02276), (1, 10, 0.33685), (2, 20, 0.24477), (10, 1000, 0.01534)],
)
def test_the_upper_bound_is_that_of_the_tables(wrong: int, seen: int, expected: float) -> None:
    assert upper(wrong, seen, 0.9) == pytest.approx(expected, abs=5e-5)


def test_a_bound_is_below_a_limit_exactly_from_the_limit_on() -> None:
    bound = upper(3.5, 410.2, 0.9)

    assert is_below(3.5, 410.2, bound + 1e-6, 0.9)
    assert not is_below(3.5, 410.2, bound - 1e-6, 0.9)


def test_nothing_seen_proves_nothing() -> None:
    assert upper(0, 0, 0.9) == 1.0
    assert not is_below(0, 0, 0.5, 0.9)
    assert not is_above(0, 0, 0.01, 0.9)


def test_two_wrong_of_few_are_too_many_and_of_many_are_not() -> None:
    assert is_above(2, 6, 0.02, 0.99)
    assert not is_above(2, 40, 0.02, 0.99)
    assert is_above(12, 12, 0.5, 0.99)
