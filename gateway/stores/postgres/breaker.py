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
        self.failures = 0

    def check(self) -> None:
        """Raise StoreError at once while the last failure is fresh."""
        if self._since is None:
            return
        now = clock.monotonic()
        if now - self._since < self._rest_s:
            raise self._refusal()
        self._since = now

    def check_since(self, failures: int) -> None:
        """Raise StoreError when there was a failure since there were so many: whoever waited need not try too."""
        if self.failures != failures:
            raise self._refusal()

    def failed(self, error: StoreError) -> None:
        """Note that the database was not reached, and why."""
        self._since = clock.monotonic()
        self._why = error.detail
        self.failures += 1

    def worked(self) -> None:
        """Note that it answered."""
        self._since = None

    def _refusal(self) -> StoreError:
        return StoreError("state_unavailable", detail=self._why)
