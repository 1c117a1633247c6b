"""Words and phrases that may not be said, whole and in any case."""

import re
from collections.abc import Sequence

from pydantic import Field

from gateway.config.base import Some
from gateway.middleware.base import Build
from gateway.middleware.guardrail.check import About, CheckOptions, Finding
from gateway.middleware.guardrail.checks.local import LocalCheck
from gateway.middleware.guardrail.checks.plain import Plain, plain_of
from gateway.middleware.guardrail.linear import compile_pattern


class WordsOptions(CheckOptions):
    """Options of `words`."""

    words: Some[str] = Field(min_length=1, description="Words or phrases.")
    case_sensitive: bool = Field(default=False, description="Whether case counts.")
    whole: bool = Field(default=True, description="Whether parts of longer words are left alone.")


class Words(LocalCheck):
    """Finds every place of every word; blanks between the words of a phrase may be any.

    Letters are compared as they are read: wide ones are plain ones, and what cannot be seen is not there.
    """

    options = WordsOptions
    summary = "Words and phrases, whole and in any case."
    readings = (plain_of,)

    def __init__(self, options: WordsOptions, build: Build) -> None:
        del build
        # Longest first, so that a phrase is found before the word that it begins with.
        words = [plain_of(each) or each for each in options.words]
        phrases = sorted((each.split() for each in words), key=lambda each: -len(" ".join(each)))
        found = "|".join(r"\s{1,8}".join(map(re.escape, phrase)) for phrase in phrases if phrase)
        edge = (r"(?<!\w)(?:", r")(?!\w)") if options.whole else ("(?:", ")")
        begun = "|".join(_partly(phrase) for phrase in phrases if phrase)
        self._begun = compile_pattern(f"(?:{begun})" if options.case_sensitive else f"(?i:{begun})")
        trigger = f"(?:{found})" if options.case_sensitive else f"(?i:{found})"
        self._trigger = compile_pattern(trigger)
        self.triggers = (trigger,)
        self._pattern = re.compile(found.join(edge), 0 if options.case_sensitive else re.IGNORECASE)
        self.reach = max(len(" ".join(phrase)) + 8 * len(phrase) for phrase in phrases) + 1
        self._label = options.label or options.kind

    def look(self, text: str, about: About) -> Sequence[Finding]:
        """Find every place."""
        plain = plain_of(text)
        if self._trigger.search(plain) is None:
            return ()
        places = Plain(text, plain)
        return [
            Finding(self._label, places.start(m.start()), places.end(m.end()))
            for m in self._pattern.finditer(plain)
        ]

    def open_from(self, text: str) -> int:
        """Return where any phrase may have begun, or is complete and what follows it decides."""
        plain = plain_of(text)
        tail_at = max(0, len(plain) - self.reach)
        begun = self._begun.search(plain[tail_at:])
        if begun is None:
            return len(text)
        return Plain(text, plain).start(tail_at + begun.start())


def _partly(phrase: Sequence[str]) -> str:
    """Return the pattern of the beginnings of a phrase, each at the end of a text."""
    parts: list[str] = []
    for number, word in enumerate(phrase):
        parts += [r"\s{1,8}"] if number else []
        parts += map(re.escape, word)
    pattern = parts.pop()
    for part in reversed(parts):
        pattern = f"{part}(?:{pattern})?"
    return rf"(?:{pattern})\z"
