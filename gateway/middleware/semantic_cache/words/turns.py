"""Questions that are the same from another side: passive and active, either way round, who thinks so."""

from typing import Final

from gateway.middleware.semantic_cache.words.lexicon import (
    ARTICLES,
    AUXILIARIES,
    PREPOSITIONS,
    WH,
    words,
)
from gateway.middleware.semantic_cache.words.stems import stem

MARK: Final = "\x00"
"""Stands before a word that is a stem already."""

_BE: Final = {"is": "does", "are": "does", "was": "did", "were": "did"}
_LINKS: Final = words("and or")
_BREAKS: Final = (
    WH
    | AUXILIARIES
    | PREPOSITIONS
    | _LINKS
    | words("not never no only if than more less when again still already")
)
_NO_DOER: Final = words(
    "today tomorrow monday tuesday wednesday thursday friday saturday sunday noon hand mail post email"
)
_ALIKE: Final = (
    ("married", "to"),
    ("related", "to"),
    ("engaged", "to"),
    ("close", "to"),
    ("friends", "with"),
    ("dating",),
    ("similar", "to"),
    ("identical", "to"),
    ("equivalent", "to"),
    ("equal", "to"),
    ("connected", "to"),
    ("linked", "to"),
    ("adjacent", "to"),
    ("different", "from"),
    ("an", "acquaintance", "of"),
    ("a", "neighbor", "of"),
    ("a", "colleague", "of"),
    ("compatible", "with"),
)
_NOUNS: Final = 4


def turned(row: list[str]) -> list[str]:
    """Write a question from its usual side."""
    row = _thinkers(row)
    if len(row) < 3 or "respectively" in row:
        return row
    if row[0] in _BE:
        return _active(row) or _either_way(row) or _listed(row)
    return _listed(row)


def _is_noun(row: list[str]) -> bool:
    return 0 < len(row) <= _NOUNS and not _BREAKS.intersection(row)


def _active(row: list[str]) -> list[str]:
    """Turn `was the book lost by Ann` into `did Ann lose the book`."""
    if row.count("by") != 1:
        return []
    at = row.index("by")
    what, doer = row[1 : at - 1], row[at + 1 :]
    if not _is_noun(what) or not _is_noun(doer):
        return []
    base, ending = stem(row[at - 1])
    ends = stem(doer[-1])[1]
    unmoved = base == row[at - 1] and base in {
        "hit",
        "put",
        "cut",
        "hurt",
        "read",
        "set",
        "let",
        "cost",
    }
    if (
        (ending != "ed" and not unmoved)
        or ends == "ing"
        or not doer[-1].isalpha()
        or _NO_DOER & set(doer)
    ):
        return []
    return [_BE[row[0]], *doer, MARK + base, *what]


def _either_way(row: list[str]) -> list[str]:
    """Sort the two sides of a relation that holds both ways."""
    for relation in _ALIKE:
        for at in range(2, len(row) - len(relation)):
            if tuple(row[at : at + len(relation)]) != relation:
                continue
            left, right = row[1:at], row[at + len(relation) :]
            if _is_noun(left) and _is_noun(right):
                first, last = sorted((left, right))
                return [row[0], *first, *relation, *last]
    return []


def _listed(row: list[str]) -> list[str]:
    """Sort two things with articles that end a question: `an actor or a nurse`."""
    if len(row) > 5 and row[-3] in _LINKS and row[-5] in ARTICLES and row[-2] in ARTICLES:
        first, last = sorted((row[-5:-3], row[-2:]), key=lambda pair: pair[1])
        return [*row[:-5], *first, row[-3], *last]
    return row


def _thinkers(row: list[str]) -> list[str]:
    """Turn `who do critics think is X` into `who is X according to critics`."""
    if len(row) > 5 and row[0] in WH and row[1] in {"do", "does"} and "think" in row[3:6]:
        at = row.index("think")
        if at + 2 < len(row) and row[at + 1] in {"is", "are"}:
            return [row[0], *row[at + 1 :], "according", "to", *row[2:at]]
    return row
