"""What counters in memory hold: one by one, and those that are asked for together."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from gateway.core.counting import Hold, Note

_FULL: Final = 1 << 80
"""More than any sum."""


@dataclass(slots=True)
class Tally:
    """One counter: `used` is spent plus held. `lifted_ms`: up to which memory the ledger's sum is in it, or -1.

    One that was let go is full and holds less than nothing: whoever still knows it looks for another in its place.
    """

    used: int = 0
    held: int = 0
    lifted_ms: int = -1
    touched_ms: int = 0

    @property
    def spent(self) -> int:
        """What was really used."""
        return self.used - self.held

    @property
    def is_empty(self) -> bool:
        """Whether it counts nothing and knows nothing of the ledger."""
        return not self.used and self.lifted_ms < 0

    def let_go(self) -> None:
        """Take no more: another takes its place."""
        self.used, self.held = _FULL, -1


@dataclass(slots=True)
class Reservation:
    """What a run holds; `lease_ms`: until when, as the clock of leases counts."""

    holds: Sequence[Hold]
    amounts: Sequence[int]
    lease_ms: int
    note: Note


@dataclass(slots=True)
class Tenant:
    """The runs of a tenant. `since_ms`: when its memory began."""

    since_ms: int
    reservations: dict[str, Reservation] = field(default_factory=dict[str, Reservation])
    settled: set[str] = field(default_factory=set[str])


@dataclass(slots=True)
class Tallies:
    """What is known of holds that are asked for again and again: their counters, all different, lifted if need be.

    It counts from `start_ms` to `end_ms` while there is room below `limits`, and none of them was let go. `endless`
    are those whose last use is noted.
    """

    own: Tenant
    counters: tuple[Tally, ...]
    limits: tuple[int, ...]
    start_ms: int
    end_ms: int
    endless: tuple[Tally, ...]

    def take(self, amounts: Sequence[int], now_ms: int) -> tuple[int, ...] | None:
        """Hold amounts and return what is used of each; None, and nothing done, where one does not fit."""
        used: list[int] = []
        for counter, limit, amount in zip(self.counters, self.limits, amounts, strict=True):
            total = counter.used + amount
            if total > limit or amount < 0:
                return None
            used.append(total)
        for counter, amount, total in zip(self.counters, amounts, used, strict=True):
            counter.used = total
            counter.held += amount
        for counter in self.endless:
            counter.touched_ms = now_ms
        return tuple(used)

    def give(self, held: Sequence[int], actual: Sequence[int]) -> bool:
        """Count what was used in the place of what was held; False, and nothing done, where anything is wrong."""
        counters = self.counters
        for counter, amount in zip(counters, held, strict=True):
            if counter.held < amount:
                return False
        for counter, amount, spent in zip(counters, held, actual, strict=True):
            counter.held -= amount
            counter.used += spent - amount
        return True
