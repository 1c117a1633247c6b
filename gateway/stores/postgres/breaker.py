"""Keeps callers from waiting for a database that is known to be gone."""

from gateway.core import clock
from gateway.core.errors import StoreError

REST_S = 1.0
"""How long nobody tries; short, so that a revoked key counts within seconds once the database is back."""


class Breaker:
    """Lets everybody through, or after a failure one caller per `rest_s`."""

    def __init__(self, rest_s: float = REST_S) -> None:
        self._rest_s = rest_s
        self._since: float | None = None
        self._why = ""

    def check(self) -> None:
        """Raise StoreError at once while the last failure is fresh."""
        if self._since is None:
            return
        now = clock.monotonic()
        if now - self._since < self._rest_s:
            raise StoreError("state_unavailable", detail=self._why)
        self._since = now

    def failed(self, error: StoreError) -> None:
        """Note that the database was not reached, and why."""
        self._since = clock.monotonic()
        self._why = error.detail

    def worked(self) -> None:
        """Note that it answered."""
        self._since = None
