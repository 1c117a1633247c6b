"""Which rows of docs/contracts.md have a test: `python -m tests.support.rows [--all] [PREFIX ...]`.

Prints the rows in force that no test names; with `--all` every row with its tests.
"""

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from tests.support.shared import ROOT
from tests.support.source import Source, dotted, sources

PAGE = ROOT / "docs" / "contracts.md"
MARKS = frozenset({"contract", "fault", "threat", "bug"})
ID = re.compile(
    r"\b(?:K\d{2}|(?:[TUSCLP]|RS)-\d{1,2}|G-(?:\d{1,2}|[A-Z]+(?:-\d{1,2})?)|I\d{1,2})\b"
)
_ROW = re.compile(r"^\| ([A-Z][\w-]*) \| (.+?) \| (now|later) \|$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Row:
    """One promise. `later`: what it is about is not in this version."""

    id: str
    text: str
    later: bool


def rows() -> dict[str, Row]:
    """Return the rows of the page by id."""
    found = _ROW.findall(PAGE.read_text(encoding="utf-8"))
    return {name: Row(name, text, when == "later") for name, text, when in found}


@cache
def marked() -> tuple[tuple[str, str], ...]:
    """Return each id that a test is marked with, and where."""
    return tuple(pair for file in sources("tests") for pair in _marked(file))


def _marked(file: Source) -> Iterator[tuple[str, str]]:
    for place, node in _owners(file):
        for call in ast.walk(node):
            if isinstance(call, ast.Call) and _is_mark(call):
                for argument in call.args:
                    if isinstance(argument, ast.Constant):
                        yield str(argument.value), place


def _owners(file: Source) -> Iterator[tuple[str, ast.AST]]:
    """Yield what may carry a mark: decorators under their function, the rest under the file."""
    for node in file.walk():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for decorator in node.decorator_list:
                yield f"{file.path}::{node.name}", decorator
    for statement in file.tree.body:
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield file.path, statement


def _is_mark(call: ast.Call) -> bool:
    *_, left, name = ["", "", *(dotted(call.func) or "").split(".")]
    return left == "mark" and name in MARKS


def cited() -> dict[str, set[str]]:
    """Return each id that the product's text names, with the files."""
    found: dict[str, set[str]] = {}
    for file in sources("gateway"):
        for name in ID.findall(file.text):
            found.setdefault(name, set()).add(file.path)
    return found


def proofs() -> dict[str, list[str]]:
    """Return the tests of each id."""
    found: dict[str, set[str]] = {}
    for name, place in marked():
        found.setdefault(name, set()).add(place)
    return {name: sorted(places) for name, places in found.items()}


def report(prefixes: Sequence[str], *, everything: bool) -> Iterator[str]:
    """Yield the lines of the report."""
    tests = proofs()
    wanted = [row for row in rows().values() if row.id.startswith(tuple(prefixes) or "")]
    for row in wanted:
        if everything:
            yield f"{row.id:10}{'later   ' if row.later else ''}{row.text}"
            yield from (f"          {place}" for place in tests.get(row.id, ()))
        elif row.id not in tests and not row.later:
            yield f"{row.id:10}{row.text}"
    now = [row for row in wanted if not row.later]
    proven = sum(row.id in tests for row in now)
    yield f"{proven} of {len(now)} rows in force have a test; {len(wanted) - len(now)} are for later"


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--all"]
    print(*report(words, everything="--all" in sys.argv), sep="\n")
