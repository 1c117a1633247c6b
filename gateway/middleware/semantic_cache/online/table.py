"""The labels of one pool: rows of numbers, the newest ones, in the order in which they came."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gateway.middleware.semantic_cache.online.logistic import Numbers

KEPT = 6000
"""Labels that a pool keeps."""
_FIRST = 512


class Rows(NamedTuple):
    """A copy of the labels: features, 1.0 for right, weights."""

    features: Numbers
    right: Numbers
    weights: Numbers

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.right)


class Table:
    """Keeps the newest labels; all rows are of one width, that of the first."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._rows = np.zeros((0, 0), np.float32)
        self._marks: deque[int] = deque(maxlen=kept)
        self._count = 0
        self.total = 0

    def __len__(self) -> int:
        return self._count

    @property
    def width(self) -> int:
        """How many features a row has; 0 before the first label."""
        return max(self._rows.shape[1] - 2, 0)

    def add(self, values: Sequence[float], weight: float, *, right: bool, mark: int) -> bool:
        """Keep a label; False when its width is another one. `mark` tells it from all others, of replicas too."""
        if self._count and len(values) != self.width:
            return False
        self._marks.append(mark)
        self._room(len(values) + 2)
        self._rows[self._count] = (*values, float(right), weight)
        self._count += 1
        self.total += 1
        return True

    def rows(self, newest: int | None = None) -> Rows:
        """Return a copy of all, or of the newest, the oldest first."""
        start = 0 if newest is None else max(self._count - newest, 0)
        block = self._rows[start : self._count].astype(np.float64)
        return Rows(block[:, :-2], block[:, -2], block[:, -1])

    @property
    def marks(self) -> Sequence[int]:
        """The marks of the labels, the oldest first; of some that are gone already too."""
        return self._marks

    def _room(self, width: int) -> None:
        if not self._count and self._rows.shape[1] != width:
            self._rows = np.zeros((_FIRST, width), np.float32)
        if self._count < len(self._rows):
            return
        if self._count >= self._kept:
            # A quarter at once, so that rows are moved rarely.
            drop = self._kept // 4
            self._rows[: self._count - drop] = self._rows[drop : self._count].copy()
            self._count -= drop
            return
        size = min(2 * len(self._rows), self._kept)
        larger = np.zeros((size, width), np.float32)
        larger[: self._count] = self._rows[: self._count]
        self._rows = larger
