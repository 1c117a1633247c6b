"""The one table of what a translation can lose, and the notes that one request takes of it.

What is lost is named to the caller in `x-gateway-warnings`; what must not be lost is refused with 400 (K34).
"""

from gateway.core.errors import InputError
from gateway.dialects.loss_table import LOSSES

_MOST_OF_A_ROW = 32
"""So many losses of one kind are named; the others are said to be there."""


class Notes:
    """What one translation has lost so far: short texts in order, each once; and where the caller put what."""

    __slots__ = ("_items", "_known", "_told", "warnings")

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self._known: set[str] = set()
        self._told: dict[str, int] = {}
        self._items: dict[int, tuple[object, str]] | None = None

    def lost(self, row: str, what: str = "") -> None:
        """Note a loss of the table; `what` names the field or part at fault, in the caller's own words."""
        words = LOSSES[row].words
        text = f"{what}: {words}" if what else words
        if text in self._known:
            return
        count = self._told[row] = self._told.get(row, 0) + 1
        if count > _MOST_OF_A_ROW:
            text = f"and others: {words}"
            if text in self._known:
                return
        self._known.add(text)
        self.warnings.append(text)

    def stands_in(self, part: object, item: str) -> None:
        """Remember the name of the item that a part was read from, where formats list items (Responses)."""
        if self._items is None:
            self._items = {}
        self._items[id(part)] = (part, item)

    def item_of(self, part: object) -> str:
        """Return the name of the item that this very part was read from, "" where none is known."""
        if self._items is None:
            return ""
        return self._items.get(id(part), (None, ""))[1]


def refuse(row: str, what: str, *, param: str | None = None) -> InputError:
    """Return the error for what must not be lost: a 400 that names the field or part at fault."""
    return InputError("invalid_request", f"{what}: {LOSSES[row].words}", param=param)
