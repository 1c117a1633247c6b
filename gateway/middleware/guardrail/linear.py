"""Patterns searched in linear time, whatever they and the texts are (RE2): the one importer of that library."""

from collections.abc import Iterable, Iterator
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
    compiled: Pattern = _compile(pattern)
    return compiled


class Trigger:
    """Tells whether any of several patterns matches in UTF-8, in one go; raises ValueError as `compile_pattern`."""

    __slots__ = ("_search",)

    def __init__(self, patterns: Iterable[str]) -> None:
        pattern = "|".join(f"(?:{each})" for each in dict.fromkeys(patterns))
        self._search = _compile(pattern.encode()).search

    def find(self, data: bytes, at: int = 0) -> int:
        """Return where the first match from a place on begins, -1 without any."""
        found: Match | None = self._search(data, at)
        return -1 if found is None else found.start()


def _compile(pattern: str | bytes) -> Any:  # noqa: ANN401  the library has no types
    settings = _re2.Options()
    settings.log_errors = False
    settings.max_mem = _MEMORY
    settings.never_capture = isinstance(pattern, bytes)
    try:
        return _re2.compile(pattern, settings)
    except _re2.error as error:
        words = error.args[0]
        said = words.decode("utf-8", "replace") if isinstance(words, bytes) else str(words)
        raise ValueError(said) from None
