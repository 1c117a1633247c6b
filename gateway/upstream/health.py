"""What this process knows about targets and keys: load, latency, rest. Hints only: safe when wrong.

Kept by identity, so a reload that does not touch a target keeps what was learned.
"""

import math

_DECAY_S = 10.0
_FIRST_GUESS_S = 0.0


class TargetHealth:
    """Requests in flight and the peak-EWMA of the time to the answer's head of one target."""

    __slots__ = ("_latency_s", "_stamp", "in_flight", "turn")

    def __init__(self) -> None:
        self.in_flight = 0
        self.turn = 0
        self._latency_s = _FIRST_GUESS_S
        self._stamp = 0.0

    def observe(self, latency_s: float, now: float) -> None:
        """Take one measurement: a peak counts at once, better times win slowly."""
        if latency_s >= self._latency_s:
            self._latency_s = latency_s
        else:
            weight = math.exp(-(now - self._stamp) / _DECAY_S)
            self._latency_s = self._latency_s * weight + latency_s * (1.0 - weight)
        self._stamp = now

    def cost(self) -> float:
        """Return the expected wait of one more request; compare only within one model."""
        return self._latency_s * (self.in_flight + 1)


class KeyHealth:
    """Until when one credential must not be used."""

    __slots__ = ("rest_until",)

    def __init__(self) -> None:
        self.rest_until = 0.0

    def rest(self, until: float) -> None:
        """Leave this key alone until then; a shorter rest never shortens a longer one."""
        self.rest_until = max(self.rest_until, until)


class HealthBook:
    """All health records of this process, by identity."""

    def __init__(self) -> None:
        self._targets: dict[tuple[str, str], TargetHealth] = {}
        self._keys: dict[tuple[str, bytes], KeyHealth] = {}

    def target(self, provider: str, model: str) -> TargetHealth:
        """Return the record of a provider's model."""
        return self._targets.setdefault((provider, model), TargetHealth())

    def key(self, provider: str, fingerprint: bytes) -> KeyHealth:
        """Return the record of a provider's credential, named by a digest of it."""
        return self._keys.setdefault((provider, fingerprint), KeyHealth())
