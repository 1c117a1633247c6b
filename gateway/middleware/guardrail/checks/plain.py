"""Texts as they are read: each letter in its plain form, without characters that cannot be seen.

Wide letters, ligatures and letters of formulas look like plain ones to people and models, and a soft hyphen or a
joiner between two letters like nothing.
"""

import unicodedata
from itertools import accumulate

from gateway.middleware.guardrail.linear import compile_pattern

_MOST = 65_536
"""Characters that are remembered."""
_UNSEEN = frozenset(map(chr, (0x034F, *range(0x180B, 0x1810), *range(0xFE00, 0xFE10))))
"""What cannot be seen beside all of the class of formats."""


class _Forms(dict[int, str]):
    """What each character is read as."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        is_unseen = unicodedata.category(letter) == "Cf" or letter in _UNSEEN
        form = "" if is_unseen else unicodedata.normalize("NFKC", letter)
        if len(self) < _MOST:
            self[code] = form
        return form


_FORMS = _Forms()


_OFTEN = tuple(
    (letter, _FORMS[ord(letter)])
    for letter in "\u200b\u200d\ufe0f\u00ad\ufeff\u00a0\u2026\u202f\u2122\u00b2"
    "\u3000\uff0c\uff1a\uff1b\uff01\uff1f\uff08\uff09"
)
"""Letters that texts often have, with what they are read as."""
_MAY_BE_UNSEEN = compile_pattern(
    "[\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890-\u0891\u08e2\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ufe00-\ufe0f\ufeff\ufff0-\ufffb\U000110b0-\U000110cf\U00013430-\U0001345f\U0001bca0-\U0001bcaf"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""All that cannot be seen, and some more."""


def settled(text: str) -> str | None:
    """Return a text as it is read, in every way of reading; None where that takes a closer look."""
    if text.isascii():
        return text
    if not unicodedata.is_normalized("NFKC", text):
        for letter, form in _OFTEN:
            text = text.replace(letter, form)
        if not unicodedata.is_normalized("NFKC", text):
            return None
    return None if _MAY_BE_UNSEEN.search(text) is not None else text


def plain_of(text: str) -> str:
    """Return a text as it is read."""
    quick = settled(text)
    return text.translate(_FORMS) if quick is None else quick


class Plain:
    """Finds for places of a text as it is read where they are in the text as it is written."""

    __slots__ = ("_before",)

    def __init__(self, text: str, plain: str) -> None:
        self._before: list[int] | None = None
        if text != plain:
            ends = accumulate(len(_FORMS[ord(letter)]) for letter in text)
            place = 0
            self._before = []
            for at, end in enumerate(ends):
                self._before += [at] * (end - place)
                place = end
            self._before.append(len(text))

    def start(self, place: int) -> int:
        """Return where the character at a place is written."""
        return place if self._before is None else self._before[place]

    def end(self, place: int) -> int:
        """Return where the character before a place ends as it is written."""
        return place if self._before is None else self._before[place - 1] + 1
