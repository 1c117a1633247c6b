"""A logistic model of few numbers: fitted in milliseconds, the same for the same labels."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]

_STEPS = 25
_TINY = 1e-6
_CLOSE = 1e-3
_PIECE = 256
_RIDGE = 1.0
_RIDGE_OF_OFFSET = 0.01
"""Labels that are all right have no largest odds: without it a fit of fewer of them may go beyond that of all."""
_LONGEST = 30.0


class Fitted(NamedTuple):
    """The model: scores are the log odds of `right`."""

    centre: Numbers
    spread: Numbers
    slope: Numbers
    offset: float

    def scores(self, rows: Numbers) -> Numbers:
        """Return a score for each row."""
        return ((rows - self.centre) / self.spread) @ self.slope + self.offset


def fit(rows: Numbers, right: Numbers, weights: Numbers, ridge: float = _RIDGE) -> Fitted:
    """Fit by Newton's steps, with a ridge on the slopes; `right` is 0.0 or 1.0 for each row."""
    design, centre, spread = _design(rows)
    beta = _newton(design, right, weights, None, ridge)
    return Fitted(centre, spread, beta[:-1], float(beta[-1]))


def out_of_fold(
    rows: Numbers, right: Numbers, weights: Numbers, folds: int, ridge: float = _RIDGE
) -> tuple[Fitted, Numbers]:
    """Return the model of all rows, and for each row the score of a model that never saw it; folds go in turn."""
    design, centre, spread = _design(rows)
    beta = _newton(design, right, weights, None, ridge)
    scores = np.zeros(len(rows))
    turn = np.arange(len(rows)) % folds
    for fold in range(folds):
        out = turn == fold
        own = _newton(design, right, np.where(out, 0.0, weights), beta, ridge)
        scores[out] = _times(design[out], own)
    return Fitted(centre, spread, beta[:-1], float(beta[-1])), scores


def _design(rows: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    centre = rows.mean(axis=0)
    spread = rows.std(axis=0)
    spread[spread < _TINY] = 1.0
    return np.column_stack(((rows - centre) / spread, np.ones(len(rows)))), centre, spread


def _newton(
    design: Numbers, right: Numbers, weights: Numbers, start: Numbers | None, ridge: float
) -> Numbers:
    width = int(design.shape[1])
    penalty: Numbers = np.full(width, ridge)
    penalty[-1] = _RIDGE_OF_OFFSET
    beta: Numbers = np.zeros(width) if start is None else start
    for _ in range(_STEPS):
        odds = np.clip(_times(design, beta), -_LONGEST, _LONGEST)
        chance = 1.0 / (1.0 + np.exp(-odds))
        slope = _times(design.T, weights * (right - chance)) - penalty * beta
        curve = _gram(design, weights * np.maximum(chance * (1.0 - chance), _TINY))
        step = _solved(curve + np.diag(penalty), slope)
        beta = beta + step
        if float(np.abs(step).max()) < _CLOSE:
            break
    return beta


def _solved(curve: Numbers, slope: Numbers) -> Numbers:
    solution: npt.NDArray[np.floating] = np.linalg.solve(curve, slope)
    return solution.astype(np.float64)


def _times(rows: Numbers, vector: Numbers) -> Numbers:
    """Return the product, without a library that starts threads for it."""
    product: Numbers = np.einsum("ij,j->i", rows, vector)
    return product


def _gram(design: Numbers, weights: Numbers) -> Numbers:
    """Return the weighted products of all columns, in pieces so small that no library starts threads for them."""
    count, width = design.shape
    total = np.zeros((width, width))
    for start in range(0, count, _PIECE):
        some = design[start : start + _PIECE]
        total += (some.T * weights[start : start + _PIECE]) @ some
    return total
