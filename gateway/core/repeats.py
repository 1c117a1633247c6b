"""When and how often a call may be made again: delays that grow, and a budget of repeats for each model (G-11)."""

import random
from collections import defaultdict
from typing import NamedTuple

_random = random.Random()  # noqa: S311  spreads load; nothing secret depends on it
_WINDOW_S = 10
_FLOOR = 10
_SPREAD = 0.1


class Backoff(NamedTuple):
    """How long to wait before a repeat; times in seconds. `jitter` is full, additive or none."""

    initial_s: float
    max_s: float
    factor: float
    jitter: str

    def delay_s(self, repeats: int, floor_s: float = 0.0) -> float:
        """Return the wait before the next repeat after so many; `floor_s` is what the provider asked for.

        The whole of it, jitter included, is capped (D-3).
        """
        grown = min(self.initial_s * self.factor**repeats, self.max_s)
        if self.jitter == "none":
            delay = max(grown, floor_s)
        elif self.jitter == "additive":
            delay = max(grown, floor_s) + 2.0**repeats * _random.random()
        else:
            # Everybody was given the same floor: they are spread out above it.
            delay = floor_s + _random.uniform(0.0, max(grown - floor_s, floor_s * _SPREAD))
        return min(delay, self.max_s)


class RepeatBudget:
    """Counts calls and repeats of the last ten seconds; repeats stay below a share of the calls.

    A model that is hardly used may still be repeated ten times in ten seconds.
    """

    __slots__ = ("_calls", "_calls_in", "_repeats", "_repeats_in", "_second")

    def __init__(self) -> None:
        self._calls = [0] * _WINDOW_S
        self._repeats = [0] * _WINDOW_S
        self._calls_in = 0
        self._repeats_in = 0
        self._second = 0

    def call(self, now: float) -> None:
        """Count a first try; `now` is of the monotonic clock."""
        second = int(now)
        if second != self._second:
            self._roll(second)
        self._calls[second % _WINDOW_S] += 1
        self._calls_in += 1

    def take(self, now: float, ratio: float) -> bool:
        """Take one repeat; False when repeats would be more than this share of the calls."""
        second = int(now)
        if second != self._second:
            self._roll(second)
        if self._repeats_in + 1 > max(_FLOOR, ratio * self._calls_in):
            return False
        self._repeats[second % _WINDOW_S] += 1
        self._repeats_in += 1
        return True

    def _roll(self, second: int) -> None:
        """Forget the seconds that have left the window."""
        first = max(self._second + 1, second - _WINDOW_S + 1)
        for past in range(first, second + 1):
            at = past % _WINDOW_S
            self._calls_in -= self._calls[at]
            self._repeats_in -= self._repeats[at]
            self._calls[at] = self._repeats[at] = 0
        self._second = second


class RepeatBudgets:
    """The budgets of one process, by what is repeated; names come from the configuration, so they are few."""

    __slots__ = ("_kinds",)

    def __init__(self) -> None:
        self._kinds: dict[str, defaultdict[str, RepeatBudget]] = {}

    def of(self, kind: str) -> defaultdict[str, RepeatBudget]:
        """Return the budgets of one kind of repeats by model, whichever tenant asks."""
        return self._kinds.setdefault(kind, defaultdict(RepeatBudget))
