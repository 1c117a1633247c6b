"""A pattern of the operator's, searched in linear time whatever it is (RE2)."""

from collections.abc import Sequence

from pydantic import Field

from gateway.middleware.base import Build, OptionError
from gateway.middleware.guardrail.check import About, CheckOptions, Finding
from gateway.middleware.guardrail.checks.begun import begun
from gateway.middleware.guardrail.checks.local import LocalCheck
from gateway.middleware.guardrail.linear import compile_pattern


class RegexOptions(CheckOptions):
    """Options of `regex`."""

    pattern: str = Field(
        min_length=1, max_length=10_000, description="The pattern, in the syntax of RE2."
    )
    longest: int = Field(
        default=120,
        ge=1,
        le=65_536,
        description="The longest match, in characters, that is waited for in a stream with `window`.",
    )


class Regex(LocalCheck):
    """Finds every match of one pattern."""

    options = RegexOptions
    summary = "A pattern of the operator's, searched in linear time."

    def __init__(self, options: RegexOptions, build: Build) -> None:
        del build
        try:
            self._pattern = compile_pattern(options.pattern)
        except ValueError as error:
            raise OptionError(f"is no pattern of RE2: {error}", "pattern") from None
        self._begun = begun(options.pattern)
        self.reach = options.longest
        # What is anchored to the beginning or end of a text is looked for in each text.
        plain = options.pattern.replace("[^", "[")
        is_anchored = any(mark in plain for mark in ("^", "$", "\\A", "\\z"))
        self.triggers = None if is_anchored else (options.pattern,)
        self._label = options.label or options.kind

    def look(self, text: str, about: About) -> Sequence[Finding]:
        """Find every match that holds a character."""
        return [
            Finding(self._label, found.start(), found.end())
            for found in self._pattern.finditer(text)
            if found.end() > found.start()
        ]

    def open_from(self, text: str) -> int:
        """Return where a match may have begun, within the last `longest` characters."""
        least = max(0, len(text) - self.reach)
        found = self._begun.search(text[least:]) if self._begun is not None else None
        return least + found.start() if found is not None else least
