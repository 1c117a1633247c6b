"""Vectors of one partition in memory: a matrix that is searched whole, with an index above it once it is large."""

from importlib.util import find_spec
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

LARGE: Final = 5_000
"""Above so many vectors an index pays, where the extra that brings it is installed."""
_FIRST: Final = 16
_GONE: Final = -2.0  # below every cosine
_WIDER: Final = 32
_EFFORT: Final = 64
Array = NDArray[np.float32]


class Vectors:
    """Vectors of one length by name, float32 of unit length. `large`: from when on an index is used."""

    def __init__(self, dimension: int, large: int = LARGE) -> None:
        self._large = large if find_spec("usearch") is not None else 0
        self._rows: Array = np.zeros((_FIRST, dimension), np.float32)
        self._names: list[str] = []
        self._gone = np.zeros(_FIRST, np.bool_)
        self._places: dict[str, int] = {}
        self._free: list[int] = []
        self._index: Any = None
        self._unindexed: list[int] = []

    def __len__(self) -> int:
        return len(self._places)

    @property
    def is_indexed(self) -> bool:
        """Whether an index is used."""
        return self._index is not None and not self._unindexed

    def put(self, name: str, vector: bytes) -> None:
        """Keep a vector under a name, in the place of an older one."""
        self.drop(name)
        place = self._free.pop() if self._free else len(self._names)
        if place == len(self._names):
            self._names.append(name)
            self._grow()
        self._names[place] = name
        self._gone[place] = False
        self._rows[place] = np.frombuffer(vector, np.float32)
        self._places[name] = place
        if self._index is not None:
            self._index.add(place, self._rows[place])
            self._index_some()
        elif self._large and len(self._places) > self._large // 2:
            self._begin()

    def drop(self, name: str) -> None:
        """Forget a vector."""
        place = self._places.pop(name, None)
        if place is not None:
            self._gone[place] = True
            self._free.append(place)
            if self._index is not None and place in self._index:
                self._index.remove(place)

    def nearest(self, vector: bytes, count: int) -> list[tuple[str, float]]:
        """Return the nearest names with their cosine similarity, the best first."""
        asked = np.frombuffer(vector, np.float32)
        size = len(self._names)
        if self.is_indexed:
            found = self._index.search(asked, min(len(self._places), count + _WIDER))
            places = np.asarray(found.keys, np.int64)
            places = places[~self._gone[places]]
            scores = _products(self._rows[places], asked)
        else:
            scores = _products(self._rows[:size], asked)
            scores[self._gone[:size]] = _GONE
            places = np.arange(size)
            if size > count:
                places = np.argpartition(scores, size - count)[size - count :]
            scores = scores[places]
        order = np.argsort(-scores, kind="stable")[:count]
        best = zip(places[order].tolist(), scores[order].tolist(), strict=True)
        # A vector that is no number is near to nothing.
        return [(self._names[place], min(score, 1.0)) for place, score in best if score > _GONE]

    def _grow(self) -> None:
        if len(self._names) > len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
            self._gone = np.concatenate([self._gone, np.zeros_like(self._gone)])

    def _begin(self) -> None:
        from usearch.index import Index

        self._index = cast("Any", Index)(
            ndim=self._rows.shape[1], metric="ip", dtype="f16", expansion_add=_EFFORT
        )
        self._unindexed = list(self._places.values())

    def _index_some(self) -> None:
        """Index a few of the vectors that were there before: all at once would keep callers waiting for seconds."""
        for place in self._unindexed[-2:]:
            if place not in self._index and not self._gone[place]:
                self._index.add(place, self._rows[place])
        del self._unindexed[-2:]


def _products(rows: Array, asked: Array) -> Array:
    # Not `@`: its threads cost far more than they save when the machine has other work.
    return np.einsum("ij,j->i", rows, asked)
