"""Keys of providers and clouds, private keys, tokens, passwords in addresses and behind words that say so."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from math import log2

from pydantic import Field

from gateway.middleware.base import Build
from gateway.middleware.guardrail.check import About, CheckOptions, Finding
from gateway.middleware.guardrail.checks.begun import begun_of
from gateway.middleware.guardrail.checks.local import LocalCheck
from gateway.middleware.guardrail.checks.placeholders import is_placeholder, is_placeholder_key
from gateway.middleware.guardrail.checks.secret_forms import (
    BETWEEN,
    BY_FORM,
    FORMS,
    VALUE,
    WORDS,
)
from gateway.middleware.guardrail.linear import compile_pattern

_LONGEST_KEY = 16_384
_REACH = 256
_SPREAD = 0.65
"""Of the bits that a text of its length could tell, so much makes it random enough."""
_END_MARK = re.compile(r"-----END [A-Z ]{0,32}PRIVATE KEY(?: BLOCK)?-----")
_TOKEN = re.compile(r"eyJ[A-Za-z0-9_\-]{8,}\.(?:eyJ)?[A-Za-z0-9_\-]{8,}(?:\.[A-Za-z0-9_\-]*){0,3}")
_BEHIND = re.compile(rf"(?i)\b{WORDS}{BETWEEN}([{VALUE}]{{8,}})")
_BEHIND_OPEN = re.compile(rf"(?i){WORDS}{BETWEEN}([{VALUE}]*)\Z")
_MAY_BE_BEHIND = compile_pattern(rf"(?i){WORDS}{BETWEEN}[{VALUE}]*\z")
TRIGGER = "|".join((*BY_FORM, rf"(?i:{WORDS}{BETWEEN}[{VALUE}]{{8,}})"))
"""Matches wherever a secret may be."""
_ALL = compile_pattern(TRIGGER)
_LIVE = begun_of(BY_FORM)


class SecretsOptions(CheckOptions):
    """Options of `secrets`."""

    min_entropy: float = Field(
        default=3.0,
        ge=0,
        le=8,
        description="Bits for each character from which on what stands behind a word like `password:` is secret.",
    )


class Secrets(LocalCheck):
    """Finds secrets; where a word announces one, the secret alone."""

    options = SecretsOptions
    summary = "Keys of providers and clouds, private keys, tokens, passwords."
    reach = _REACH
    triggers = (TRIGGER,)

    def __init__(self, options: SecretsOptions, build: Build) -> None:
        del build
        self._label = options.label or "secret"
        self._least = options.min_entropy

    def look(self, text: str, about: About) -> Sequence[Finding]:
        """Find every secret."""
        return list(self._each(text))

    def _each(self, text: str) -> Iterator[Finding]:
        for match in _ALL.finditer(text):
            start, end = match.start(), match.end()
            start += text[start] == "_"
            said = text[start:end]
            if said.startswith("-----"):
                close = _END_MARK.search(text, end, end + _LONGEST_KEY)
                end = close.end() if close else min(len(text), end + _LONGEST_KEY)
            elif said.startswith("eyJ"):
                token = _TOKEN.match(text, start)
                if token is None:
                    continue
                end = token.end()
            elif said.startswith("://"):
                start += 3
                if is_placeholder(text[text.index(":", start) + 1 : end - 1]):
                    continue
            elif (behind := _BEHIND.match(said)) is not None:
                start, end = start + behind.start(1), start + behind.end(1)
                while end > start and text[end - 1] in ".!":
                    end -= 1
                if not self._is_secret(text[start:end]):
                    continue
            elif is_placeholder_key(said[_size_of_begin(said) :]):
                continue
            yield Finding(self._label, start, end)

    def _is_secret(self, value: str) -> bool:
        """Tell whether what stands behind a word is one: letters and digits, and no word of a language."""
        has_digit = any(char.isdigit() for char in value)
        has_letter = any(char.isalpha() for char in value)
        is_mixed = has_digit and has_letter
        if not is_mixed and not (has_letter and any(char in "!$%^&*#@" for char in value)):
            return False
        if is_placeholder(value):
            return False
        return _entropy(value) >= min(self._least, log2(len(value)) * _SPREAD)

    def open_from(self, text: str) -> int:
        """Return where a key may have begun that is not complete, or what stands behind a word."""
        at = int(_LIVE.search(text).start())
        tail_at = max(0, len(text) - _REACH)
        tail = text[tail_at:]
        if _MAY_BE_BEHIND.search(tail) is not None:
            behind = _BEHIND_OPEN.search(tail)
            at = min(at, tail_at + behind.start(1)) if behind else at
        return at


def _size_of_begin(said: str) -> int:
    """Return how long the beginning is that tells what kind of key it is."""
    return max((len(form.begin) for form in FORMS if said.startswith(form.begin)), default=0)


def _entropy(value: str) -> float:
    """Return the bits that each character of a text tells."""
    size = len(value)
    return -sum(n / size * log2(n / size) for n in Counter(value).values())
