"""What tells who somebody is: addresses, phones, cards, accounts, numbers of states, keys."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field

from gateway.config.base import Many
from gateway.middleware.base import Build, OptionError
from gateway.middleware.guardrail.check import About, CheckFailed, CheckOptions, Finding
from gateway.middleware.guardrail.checks.local import LocalCheck
from gateway.middleware.guardrail.checks.pii_numbers import NUMBERS
from gateway.middleware.guardrail.checks.presidio import Presidio
from gateway.middleware.guardrail.checks.secrets import Secrets, SecretsOptions
from gateway.middleware.guardrail.linear import compile_pattern

_EMAIL = re.compile(
    r"(?<![A-Za-z0-9._%+\-])[A-Za-z0-9._%+\-]{1,64}@(?:[A-Za-z0-9\-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9])"
    r"|[^\s@<>()\[\]\",;:\\]{1,64}@(?:[^\s@<>()\[\]\",;:\\.]{1,63}\.){1,8}[^\W\d_]{2,24}"
)
ENTITIES = ("email", *NUMBERS, "key")
_REACH = 320
_AROUND = 48
_CANDIDATES = compile_pattern(
    r"[+(]?\d(?:[ .\-/()]{0,2}\d){7,40}[ \-]?[A-Za-z]?"
    r"|\d{1,3}(?:\.\d{1,3}){3}"
    r"|(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}"
    r"|\b[A-Za-z]{2}\d{2}[ ]?[A-Za-z0-9]{4}"
    r"|\b[A-Za-z]{2} ?\d{2} ?\d{2} ?\d{2} ?[A-Da-d]\b"
    r"|\b[A-Za-z]{5,6}\d{2}"
    r"|\b[XYZxyz]-?\d{7}"
)
_DATE = re.compile(
    r"\d{4}([-/.])\d\d\1\d\d|\d\d?([-/.])\d\d?\2\d{4}|\d\d?:\d\d(?::\d\d)?"
).fullmatch
_WORD_ENDS = re.compile(r"[\s<>\[\]{}\"',;|=]")


class PiiOptions(CheckOptions):
    """Options of `pii`."""

    entities: Many[str] = Field(
        default=(), description="What is looked for; all that are known where nothing is said."
    )
    engine: Literal["builtin", "presidio"] = Field(
        default="builtin",
        description="`presidio`: Presidio's recognisers, names and places too (the extra `presidio`).",
    )
    language: str = Field(default="en", description="The language of texts, for `presidio`.")


class Pii(LocalCheck):
    """Finds what is listed, by form and check digits."""

    options = PiiOptions
    summary = "E-mail addresses, phones, cards, IBANs, national ids, IP addresses, keys."
    reach = _REACH

    def __init__(self, options: PiiOptions, build: Build) -> None:
        self.is_local = options.engine == "builtin"
        self._presidio = None
        if not self.is_local:
            self._presidio = Presidio(options.entities, options.language, build)
            return
        wanted = options.entities or ENTITIES
        unknown = sorted(set(wanted) - set(ENTITIES))
        if unknown:
            message = f"{unknown[0]} is not known; known are: {', '.join(ENTITIES)}"
            raise OptionError(message, "entities")
        self._email = "email" in wanted
        self._numbers = [(name, each) for name, each in NUMBERS.items() if name in wanted]
        self._keys = (
            Secrets(SecretsOptions(kind="secrets", label="key"), build) if "key" in wanted else None
        )

    def may_find(self, text: str) -> bool:
        """Tell whether anything looks like an address, a number or a key."""
        return (
            (self._email and "@" in text)
            or (bool(self._numbers) and _CANDIDATES.search(text) is not None)
            or (self._keys is not None and self._keys.may_find(text))
        )

    def look(self, text: str, about: About) -> Sequence[Finding]:
        """Find what tells who somebody is."""
        found: list[Finding] = []
        if self._email and "@" in text:
            found += [Finding("email", m.start(), m.end()) for m in _EMAIL.finditer(text)]
        if self._numbers and _CANDIDATES.search(text) is not None:
            found += self._among(text)
        if self._keys is not None:
            found += self._keys.look(text, about)
        return found

    async def ask(self, texts: Sequence[str], about: About) -> Sequence[Sequence[Finding]]:
        """Ask Presidio."""
        if self._presidio is None:
            raise CheckFailed
        return await self._presidio.find(texts)

    def _among(self, text: str) -> Iterator[Finding]:
        """Look closer where a number may stand; places that touch are one."""
        start = end = -1
        for match in _CANDIDATES.finditer(text):
            if _DATE(text[match.start() : match.end()].rstrip(" -")):
                continue
            if match.start() > end:
                if end >= 0:
                    yield from self._near(text, start, end)
                start = max(0, match.start() - 4)
            end = match.end() + _AROUND
        if end >= 0:
            yield from self._near(text, start, end)

    def _near(self, text: str, start: int, end: int) -> Iterator[Finding]:
        taken: list[tuple[int, int]] = []
        for name, (form, check, blanks) in self._numbers:
            for match in form.finditer(text, start, min(end, len(text))):
                at, to = match.span()
                if any(at < last and to > first for first, last in taken):
                    continue
                said = match[0].upper()
                for blank in blanks:
                    said = said.replace(blank, "")
                if check(said):
                    taken.append((at, to))
                    yield Finding(name, at, to)

    def open_from(self, text: str) -> int:
        """Return where the last word begins, with the groups of digits before it."""
        tail_at = max(0, len(text) - _REACH)
        at = tail_at
        for match in _WORD_ENDS.finditer(text, tail_at):
            at = match.end()
        at = self._before_groups(text, at, tail_at)
        return min(at, self._keys.open_from(text)) if self._keys is not None else at

    def _before_groups(self, text: str, at: int, least: int) -> int:
        """Return where the groups begin that stand before a place, each with a digit or short."""
        while at > least and text[at - 1] == " ":
            word_at = text.rfind(" ", least, at - 1) + 1 or least
            word = text[word_at : at - 1]
            if len(word) > 40 or not (  # longer than any group of any number
                any(char.isdigit() for char in word)
                or (len(word) <= 2 and word.isupper())
                or not word
            ):
                break
            at = word_at
        return at
