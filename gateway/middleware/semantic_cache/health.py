"""A dependency that is down is left alone for a moment, so that it costs requests nothing (K23)."""

from gateway.core import clock

_FAILURES = 5
_REST_S = 2.0


class Breaker:
    """Counts failures in a row; after five the dependency rests for two seconds, then one call tries it."""

    __slots__ = ("_failures", "_until")

    def __init__(self) -> None:
        self._failures = 0
        self._until = 0.0

    @property
    def is_open(self) -> bool:
        """Whether the dependency is to be left alone; who is told False once the rest is over tries it alone."""
        if self._failures < _FAILURES:
            return False
        now = clock.monotonic()
        if now < self._until:
            return True
        self._until = now + _REST_S
        return False

    def failed(self) -> None:
        """Note a failure."""
        self._failures += 1
        if self._failures >= _FAILURES:
            self._until = clock.monotonic() + _REST_S

    def worked(self) -> None:
        """Note a success."""
        self._failures = 0
