"""The room for requests, and how much of it one tenant may take (G-19)."""

from dataclasses import dataclass, field
from typing import Final

_SHARE: Final = 8


@dataclass(slots=True)
class Room:
    """Counts the requests of each tenant, so that a loud one leaves room for the others.

    A tenant may hold eight times the places that are free: eight ninths of the room when it is alone, half of it
    beside another that wants as much. So a newcomer always finds some, and nobody has to know who wants what.
    """

    _held: dict[str, int] = field(default_factory=dict[str, int])

    def enter(self, tenant: str, *, free: int, is_shared: bool) -> bool:
        """Take a place of the `free` ones; False when this tenant has its share. A lone tenant may have all."""
        held = self._held.get(tenant, 0)
        if is_shared and held >= _SHARE * free:
            return False
        self._held[tenant] = held + 1
        return True

    def leave(self, tenant: str) -> None:
        """Give a place back."""
        left = self._held[tenant] - 1
        if left:
            self._held[tenant] = left
        else:
            del self._held[tenant]
