"""Words and phrases that may not be said, whole and in any case."""

import re
from collections.abc import Sequence

from pydantic import Field

from gateway.config.base import Some
from gateway.middleware.base import Build
from gateway.middleware.guardrail.check import About, CheckOptions, Finding
from gateway.middleware.guardrail.checks.local import LocalCheck
from gateway.middleware.guardrail.linear import compile_pattern


class WordsOptions(CheckOptions):
    """Options of `words`."""

    words: Some[str] = Field(min_length=1, description="Words or phrases.")
    case_sensitive: bool = Field(default=False, description="Whether case counts.")
    whole: bool = Field(default=True, description="Whether parts of longer words are left alone.")


class Words(LocalCheck):
    """Finds every place of every word; blanks between the words of a phrase may be any."""

    options = WordsOptions
    summary = "Words and phrases, whole and in any case."

    def __init__(self, options: WordsOptions, build: Build) -> None:
        del build
        # Longest first, so that a phrase is found before the word that it begins with.
        phrases = sorted(
            (each.split() for each in options.words), key=lambda each: -len(" ".join(each))
        )
        found = "|".join(r"\s{1,8}".join(map(re.escape, phrase)) for phrase in phrases if phrase)
        edge = (r"(?<!\w)(?:", r")(?!\w)") if options.whole else ("(?:", ")")
        self._trigger = compile_pattern(
            f"(?:{found})" if options.case_sensitive else f"(?i:{found})"
        )
        self._pattern = re.compile(found.join(edge), 0 if options.case_sensitive else re.IGNORECASE)
        self.reach = max(len(" ".join(phrase)) + 8 * len(phrase) for phrase in phrases) + 1
        self._label = options.label or options.kind

    def look(self, text: str, about: About) -> Sequence[Finding]:
        """Find every place."""
        if self._trigger.search(text) is None:
            return ()
        return [Finding(self._label, m.start(), m.end()) for m in self._pattern.finditer(text)]

    def open_from(self, text: str) -> int:
        """Return where the longest phrase, and what follows it, may begin."""
        return max(0, len(text) - self.reach)
