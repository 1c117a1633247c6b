"""What is known of the best candidate for a question, as numbers: never a text (semantic-cache.md 5.4)."""

from collections.abc import Mapping, Sequence
from math import log
from typing import NamedTuple

from gateway.core.caching import Found

FLOOR = 0.55
"""Nearest candidates below this similarity are neither served nor learned from."""
NEAREST = 8
"""How many candidates are looked at."""
OWN = (
    "similarity",
    "margin",
    "share",
    "second",
    "mean",
    "aliases",
    "history",
    "certainty",
)
"""Names of the features that come before the ones of words."""


class History(NamedTuple):
    """What labels said of one answer so far, by weight."""

    right: float = 0.0
    wrong: float = 0.0


class Features(NamedTuple):
    """The best answer (an entry's id), the candidate that speaks for it, and its numbers."""

    answer: str
    best: Found
    values: tuple[float, ...]


def features_of(
    candidates: Sequence[Found],
    histories: Mapping[str, History],
    words: Sequence[float] = (),
) -> Features | None:
    """Return the numbers of the best answer among the nearest; None when none is near enough.

    `candidates` come best first, several of one entry where it has aliases. `words` are the lexical features of the
    question and `best.entry.asked` (see `best_of`); their number must not change within a pool.
    """
    if not candidates or candidates[0].similarity < FLOOR:
        return None
    near = candidates[:NEAREST]
    best = near[0]
    answer = best.entry.id
    own = [each.similarity for each in near if each.entry.id == answer]
    other = max((each.similarity for each in near if each.entry.id != answer), default=0.5)
    past = histories.get(answer, History())
    values = (
        best.similarity,
        best.similarity - max(other, 0.5),
        sum(own) / max(sum(each.similarity for each in near), 1e-9),
        own[1] if len(own) > 1 else 0.5,
        sum(own) / len(own),
        log(1.0 + len(own)),
        log((past.right + 1.0) / (past.wrong + 1.0)),
        log(1.0 + past.right + past.wrong),
        *words,
    )
    return Features(answer, best, values)
