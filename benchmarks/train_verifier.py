"""Trains the verifier of the semantic cache: `python -m benchmarks.train_verifier DATA` writes its data file.

Labels come from `DATA/pairs/*.jsonl` (English). The same data and packages make the same file. Needs scikit-learn
(a development dependency) and the embedder of the measurements.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import msgspec
import numpy as np
import numpy.typing as npt
from sklearn.ensemble import ExtraTreesClassifier

from benchmarks.cache.data import pairs
from benchmarks.cache.embedders import embedded
from gateway.middleware.semantic_cache.words import verifier
from gateway.middleware.semantic_cache.words.features import NAMES, features
from gateway.middleware.semantic_cache.words.signature import signature

Floats = npt.NDArray[np.float64]

SEED: Final = 20
TARGET: Final = Path(verifier.__file__).with_name(verifier.DATA)
FOLDS: Final = 5
TREES: Final = 80
LEAVES: Final = 300
ROUNDS: Final = 3
TRAPS: Final = 0.0015
"""The share of traps that the cut lets through in cross-validation, guards in front: the mean over the sets."""
CUTS: Final = np.arange(0.8, 0.99, 0.0025)
VETO, _KEY, COSINE = (NAMES.index(name) for name in ("veto", "key_same", "cosine"))


class Rows(NamedTuple):
    """Pairs as features, with the label, the set and the group of each."""

    table: Floats
    same: npt.NDArray[np.bool_]
    names: list[str]
    group: npt.NDArray[np.int64]


def _groups(texts: list[tuple[str, str]]) -> npt.NDArray[np.int64]:
    """Give texts that are joined by any chain of pairs the same number."""
    parent: dict[str, str] = {}

    def root(text: str) -> str:
        while parent.setdefault(text, text) != text:
            parent[text] = parent[parent[text]]
            text = parent[text]
        return text

    for one, other in texts:
        parent[root(one)] = root(other)
    number: dict[str, int] = {}
    return np.array([number.setdefault(root(one), len(number)) for one, _ in texts])


def read(folder: Path) -> Rows:
    """Read the English pairs of a folder."""
    sets = {
        name: [row for row in rows if row.language == "en"] for name, rows in pairs(folder).items()
    }
    flat = [(name, row) for name, rows in sets.items() for row in rows]
    texts = sorted({text for _, row in flat for text in (row.a, row.b)})
    signed = {text: signature(text) for text in texts}
    place = {text: at for at, text in enumerate(texts)}
    vectors = embedded(texts)
    table = [
        features(signed[row.a], signed[row.b], float(vectors[place[row.a]] @ vectors[place[row.b]]))
        for _, row in flat
    ]
    return Rows(
        np.array(table),
        np.array([row.same for _, row in flat]),
        [name for name, _ in flat],
        _groups([(row.a, row.b) for _, row in flat]),
    )


def widened(
    table: Floats, same: npt.NDArray[np.bool_], rng: np.random.Generator
) -> tuple[Any, ...]:
    """Add each pair with the similarity of an embedder of another scale, and with none."""
    other, none = table.copy(), table.copy()
    near = 1.0 - table[:, COSINE]
    other[:, COSINE] = (
        1.0 - near * rng.uniform(0.15, 1.4, len(table)) + rng.normal(0, 0.02, len(table))
    )
    none[:, COSINE] = verifier.NO_COSINE
    weights = np.concatenate([np.full(len(table), weight) for weight in (1.0, 0.5, 0.5)])
    return np.concatenate([table, other, none]), np.concatenate([same] * 3), weights


def grown(table: Floats, same: npt.NDArray[np.bool_]) -> ExtraTreesClassifier:
    """Grow the trees."""
    rows, labels, weights = widened(table, same, np.random.default_rng(SEED))
    trees = ExtraTreesClassifier(
        TREES, max_leaf_nodes=LEAVES, min_samples_leaf=3, max_features=0.6, random_state=SEED
    )
    return trees.fit(rows, labels, sample_weight=weights)


def packed(trees: ExtraTreesClassifier, cut: float) -> verifier.Forest:
    """Write trees as one row of nodes, each before those of its lower side."""
    roots: list[int] = []
    feature: list[int] = []
    limit: list[float] = []
    other: list[int] = []

    def add(tree: Any, at: int) -> None:  # noqa: ANN401  a tree of scikit-learn has no type
        here = len(feature)
        leaf = int(tree.children_left[at]) < 0
        shares = tree.value[at][0]
        feature.append(-1 if leaf else int(tree.feature[at]))
        limit.append(
            round(1000 * float(shares[1] / shares.sum()))
            if leaf
            else float(f"{float(tree.threshold[at]):.4g}")
        )
        other.append(0)
        if not leaf:
            add(tree, int(tree.children_left[at]))
            other[here] = len(feature) - here
            add(tree, int(tree.children_right[at]))

    for grown_tree in trees.estimators_:
        roots.append(len(feature))
        add(grown_tree.tree_, 0)
    rounded = round(cut, 4)
    return verifier.Forest(NAMES, rounded, tuple(roots), tuple(feature), tuple(limit), tuple(other))


def guarded(table: Floats, scores: Floats) -> Floats:
    """Put the guards and the canonical form in front of the scores."""
    return np.where(table[:, _KEY] > 0, 1.0, np.where(table[:, VETO] > 0, 0.0, scores))


def chosen(rows: Rows, rounds: list[Floats], share: float) -> float:
    """Return the lowest cut that lets no more than a share of the traps through, the sets counting alike."""
    names = np.array(rows.names)
    sets = [~rows.same & (names == name) for name in dict.fromkeys(rows.names)]

    def passed(cut: float) -> float:
        return float(
            np.mean([[(scores[mine] >= cut).mean() for mine in sets] for scores in rounds])
        )

    return next((float(cut) for cut in CUTS if passed(cut) <= share), float(CUTS[-1]))


def line(rows: Rows, rounds: list[Floats], cut: float) -> str:
    """Say how many of the good pairs and of the traps are served, in all and by set, in the mean of the rounds."""
    served = np.mean([scores >= cut for scores in rounds], axis=0)
    parts = [f"{served[rows.same].mean():6.1%} / {served[~rows.same].sum():4.1f}"]
    names = np.array(rows.names)
    for name in dict.fromkeys(rows.names):
        mine = names == name
        good, traps = served[mine & rows.same].mean(), served[mine & ~rows.same].sum()
        parts.append(f"{name} {good:.1%} / {traps:.1f}")
    return "   ".join(parts)


def cross_validated(rows: Rows, seed: int) -> dict[str, Floats]:
    """Score each pair by trees that saw none of its texts: with the embedder, on another scale, and without."""
    tables = {name: rows.table.copy() for name in ("embedder", "other scale", "no embedder")}
    tables["other scale"][:, COSINE] = 1 - (1 - rows.table[:, COSINE]) * 0.4
    tables["no embedder"][:, COSINE] = verifier.NO_COSINE
    found = {name: np.zeros(len(rows.same)) for name in tables}
    folds = np.random.default_rng(seed).integers(0, FOLDS, rows.group.max() + 1)[rows.group]
    for fold in range(FOLDS):
        out = folds == fold
        trees = grown(rows.table[~out], rows.same[~out])
        for name, table in tables.items():
            found[name][out] = trees.predict_proba(table[out])[:, 1]
    return {name: guarded(rows.table, scores) for name, scores in found.items()}


def main(arguments: list[str]) -> int:
    """Train, say what cross-validation found, and write the data file."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.train_verifier", description=__doc__
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=TARGET)
    given = parser.parse_args(arguments)
    rows = read(given.data)
    print(
        f"{len(rows.same)} pairs, {rows.same.sum()} of them good; good served / traps served",
        flush=True,
    )
    rounds = [cross_validated(rows, SEED + number) for number in range(ROUNDS)]
    cut = chosen(rows, [scores["embedder"] for scores in rounds], TRAPS)
    for share in (TRAPS, 0.0005, 0.0025, 0.005, 0.01):
        at = chosen(rows, [scores["embedder"] for scores in rounds], share)
        for name in rounds[0]:
            print(
                f"cut {at:.4f}  {name:12} {line(rows, [scores[name] for scores in rounds], at)}",
                flush=True,
            )
    packing = packed(grown(rows.table, rows.same), cut)
    data = msgspec.json.encode(packing)
    given.out.write_bytes(data)
    print(f"{given.out.name}: {len(data):,} bytes, {len(packing.roots)} trees, cut {packing.cut}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
