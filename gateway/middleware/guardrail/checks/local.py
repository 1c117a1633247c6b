"""What checks share that need nothing but the text."""

from collections.abc import Sequence

from gateway.middleware.guardrail.check import About, CheckFailed, Finding


class LocalCheck:
    """The base of checks that look at a text by themselves."""

    is_local = True

    def look(self, text: str, about: About) -> Sequence[Finding]:
        """Find in one text."""
        raise NotImplementedError

    async def ask(self, texts: Sequence[str], about: About) -> Sequence[Sequence[Finding]]:
        """Nobody is asked."""
        raise CheckFailed

    def open_from(self, text: str) -> int:
        """Return from which character on a growing text may still become a match."""
        return 0
