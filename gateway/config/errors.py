"""Mistakes of a configuration: the place, what is wrong, the nearest name; never a secret."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from gateway.core.errors import GatewayError

Path = tuple[str | int, ...]
"""Keys and list positions from the top of the tree."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a value was written; line and column count from 1 and are 0 outside files."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, slots=True, order=True)
class Mistake:
    """One thing that must be changed before this configuration can be used."""

    file: str
    line: int
    column: int
    path: str
    message: str

    def __str__(self) -> str:
        place = Place(self.file, self.line, self.column)
        return f"{place}: {self.path}: {self.message}" if self.path else f"{place}: {self.message}"


class ConfigError(GatewayError):
    """The configuration cannot be used; `mistakes` holds every reason, sorted by place.

    `rest` is a tree of what is sound, where one is left, for whoever looks for more mistakes in it.
    """

    def __init__(self, mistakes: Iterable[Mistake], rest: object = None) -> None:
        self.mistakes = tuple(sorted(set(mistakes)))
        self.rest = rest
        super().__init__("config_invalid", detail=render(self.mistakes))

    def __str__(self) -> str:
        return render(self.mistakes)


def render(mistakes: Iterable[Mistake]) -> str:
    """Write mistakes for a person, one a line."""
    return "\n".join(map(str, mistakes))


def mistake(place: Place, path: Path, message: str) -> Mistake:
    """Return the mistake at a place of the tree."""
    return Mistake(place.file, place.line, place.column, dotted(path), message)


def dotted(path: Path) -> str:
    """Write a path as people read it: `tenants.acme.keys[0].secret`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ` (did you mean "x"?)` for the nearest known name, or an empty text."""
    by_lower = {each.lower(): each for each in sorted(known)}
    near = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return f' (did you mean "{by_lower[near[0]]}"?)' if near else ""
