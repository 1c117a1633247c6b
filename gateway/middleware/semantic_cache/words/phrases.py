"""Fixed phrases found at the start of a row of words without trying them all."""

from collections.abc import Iterable, Sequence


class Phrases:
    """A set of phrases by their first words; the longest that fits is found."""

    __slots__ = ("_rows",)

    def __init__(self, rows: Iterable[Sequence[str]]) -> None:
        self._rows: dict[str, list[list[str]]] = {}
        for row in sorted((list(row) for row in rows), key=len, reverse=True):
            self._rows.setdefault(row[0], []).append(row)

    @classmethod
    def of(cls, text: str) -> "Phrases":
        """Read phrases, one a line."""
        return cls(line.split() for line in text.strip().splitlines() if line.strip())

    def length(self, row: Sequence[str], at: int = 0) -> int:
        """Return how many words the longest phrase at a place has, or 0."""
        rows = self._rows.get(row[at]) if at < len(row) else None
        if rows is not None:
            for phrase in rows:
                if row[at : at + len(phrase)] == phrase:
                    return len(phrase)
        return 0

    def every(self, row: Sequence[str]) -> list[int]:
        """Return the lengths of all phrases that the row begins with, longest first."""
        rows = self._rows.get(row[0], ()) if row else ()
        return [len(phrase) for phrase in rows if row[: len(phrase)] == phrase]
