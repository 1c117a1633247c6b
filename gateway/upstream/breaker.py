"""When to leave a provider or a credential alone: closed, open for a growing time, then a few probes.

A state machine without clock and without tasks: every call is told the time, in seconds of the monotonic clock.
"""

import random
from collections.abc import Callable
from typing import Final, NamedTuple

CLOSED: Final = 0
HALF_OPEN: Final = 1
OPEN: Final = 2
NAMES: Final = ("closed", "half_open", "open")
_BUCKETS = 10
_ASK_AGAIN_S = 0.1
_LEAST_SHARE = 0.5
_random = random.Random()  # noqa: S311  spreads probes; nothing secret depends on it


class BreakerRules(NamedTuple):
    """When a breaker opens, and for how long. Seconds; `ratio` above 1: by failures in a row alone."""

    failures: float = 5
    ratio: float = 0.5
    min_calls: int = 20
    window_s: float = 30.0
    open_s: float = 5.0
    max_open_s: float = 60.0
    probes: int = 1


class Breaker:
    """The breaker of one thing that can fail.

    `epoch` names a stretch of one state: whoever starts a call keeps it and gives it back with the outcome, so that
    calls of an earlier stretch change nothing.
    """

    __slots__ = (
        "_asking",
        "_bad",
        "_closed_at",
        "_good",
        "_good_now",
        "_openings",
        "_probing",
        "_slot",
        "_slot_ends",
        "_streak_at",
        "_until",
        "epoch",
        "on_change",
        "rules",
        "state",
        "streak",
    )

    def __init__(self, rules: BreakerRules, on_change: Callable[[], None] | None = None) -> None:
        self.rules = rules
        self.on_change = on_change
        self.state = CLOSED
        self.epoch = 0
        self._good = [0] * _BUCKETS
        self._bad = [0] * _BUCKETS
        self._good_now = 0
        self._slot = 0
        self._slot_ends = 0.0
        self.streak = 0
        self._streak_at = 0.0
        self._openings = 0
        self._closed_at = 0.0
        self._until = 0.0
        self._probing = 0

    def succeed(self, epoch: int, now: float) -> bool:
        """Take a good outcome; True when it was a probe and closed the breaker."""
        if epoch != self.epoch:
            return False
        if self.state:
            self._close(now)
            return True
        self.streak = 0
        if now >= self._slot_ends:
            self._advance(now)
        self._good_now += 1
        return False

    def fail(self, epoch: int, now: float) -> bool:
        """Take an outcome that this breaker is to blame for; True when it opened the breaker."""
        if epoch != self.epoch:
            return False
        if self.state or self._is_enough(now):
            self._open(now)
            return True
        return False

    def undecided(self, epoch: int) -> bool:
        """Take an outcome that says nothing about this breaker; True when it was a probe."""
        if not self.is_probe(epoch):
            return False
        self._probing -= 1
        return True

    def is_probe(self, epoch: int) -> bool:
        """Tell whether a call that started in this epoch is a probe under way."""
        return self.state == HALF_OPEN and epoch == self.epoch

    def wait_s(self, now: float) -> float:
        """Return how long until a call may pass: 0 when one may try at once."""
        if self.state == CLOSED:
            return 0.0
        if self.state == OPEN or self._until > now:
            return max(0.0, self._until - now)
        return 0.0 if self._probing < self.rules.probes else self.rules.open_s * _LEAST_SHARE

    def reserve(self, now: float) -> bool:
        """Take the place of a probe, once the open time is over; `undecided` or an outcome gives it back."""
        if self._until > now:
            return False
        if self.state == OPEN:
            self._enter(HALF_OPEN)
            self._probing = 0
        if self._probing >= self.rules.probes:
            return False
        self._probing += 1
        return True

    def refuse(self, epoch: int, now: float) -> None:
        """Give back the place of a probe that others do not allow; nobody asks again for a moment."""
        if self.undecided(epoch):
            self._until = now + _ASK_AGAIN_S * _random.uniform(1.0, 2.0)

    def counts(self, now: float) -> tuple[int, int]:
        """Return calls and failures in the window."""
        slot = self._slot_of(now)
        fresh = [old % _BUCKETS for old in range(slot - _BUCKETS + 1, self._slot + 1)]
        bad = sum(self._bad[each] for each in fresh)
        good = sum(self._good[each] for each in fresh) + (self._good_now if fresh else 0)
        return good + bad, bad

    def _is_enough(self, now: float) -> bool:
        rules = self.rules
        self.streak = self.streak + 1 if now - self._streak_at <= rules.window_s else 1
        self._streak_at = now
        self._advance(now)
        self._bad[self._slot % _BUCKETS] += 1
        if self.streak >= rules.failures:
            return True
        bad = sum(self._bad)
        calls = sum(self._good) + self._good_now + bad
        return calls >= rules.min_calls and bad >= rules.ratio * calls

    def _slot_of(self, now: float) -> int:
        return int(now * _BUCKETS / self.rules.window_s)

    def _advance(self, now: float) -> None:
        """Go on to the bucket of this time; those in between are empty."""
        slot = self._slot_of(now)
        if slot <= self._slot:
            return
        self._good[self._slot % _BUCKETS] += self._good_now
        self._good_now = 0
        for old in range(max(self._slot + 1, slot - _BUCKETS + 1), slot + 1):
            self._good[old % _BUCKETS] = self._bad[old % _BUCKETS] = 0
        self._slot = slot
        self._slot_ends = (slot + 1) * self.rules.window_s / _BUCKETS

    def _open(self, now: float) -> None:
        rules = self.rules
        if self.state == CLOSED and now - self._closed_at > rules.window_s:
            self._openings = 0
        longest = min(rules.max_open_s, rules.open_s * 2.0 ** min(self._openings, 32))
        self._openings += 1
        self._until = now + longest * _random.uniform(_LEAST_SHARE, 1.0)
        self._enter(OPEN)

    def _close(self, now: float) -> None:
        self._closed_at = now
        self.streak = 0
        self._good = [0] * _BUCKETS
        self._bad = [0] * _BUCKETS
        self._good_now = 0
        self._enter(CLOSED)

    def _enter(self, state: int) -> None:
        self.state = state
        self.epoch += 1
        if self.on_change is not None:
            self.on_change()
