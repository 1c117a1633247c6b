"""Patterns of what may still become a match: what a growing text ends with, when a match has begun in it (K26).

Made from a pattern's own syntax tree. Where that says too little (assertions), more is held back, never less. Edges
of words and beginnings of lines are kept where the text on both sides of them is known.
"""

import re
from collections.abc import Iterable
from importlib import import_module
from typing import Any, Final, Protocol, cast

from gateway.middleware.guardrail.linear import compile_pattern

_op: Any = import_module("re._constants")
_parser: Any = import_module("re._parser")
_LARGEST: Final = 4_000
"""Characters of a pattern that is made of an operator's; a larger one is left."""
_LARGEST_OF_OURS: Final = 65_536
_MOST_REPEATS: Final = 128
_OTHERWISE: Final = ("(?U", "\\C", "\\Q", "[[", "[:", "{,", "--", "&&", "||", "~~")
"""What the parser of Python reads in another way than RE2, or warns of."""
_END: Final = r"\z"
_CLASSES: Final[dict[Any, str]] = {
    _op.CATEGORY_DIGIT: r"\d", _op.CATEGORY_NOT_DIGIT: r"\D", _op.CATEGORY_SPACE: r"\s",
    _op.CATEGORY_NOT_SPACE: r"\S", _op.CATEGORY_WORD: r"\w", _op.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip


class _Unknown(Exception):
    """Something in a pattern that is not told apart here."""


class Begun(Protocol):
    """Finds where a match has begun at the end of a text."""

    def search(self, text: str, /) -> Any: ...  # noqa: ANN401  re2's own type has no stubs


def begun(pattern: str, *, largest: int = _LARGEST) -> Begun | None:
    """Return what finds the first place from which a text may still become a match; None where it does not tell."""
    if any(other in pattern for other in _OTHERWISE):
        return None
    try:
        tree = _parser.parse(pattern)
        if tree.state.flags & ~(re.IGNORECASE | re.UNICODE):
            return None
        _, begins = _sequence(list(tree), largest)
        flags = "(?i)" if tree.state.flags & re.IGNORECASE else ""
        made = f"{flags}(?:{begins}){_END}"
        return cast("Begun", compile_pattern(made)) if len(made) <= largest else None
    except (_Unknown, re.error, ValueError, OverflowError, RecursionError):
        return None


def begun_of(patterns: Iterable[str], *, ignore_case: bool = False) -> Begun:
    """Return the same for any of several patterns of ours; raises ValueError where they do not tell."""
    flags = "(?i)" if ignore_case else ""
    found = begun(flags + "|".join(patterns), largest=_LARGEST_OF_OURS)
    if found is None:
        raise ValueError("a pattern does not tell where it has begun")
    return found


def _sequence(items: list[Any], largest: int, *, lines: bool = False) -> tuple[str, str]:
    """Return a pattern of all of a sequence, and one of every beginning of it, the empty one too."""
    whole, begins = "", ""
    for item in reversed(items):
        own, own_begins = _item(item, largest, lines=lines)
        whole = own + whole
        begins = f"(?:{own}{begins}|{own_begins})" if begins else own_begins
        if len(begins) > largest:
            raise _Unknown
    return whole, begins


def _item(item: Any, largest: int, *, lines: bool) -> tuple[str, str]:  # noqa: ANN401  the parser's own tree
    """Return the same of one node; `lines`: `^` means the beginning of a line."""
    op, value = item
    if op is _op.AT:  # at the end of a text it is not known what follows
        if value is _op.AT_BOUNDARY:
            return r"\b", ""
        return ("(?m:^)" if lines and value is _op.AT_BEGINNING else ""), ""
    if op in {_op.ASSERT, _op.ASSERT_NOT}:
        return "", ""
    if op is _op.SUBPATTERN:
        _, added, removed, inner = value
        if added & ~re.MULTILINE or removed:
            raise _Unknown
        whole, begins = _sequence(list(inner), largest, lines=lines or bool(added))
        return f"(?:{whole})", f"(?:{begins})"
    if op is _op.BRANCH:
        pairs = [_sequence(list(branch), largest, lines=lines) for branch in value[1]]
        return (
            f"(?:{'|'.join(whole for whole, _ in pairs)})",
            f"(?:{'|'.join(begins for _, begins in pairs)})",
        )
    if op in {_op.MAX_REPEAT, _op.MIN_REPEAT}:
        least, most, inner = value
        return _repeat(least, most, _sequence(list(inner), largest, lines=lines))
    one = _character(op, value)
    return one, f"{one}?"


def _repeat(least: int, most: Any, pair: tuple[str, str]) -> tuple[str, str]:  # noqa: ANN401  the parser's own tree
    whole, begins = pair
    if most is _op.MAXREPEAT:
        return f"(?:{whole}){{{least},}}" if least else f"(?:{whole})*", f"(?:{whole})*(?:{begins})"
    if most > _MOST_REPEATS:
        raise _Unknown
    return f"(?:{whole}){{{least},{most}}}", f"(?:{whole}){{0,{most}}}(?:{begins})"


def _character(op: Any, value: Any) -> str:  # noqa: ANN401  the parser's own tree
    if op is _op.LITERAL:
        return _literal(value)
    if op is _op.NOT_LITERAL:
        return f"[^{_literal(value)}]"
    if op is _op.ANY:
        return "."
    if op is not _op.IN:
        raise _Unknown
    return f"[{''.join(_member(*each) for each in value)}]"


def _member(op: Any, value: Any) -> str:  # noqa: ANN401  the parser's own tree
    if op is _op.NEGATE:
        return "^"
    if op is _op.LITERAL:
        return _literal(value)
    if op is _op.RANGE:
        return f"{_literal(value[0])}-{_literal(value[1])}"
    if op is _op.CATEGORY and value in _CLASSES:
        return _CLASSES[value]
    raise _Unknown


def _literal(code: int) -> str:
    return f"\\x{{{code:x}}}"
