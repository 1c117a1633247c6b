"""How long answers usually take to begin, for each model of one process. Hints only: safe when wrong."""

from collections import deque
from math import ceil

_KEPT = 200
_ENOUGH = 20
_RECOUNT_EVERY = 16
_SHARE = 0.95


class Latency:
    """The last times of one model, in seconds."""

    __slots__ = ("_fresh", "_p95_s", "_times_s")

    def __init__(self) -> None:
        self._times_s: deque[float] = deque(maxlen=_KEPT)
        self._fresh = 0
        self._p95_s: float | None = None

    def observe(self, time_s: float) -> None:
        """Take one measurement."""
        self._times_s.append(time_s)
        self._fresh += 1

    def p95_s(self) -> float | None:
        """Return the time that 95 of 100 calls stay below; None before there are enough to tell."""
        if len(self._times_s) < _ENOUGH:
            return None
        if self._p95_s is None or self._fresh >= _RECOUNT_EVERY:
            ordered = sorted(self._times_s)
            self._p95_s = ordered[ceil(_SHARE * len(ordered)) - 1]
            self._fresh = 0
        return self._p95_s


class Latencies:
    """The times of one process; streams and whole answers of a model are told apart."""

    __slots__ = ("_times",)

    def __init__(self) -> None:
        self._times: dict[tuple[str, bool], Latency] = {}

    def of(self, model: str, *, stream: bool) -> Latency:
        """Return the times of a model."""
        found = self._times.get((model, stream))
        if found is None:
            found = self._times[model, stream] = Latency()
        return found
