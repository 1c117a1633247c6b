"""What every back end of the counters keeps to: how long things are remembered, how large numbers may be."""

from collections.abc import Iterable
from typing import Final

KEPT_OVER_MS: Final = 86_400_000
"""How long a counter outlives its window: late settlements still find it."""
KEPT_IDLE_MS: Final = 40 * 86_400_000
"""How long what has no end is kept after its last use; a lifted counter then comes back from the ledger."""
KEPT_EMPTY_MS: Final = 3_600_000
"""The same for a counter without end that counts nothing at present."""
KEPT_SETTLED_MS: Final = 3_600_000
"""How long a settled id is remembered, so that a repeated settlement changes nothing."""
MAX_AMOUNT: Final = 2**53 - 1
"""The largest number that every back end computes exactly."""


def check_amounts(amounts: Iterable[int]) -> None:
    """Raise ValueError for an amount that is negative or too large to be exact."""
    for amount in amounts:
        if amount < 0 or amount > MAX_AMOUNT:
            raise ValueError(f"an amount must be between 0 and {MAX_AMOUNT}")
