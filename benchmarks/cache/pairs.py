"""Pairs of questions: good ones and traps served, by each way of deciding on the same similarities (C-1 to C-3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.cache.data import Pair, pairs
from benchmarks.cache.embedders import Missing, embedded
from gateway.middleware.semantic_cache.words import verifier
from gateway.middleware.semantic_cache.words.guards import veto
from gateway.middleware.semantic_cache.words.signature import Signature, signature
from gateway.middleware.semantic_cache.words.tier import tier_key

THRESHOLDS: Final = (0.8, 0.9, 0.95)
ENGLISH: Final = "English together"
QUESTIONS: Final = ("fow", "hwu_slots")


class Seen(NamedTuple):
    """A pair as the cache sees it: two signatures and the similarity, -1 without an embedder.

    `is_same`: the canonical tier serves it, whatever the similarity.
    """

    a: Signature
    b: Signature
    cosine: float
    is_same: bool = False


class Count(NamedTuple):
    """How many good pairs and traps there are, and how many of each are served."""

    good: int
    served: int
    traps: int
    wrong: int


Rule = Callable[[Seen], bool]


def _at(threshold: float) -> Rule:
    return lambda seen: seen.cosine >= threshold


def _guarded(threshold: float) -> Rule:
    return lambda seen: seen.cosine >= threshold and not veto(seen.a, seen.b)


def _canonical(seen: Seen) -> bool:
    return seen.is_same


def _learned(seen: Seen) -> bool:
    return verifier.serves(seen.a, seen.b, seen.cosine)


def _without(seen: Seen) -> bool:
    return verifier.serves(seen.a, seen.b, verifier.NO_COSINE)


def rules(*, vectors: bool) -> dict[str, Rule]:
    """Return the ways of deciding, with and without an embedder."""
    plain = {f"threshold {threshold}": _at(threshold) for threshold in THRESHOLDS}
    guarded = {f"guards + {threshold}": _guarded(threshold) for threshold in THRESHOLDS}
    words = {"canonical form alone": _canonical, "guards + verifier, no embedder": _without}
    if not vectors:
        return words
    return {**plain, **guarded, **words, "guards + verifier": _learned}


def read(folder: Path) -> tuple[dict[str, list[tuple[Pair, Seen]]], str]:
    """Return the pairs as the cache sees them, and why there are no similarities ("" where there are)."""
    sets = pairs(folder)
    texts = sorted({text for rows in sets.values() for row in rows for text in (row.a, row.b)})
    signed = {text: signature(text) for text in texts}
    try:
        vectors = embedded(texts)
        missing = ""
    except Missing as error:
        vectors, missing = None, str(error)
    place = {text: at for at, text in enumerate(texts)}

    def seen(row: Pair) -> Seen:
        cosine = verifier.NO_COSINE
        if vectors is not None:
            cosine = float(vectors[place[row.a]] @ vectors[place[row.b]])
        return Seen(signed[row.a], signed[row.b], cosine, _is_same(row.a, row.b))

    return {name: [(row, seen(row)) for row in rows] for name, rows in sets.items()}, missing


def _is_same(one: str, other: str) -> bool:
    key = tier_key(one)
    return bool(key) and key == tier_key(other)


def count(rows: Sequence[tuple[Pair, Seen]], rule: Rule) -> Count:
    """Count what a rule serves."""
    good = [seen for row, seen in rows if row.same]
    traps = [seen for row, seen in rows if not row.same]
    return Count(len(good), sum(map(rule, good)), len(traps), sum(map(rule, traps)))


def _cell(found: Count) -> str:
    share = 100 * found.served / found.good if found.good else 0.0
    wrong = 100 * found.wrong / found.traps if found.traps else 0.0
    return f"{share:5.1f} % {found.wrong:5d} {wrong:5.1f} %"


def report(folder: Path, say: Callable[[str], None] = print) -> dict[str, dict[str, Count]]:
    """Print one table for each set and for those in English together; return the counts."""
    sets, missing = read(folder)
    if missing:
        say(f"Without similarities: {missing}. Figures of the words alone follow.")
    english = [pair for rows in sets.values() for pair in rows if pair[0].language == "en"]
    asked = [pair for name in QUESTIONS for pair in sets.get(name, ())]
    every = [pair for rows in sets.values() for pair in rows]
    tables = {**sets, "fow and hwu_slots": asked, ENGLISH: english, "all languages": every}
    counts: dict[str, dict[str, Count]] = {}
    for name, rows in tables.items():
        counts[name] = {}
        if not rows:
            continue
        say(f"\n{name}")
        for rule_name, rule in rules(vectors=not missing).items():
            found = counts[name][rule_name] = count(rows, rule)
            if len(counts[name]) == 1:
                say(
                    f"  {f'of {found.good} good pairs and {found.traps} traps':32} served  wrong  of traps"
                )
            say(f"  {rule_name:32}{_cell(found)}")
    _goals(counts, say, vectors=not missing)
    return counts


def _goals(
    counts: dict[str, dict[str, Count]], say: Callable[[str], None], *, vectors: bool
) -> None:
    learned = "guards + verifier" if vectors else "guards + verifier, no embedder"
    say("\nGoals")
    rows = (
        (
            "C-1 English, guards + verifier: >= 55 % good, <= 0.11 % of traps",
            ENGLISH,
            learned,
            0.55,
            2 / 1880,
        ),
        (
            "C-2 questions, guards + verifier: >= 70 % good, no trap",
            "fow and hwu_slots",
            learned,
            0.70,
            0.0,
        ),
        (
            "C-3 canonical form alone, English: >= 22 % good, no trap",
            ENGLISH,
            "canonical form alone",
            0.22,
            0.0,
        ),
    )
    for text, table, rule, share, wrong in rows:
        found = counts.get(table, {}).get(rule)
        if found is None or not found.good or not found.traps:
            continue
        met = found.served >= share * found.good and found.wrong <= wrong * found.traps
        share_of_good = f"{100 * found.served / found.good:.1f} %, {found.wrong} of {found.traps}"
        say(f"  {'met   ' if met else 'MISSED'}  {text}: {share_of_good}")
