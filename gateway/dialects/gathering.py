"""What readers of streams share: what they tell of themselves, and events that they have not handed over yet."""

from gateway.core.answer import Event
from gateway.dialects.base import ProviderError, StreamRules


class StateOfReader:
    """The members that `gateway.dialects.sides.StreamReader` names."""

    __slots__ = ("_rules", "broken", "error", "frames", "real", "surplus")

    def __init__(self, rules: StreamRules) -> None:
        self.error: ProviderError | None = None
        self.broken: int = 0
        self.surplus: int = 0
        self.frames: int = 0
        self.real = False
        self._rules = rules


class Gathering(StateOfReader):
    """A reader that gathers its events in `_out`, one list for its whole life."""

    __slots__ = ("_out",)

    def __init__(self, rules: StreamRules) -> None:
        super().__init__(rules)
        self._out: list[Event] = []

    def _taken(self) -> list[Event]:
        """Return the events since the last call."""
        taken = self._out.copy()
        self._out.clear()
        return taken
