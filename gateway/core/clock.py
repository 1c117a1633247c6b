"""The only reader of clocks: everything else asks here."""

import time
from datetime import UTC, datetime


def monotonic() -> float:
    """Return seconds on the clock that event loops use; never goes back."""
    return time.monotonic()


def wall() -> float:
    """Return seconds since the epoch, UTC."""
    return time.time()


def now() -> datetime:
    """Return the current date and time in UTC."""
    return datetime.now(tz=UTC)
