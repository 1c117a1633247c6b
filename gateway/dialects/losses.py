"""The one table of what a translation can lose, and the notes that one request takes of it.

What is lost is named to the caller in `x-gateway-warnings`; what must not be lost is refused with 400 (K34).
"""

from gateway.core.errors import InputError
from gateway.dialects.loss_table import LOSSES


class Notes:
    """What one translation has lost so far: short texts in order, each once."""

    __slots__ = ("warnings",)

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def lost(self, row: str, what: str = "") -> None:
        """Note a loss of the table; `what` names the field or part at fault, in the caller's own words."""
        text = LOSSES[row].words
        if what:
            text = f"{what}: {text}"
        if text not in self.warnings:
            self.warnings.append(text)


def refuse(row: str, what: str, *, param: str | None = None) -> InputError:
    """Return the error for what must not be lost: a 400 that names the field or part at fault."""
    return InputError("invalid_request", f"{what}: {LOSSES[row].words}", param=param)
