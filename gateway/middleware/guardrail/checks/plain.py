"""Texts as they are read: each letter in its plain form, without characters that cannot be seen.

Wide letters, ligatures and letters of formulas look like plain ones to people and models, and a soft hyphen or a
joiner between two letters like nothing.
"""

import unicodedata
from itertools import accumulate

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


def plain_of(text: str) -> str:
    """Return a text as it is read."""
    return text if text.isascii() else text.translate(_FORMS)


class Plain:
    """Finds for places of a text as it is read where they are in the text as it is written."""

    __slots__ = ("_before",)

    def __init__(self, text: str, plain: str) -> None:
        self._before: list[int] | None = None
        if text is not plain:
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
