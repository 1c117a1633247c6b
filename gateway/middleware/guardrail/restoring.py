"""Puts what marks stand for back into answers, where the operator wants that (`restore`)."""

import re
from collections.abc import Sequence

from gateway.middleware.guardrail.check import About, Armed, Finding
from gateway.middleware.guardrail.checks.local import LocalCheck
from gateway.middleware.guardrail.verdict import Masks


class Restore(LocalCheck):
    """Finds the marks of one run in its answers."""

    def __init__(self, masks: Masks) -> None:
        self._values = masks.values
        longest_first = sorted(masks.values, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)))
        self.reach = len(longest_first[0])

    def look(self, text: str, about: About) -> Sequence[Finding]:
        """Find every mark; what takes its place is what it stands for."""
        if "[" not in text:
            return ()
        return [
            Finding("restore", found.start(), found.end(), self._values[found[0]])
            for found in self._pattern.finditer(text)
        ]

    def open_from(self, text: str) -> int:
        """Return where a mark has begun that is not complete."""
        at = text.rfind("[", max(0, len(text) - self.reach))
        if at < 0:
            return len(text)
        begun = text[at:]
        is_open = any(mark.startswith(begun) and mark != begun for mark in self._values)
        return at if is_open else len(text)


def restorer(masks: Masks | None) -> tuple[Armed, ...]:
    """Return what puts the values of a run back; nothing where it has none."""
    if masks is None or not masks.values:
        return ()
    return (Armed(Restore(masks), "restore", "redact"),)
