"""Which score is high enough: the smallest cut above which few enough answers were wrong, with a bound on it."""

from typing import NamedTuple

import numpy as np

from gateway.middleware.semantic_cache.online.bound import is_below, upper
from gateway.middleware.semantic_cache.online.logistic import Fitted, Numbers, out_of_fold
from gateway.middleware.semantic_cache.online.table import Rows

CONFIDENCE = 0.9
SLACK = 1.5
"""The bound at `CONFIDENCE` may be this much above the share that is allowed."""
_FOLDS = 5
_CUTS = 200
_LUCK = 2.0
"""Wrong labels that are counted without having been seen: the best of many cuts owes some of it to luck."""
_ALIKE = 64


class Learned(NamedTuple):
    """A model and its cut; `cut` is infinite where no score is high enough. Shares are of what clears the cut."""

    model: Fitted
    cut: float
    share: float
    bound: float


def learn(rows: Rows, alpha: float, fresh: int | None = None) -> Learned:
    """Fit a model and certify a cut, on the newest `fresh` labels if that is given; milliseconds to a second."""
    tempered = np.sqrt(rows.weights)
    model, scores = out_of_fold(rows.features, rows.right, tempered, _FOLDS)
    start = 0 if fresh is None else max(rows.size - fresh, 0)
    cut, share, bound = certified(scores[start:], rows.right[start:], rows.weights[start:], alpha)
    return Learned(model, cut, share, bound)


def certified(
    scores: Numbers, right: Numbers, weights: Numbers, alpha: float
) -> tuple[float, float, float]:
    """Return the smallest cut that holds, with the wrong share above it and its bound."""
    order = np.argsort(-scores, kind="stable")
    weight = _shared(weights[order])
    total = np.cumsum(weight)
    share = np.cumsum(weight * (1.0 - right[order])) / total
    # What a weighted sample tells is as much as that many labels of one weight would (Kish).
    told = total**2 / np.cumsum(weight**2)
    fair = share + _LUCK / told <= alpha
    ranked = scores[order]
    for at in range(len(ranked) - 1, 0, -max(len(ranked) // _CUTS, 1)):
        if not fair[at]:
            continue
        wrong, seen = float(share[at] * told[at]) + _LUCK, float(told[at])
        if is_below(wrong, seen, SLACK * alpha, CONFIDENCE):
            return float(ranked[at]), float(share[at]), upper(wrong, seen, CONFIDENCE)
    return float("inf"), 1.0, 1.0


def _shared(weights: Numbers) -> Numbers:
    """Let labels of like scores share their weights: an audit tells no more of them than a label of a miss does.

    Sums stay what they were; a sample of even weights tells more than one of which a few count for all.
    """
    groups = np.arange(len(weights)) // _ALIKE
    return (np.bincount(groups, weights) / np.bincount(groups))[groups]
