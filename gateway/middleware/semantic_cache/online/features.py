"""What is known of the best candidate for a question, as numbers: never a text (semantic-cache.md 5.4)."""

from collections.abc import Callable, Mapping, Sequence
from math import log
from typing import Final, NamedTuple

from gateway.core.caching import Found
from gateway.middleware.semantic_cache.words.features import NAMES as ALL_WORDS
from gateway.middleware.semantic_cache.words.features import features
from gateway.middleware.semantic_cache.words.guards import veto
from gateway.middleware.semantic_cache.words.signature import Signature, signature

FLOOR: Final = 0.55
"""Nearest candidates below this similarity are neither served nor learned from."""
NEAREST: Final = 8
"""How many candidates are looked at."""
OWN: Final = (
    "similarity",
    "margin",
    "share",
    "second",
    "mean",
    "aliases",
    "history",
    "certainty",
    "similarity_squared",
    "margin_root",
    "product",
    "top",
)
WORDS: Final = (
    "content_only_short",
    "function_only_long",
    "meaning_only",
    "prepositions_only",
    "bigram_jaccard",
    "leftover_trigrams",
    "ends_same",
    "starts_same",
    "content_short",
    "length_long",
    "content_jaccard",
    "content_containment",
    "word_jaccard",
    "trigram_jaccard",
    "leftover_worst",
    "content_only_long",
    "common_run_share",
    "length_ratio",
    "asks_same",
    "negations",
    "opposites",
    "numbers_only",
    "names_only",
    "key_same",
)
"""The features of words that a pool of few labels can learn from."""
NAMES: Final = OWN + WORDS
_PLACES: Final = tuple(ALL_WORDS.index(name) for name in WORDS)
_LEAST: Final = 0.5
"""What stands for a candidate that is not there: less similar than any that counts."""


class History(NamedTuple):
    """How many labels called one answer right and wrong so far."""

    right: float = 0.0
    wrong: float = 0.0


class Seen(NamedTuple):
    """What a label needs of a candidate: the entry's id and numbers."""

    answer: str
    values: tuple[float, ...]
    veto: str = ""


class Features(NamedTuple):
    """The best answer (an entry's id), its candidate and what is known of it: `NAMES`.

    `veto` says why the guards let no candidate pass ("" where one may): it is neither to be served nor a label.
    """

    answer: str
    best: Found
    values: tuple[float, ...]
    veto: str = ""

    @property
    def seen(self) -> Seen:
        """The part that may be remembered: no text."""
        return Seen(self.answer, self.values, self.veto)


def features_of(
    candidates: Sequence[Found],
    asked: str,
    histories: Mapping[str, History],
    read: Callable[[str], Signature] = signature,
) -> Features | None:
    """Return the numbers of the best answer for a question; None when no candidate is near enough.

    `candidates` are those that the pool may serve at all, the best first; one entry comes several times where it
    has aliases, each with its own `asked`. The best is the first that the guards let pass.
    """
    near = [each for each in candidates[:NEAREST] if each.similarity >= FLOOR]
    if not near:
        return None
    question, reason = read(asked), ""
    for best in near:
        kept = read(best.entry.asked)
        refused = veto(kept, question)
        if not refused:
            values = _values(candidates[:NEAREST], best, histories)
            compared = features(kept, question, best.similarity)
            return Features(best.entry.id, best, (*values, *(compared[place] for place in _PLACES)))
        reason = reason or refused
    return Features(near[0].entry.id, near[0], (), reason)


def _values(
    near: Sequence[Found], best: Found, histories: Mapping[str, History]
) -> tuple[float, ...]:
    answer = best.entry.id
    own = [each.similarity for each in near if each.entry.id == answer]
    other = max((each.similarity for each in near if each.entry.id != answer), default=_LEAST)
    past = histories.get(answer, History())
    return (
        best.similarity,
        max(own) - max(other, _LEAST),
        sum(own) / sum(each.similarity for each in near),
        own[1] if len(own) > 1 else _LEAST,
        sum(own) / len(own),
        log(1.0 + len(own)),
        log((past.right + 1.0) / (past.wrong + 1.0)),
        log(1.0 + past.right + past.wrong),
        best.similarity * best.similarity,
        max(max(own) - max(other, _LEAST), 0.0) ** 0.5,
        best.similarity * (max(own) - max(other, _LEAST)),
        near[0].similarity,
    )
