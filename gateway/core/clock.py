"""The only reader of clocks: everything else asks here."""

import time
from datetime import UTC, datetime

monotonic = time.monotonic
"""Return seconds on the clock that event loops use; never goes back. Not wrapped: the hot path asks often."""

wall = time.time
"""Return seconds since the epoch, UTC."""


def now() -> datetime:
    """Return the current date and time in UTC."""
    return datetime.now(tz=UTC)
