"""Ids of runs: each of its own, in the order of time."""

import re
from itertools import pairwise

from gateway.core.ids import new_run_id


def test_ids_of_runs_are_of_one_form_and_never_the_same() -> None:
    made = [new_run_id() for _ in range(2_000)]

    assert all(re.fullmatch(r"run_[0-9a-f]{32}", each) for each in made)
    assert len(set(made)) == len(made)


def test_what_is_made_later_sorts_later_so_that_new_rows_lie_side_by_side() -> None:
    millisecond = slice(0, 16)
    made = [new_run_id()[millisecond] for _ in range(2_000)]

    assert all(first <= second for first, second in pairwise(made))
