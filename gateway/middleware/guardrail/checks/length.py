"""A text that is longer than it may be."""

from collections.abc import Sequence

from pydantic import Field

from gateway.middleware.base import Build
from gateway.middleware.guardrail.check import About, CheckOptions, Finding
from gateway.middleware.guardrail.checks.local import LocalCheck


class LengthOptions(CheckOptions):
    """Options of `length`."""

    max_chars: int = Field(ge=1, description="Characters of one text at the most.")


class Length(LocalCheck):
    """Finds what is beyond the longest text that is allowed."""

    options = LengthOptions
    summary = "A text that is longer than it may be."

    def __init__(self, options: LengthOptions, build: Build) -> None:
        del build
        self._most = options.max_chars
        self._label = options.label or options.kind

    def look(self, text: str, about: About) -> Sequence[Finding]:
        """Find the part beyond the limit."""
        left = self._most - about.before
        return (Finding(self._label, max(left, 0), len(text)),) if len(text) > left else ()

    def open_from(self, text: str) -> int:
        """Every character is judged by those before it alone."""
        return len(text)
