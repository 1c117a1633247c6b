"""What checks share: those that need nothing but the text, and those that ask somebody."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from gateway.middleware.guardrail.check import About, CheckFailed, Finding


class LocalCheck(ABC):
    """The base of checks that look at a text by themselves."""

    is_local = True
    reach = 0
    roles: frozenset[str] | None = None
    triggers: Sequence[str] | None = None
    readings: Sequence[Callable[[str], str]] = ()

    @abstractmethod
    def look(self, text: str, about: About) -> Sequence[Finding]:
        """Find in one text."""

    async def ask(self, texts: Sequence[str], about: About) -> Sequence[Sequence[Finding]]:
        """Nobody is asked."""
        raise CheckFailed

    def open_from(self, text: str) -> int:
        """Return from which character on a growing text may still become a match."""
        return 0


class AskingCheck(ABC):
    """The base of checks that ask somebody."""

    is_local = False
    reach = 0
    roles: frozenset[str] | None = None
    triggers: Sequence[str] | None = None
    readings: Sequence[Callable[[str], str]] = ()

    def look(self, text: str, about: About) -> Sequence[Finding]:
        """Find nothing: it cannot be told by looking."""
        return ()

    @abstractmethod
    async def ask(self, texts: Sequence[str], about: About) -> Sequence[Sequence[Finding]]:
        """Ask about several texts."""

    def open_from(self, text: str) -> int:
        """Nothing can be told before somebody is asked."""
        return len(text)
