"""Patterns searched in linear time, whatever they and the texts are (RE2): the one importer of that library."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any, Protocol

_MEMORY = 32 << 20


class Match(Protocol):
    """One match; places count characters."""

    def start(self) -> int: ...
    def end(self) -> int: ...


class Pattern(Protocol):
    """A compiled pattern."""

    def finditer(self, text: str) -> Iterator[Match]: ...
    def search(self, text: str) -> Match | None: ...


_re2: Any = import_module("re2")


def compile_pattern(pattern: str) -> Pattern:
    """Compile a pattern; raises ValueError with what is wrong with it."""
    settings = _re2.Options()
    settings.log_errors = False
    settings.max_mem = _MEMORY
    try:
        compiled: Pattern = _re2.compile(pattern, settings)
    except _re2.error as error:
        words = error.args[0]
        said = words.decode("utf-8", "replace") if isinstance(words, bytes) else str(words)
        raise ValueError(said) from None
    return compiled
