"""What tells who somebody is: addresses, phones, cards, accounts, numbers of states, keys."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from pydantic import Field

from gateway.config.base import Many
from gateway.middleware.base import Build, OptionError
from gateway.middleware.guardrail.check import About, CheckFailed, CheckOptions, Finding
from gateway.middleware.guardrail.checks.begun import Begun, begun_of
from gateway.middleware.guardrail.checks.local import LocalCheck
from gateway.middleware.guardrail.checks.pii_numbers import NUMBERS, Recogniser
from gateway.middleware.guardrail.checks.presidio import Presidio
from gateway.middleware.guardrail.checks.secrets import (
    TRIGGER,
    Secrets,
    SecretsOptions,
)
from gateway.middleware.guardrail.linear import Pattern, compile_pattern

_EMAIL = re.compile(
    r"(?<![A-Za-z0-9._%+\-])[A-Za-z0-9._%+\-]{1,64}@(?:[A-Za-z0-9\-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9])"
    r"|[^\s@<>()\[\]\",;:\\]{1,64}@(?:[^\s@<>()\[\]\",;:\\.]{1,63}\.){1,8}[^\W\d_]{2,24}"
)
_LETTERS = r"[^\s@<>()\[\]\",;:\\"
_EMAIL_TRIGGER = rf"{_LETTERS}]@{_LETTERS}.]{{1,63}}\.{_LETTERS}.]"
_EMAIL_LIVE = rf"{_LETTERS}]{{1,64}}@(?:{_LETTERS}.]{{1,63}}\.){{1,8}}{_LETTERS}.]{{2,24}}"
ENTITIES = ("email", *NUMBERS, "key")
_REACH = 320
_AROUND = 48
_MANY = 4
"""Among more places than these it is quicker to know first which numbers there may be."""
_SHORT = 2
_DIGIT = re.compile(r"\d")


class _Number(NamedTuple):
    """A number that is looked for, and what tells fast that there is none."""

    name: str
    own: Recogniser
    quick: Pattern


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
        self._numbers = [
            _Number(name, each, compile_pattern(each.trigger))
            for name, each in NUMBERS.items()
            if name in wanted
        ]
        self._keys = (
            Secrets(SecretsOptions(kind="secrets", label="key"), build) if "key" in wanted else None
        )
        triggers = [each.trigger for _, each, _ in self._numbers]
        self._candidates = compile_pattern("|".join(triggers)) if triggers else None
        self.triggers = (
            *triggers,
            *([_EMAIL_TRIGGER] if self._email else []),
            *([TRIGGER] if self._keys is not None else []),
        )
        live = [each.live for _, each, _ in self._numbers]
        self._live_number = begun_of(live, ignore_case=True) if live else None
        self._live_email = begun_of([_EMAIL_LIVE]) if self._email else None

    def look(self, text: str, about: About) -> Sequence[Finding]:
        """Find what tells who somebody is."""
        found: list[Finding] = []
        if self._email and "@" in text:
            found += [Finding("email", m.start(), m.end()) for m in _EMAIL.finditer(text)]
        if self._candidates is not None:
            found += self._among(text, self._candidates)
        if self._keys is not None:
            found += self._keys.look(text, about)
        return found

    async def ask(self, texts: Sequence[str], about: About) -> Sequence[Sequence[Finding]]:
        """Ask Presidio."""
        if self._presidio is None:
            raise CheckFailed
        return await self._presidio.find(texts)

    def _among(self, text: str, candidates: Pattern) -> Iterator[Finding]:
        """Look closer where a number may stand; places that touch are one."""
        regions: list[tuple[int, int]] = []
        for match in candidates.finditer(text):
            end = min(match.end() + _AROUND, len(text))
            if regions and match.start() <= regions[-1][1]:
                regions[-1] = (regions[-1][0], end)
            else:
                regions.append((max(0, match.start() - 4), end))
        numbers = self._numbers
        if len(regions) > _MANY:
            numbers = [each for each in numbers if each.quick.search(text) is not None]
        for start, end in regions:
            yield from _near(numbers, text, start, end)

    def open_from(self, text: str) -> int:
        """Return where an address, a number or a key may have begun."""
        at = _begun_at(self._live_email, text)
        number_at = _begun_at(self._live_number, text)
        if _DIGIT.search(text, number_at) is not None:
            number_at = _before_groups(text, number_at)
        at = min(at, number_at)
        return min(at, self._keys.open_from(text)) if self._keys is not None else at


def _near(numbers: Sequence[_Number], text: str, start: int, end: int) -> Iterator[Finding]:
    """Find the numbers between two places; what is found first keeps its place."""
    taken: list[tuple[int, int]] = []
    for name, (form, check, _, _, blanks), _ in numbers:
        for match in form.finditer(text, start, end):
            at, to = match.span()
            if any(at < last and to > first for first, last in taken):
                continue
            said = match[0].upper()
            for blank in blanks:
                said = said.replace(blank, "")
            if check(said):
                taken.append((at, to))
                yield Finding(name, at, to)


def _begun_at(live: Begun | None, text: str) -> int:
    return len(text) if live is None else int(live.search(text).start())


def _before_groups(text: str, at: int) -> int:
    """Return where the groups begin that a number among digits may belong to: what it covers is not settled yet."""
    at = _word_at(text, at)
    while at and text[at - 1] == " ":
        word_at = _word_at(text, at - 1)
        word = text[word_at : at - 1]
        is_short = len(word) <= _SHORT and word.isupper()
        if len(word) > _AROUND or not (is_short or not word or _DIGIT.search(word)):
            break
        at = word_at
    return at


def _word_at(text: str, at: int) -> int:
    return max(text.rfind(" ", 0, at), text.rfind("\n", 0, at)) + 1
