"""What an unquoted word means: a number, true, false, null, or else text."""

import math
import re

_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})\Z")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?\Z")
_AMBIGUOUS = re.compile(r"[-+]?(?:0[0-9]|[0-9]+\Z)")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}


def scalar(text: str) -> bool | int | float | str | None:
    """Return the value of an unquoted word; `on`, `off`, `yes` and `no` are text."""
    if text in _WORDS:
        return _WORDS[text]
    if _WHOLE.match(text):
        return int(text)
    # 007 and longer numbers stay text: programs read them differently.
    if _NUMBER.match(text) and not _AMBIGUOUS.match(text):
        value = float(text)
        return value if math.isfinite(value) else text
    return text
