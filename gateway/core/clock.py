"""The only reader of clocks: everything else asks here."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

monotonic = time.monotonic
"""Return seconds on the clock that event loops use; never goes back. Not wrapped: the hot path asks often."""

wall = time.time
"""Return seconds since the epoch, UTC."""


now: Callable[[], datetime] = partial(datetime.now, UTC)
"""Return the current date and time in UTC."""
