"""Health by name where a target stands for many models: callers choose the names, so they are bounded."""

from collections import OrderedDict
from collections.abc import Callable
from threading import RLock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.upstream.health import TargetHealth

MOST_NAMES: Final = 1024
"""Names kept for one provider; the least recently used goes first, none with a call under way."""
_MOST_CHARACTERS = 256


def _unknown(model: str) -> "TargetHealth | None":
    del model


class Names:
    """The records of one provider's names. `configured` finds the record of a model that has one anyway.

    The lock is that of the book: a record may be collected, and told of, while another is made.
    """

    __slots__ = ("__weakref__", "_configured", "_lock", "_records")

    def __init__(
        self,
        configured: "Callable[[str], TargetHealth | None]" = _unknown,
        lock: "RLock | None" = None,
    ) -> None:
        self._configured = configured
        self._lock = lock or RLock()
        self._records: OrderedDict[str, TargetHealth] = OrderedDict()

    def of(self, whole: "TargetHealth", name: str) -> "TargetHealth":
        """Return the record of a name at a target with a star; the target's own where no room is left for it."""
        found = self._configured(name)
        if found is not None:
            return found
        with self._lock:
            found = self._records.get(name)
            if found is not None:
                self._records.move_to_end(name)
                return found
            if len(name) > _MOST_CHARACTERS or not self._has_room():
                return whole
            found = self._records[name] = whole.part(name)
        return found

    def records(self) -> "list[TargetHealth]":
        """Return what is kept, the least recently used first; for whoever holds the lock."""
        return list(self._records.values())

    def _has_room(self) -> bool:
        """Make room for one more, if need be; False when every name is in use."""
        if len(self._records) < MOST_NAMES:
            return True
        for _ in range(len(self._records)):
            name, record = next(iter(self._records.items()))
            if not (record.in_flight or record.places.waiting):
                del self._records[name]
                record.leave()
                return True
            self._records.move_to_end(name)
        return False
