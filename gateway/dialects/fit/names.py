"""Names of tools as a target takes them, and back (B116)."""

from collections.abc import Iterable

from gateway.dialects.grammar import NameRules


class NameMap:
    """The names of one request: short ones for the target, the caller's own for answers."""

    __slots__ = ()

    def __init__(self, names: Iterable[str], rules: NameRules) -> None:
        pass

    def short(self, name: str) -> str:
        """Return the name as the target takes it."""
        return name

    def original(self, name: str) -> str:
        """Return the caller's own name; a name that the target made up stays."""
        return name
