"""What each cap of an admission counts of a run: worked out once, at load."""

from collections.abc import Sequence

from gateway.core.lease import MICRO, REQUESTS, RUNNING, TOKENS
from gateway.middleware.caps import Cap
from gateway.middleware.ticket import Need

_NEEDED = {
    (False, False, True): 0,
    (False, False, False): 0,
    (True, False, True): 1,
    (True, True, True): 2,
    (True, False, False): 3,
    (True, True, False): 4,
}
"""Where among one, the strict needs and the likely ones the amount of a cap stands: is it sized, money, strict."""
_USED = {REQUESTS: 0, RUNNING: 1, TOKENS: 2, MICRO: 3}
"""Where among requests, zero, tokens and money the use of a cap stands."""


class Shape:
    """The places of caps among what a run needs and uses. `units` has one letter for each cap."""

    __slots__ = ("_needed", "_rates", "_used", "units")

    def __init__(self, caps: Sequence[Cap]) -> None:
        self.units = "".join(cap.unit for cap in caps)
        self._needed = [_NEEDED[cap.is_sized, cap.unit == MICRO, cap.strict] for cap in caps]
        self._used = [_USED[cap.unit] for cap in caps]
        self._rates = [
            (at, cap.limit) for at, cap in enumerate(caps) if cap.is_rate and cap.is_sized
        ]

    def amounts(self, strict: Need, likely: Need) -> Sequence[int]:
        """Return what is to be held of each cap for these needs."""
        needs = (1, strict.tokens, strict.cost_micro, likely.tokens, likely.cost_micro)
        amounts = [needs[place] for place in self._needed]
        for place, most in self._rates:
            amounts[place] = min(amounts[place], most)
        return amounts

    def used(self, requests: int, charged: Need) -> tuple[int, ...]:
        """Return what each cap is settled with: a call that ended runs no more."""
        used = (requests, 0, *charged)
        return tuple([used[place] for place in self._used])
