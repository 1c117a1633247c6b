"""The project's own Python files, parsed once, for the tests of the house."""

import ast
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from tests.support.shared import ROOT

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Source:
    """One Python file of the project."""

    path: str
    text: str
    tree: ast.Module
    nodes: tuple[ast.AST, ...]

    @property
    def lines(self) -> list[str]:
        """The file's lines without their ends."""
        return self.text.splitlines()

    def walk(self) -> Iterator[ast.AST]:
        """Yield every node, the outer ones first."""
        return iter(self.nodes)

    def functions(self) -> Iterator[Function]:
        """Yield every function and method."""
        for node in self.walk():
            if isinstance(node, Function):
                yield node


@cache
def sources(*folders: str) -> tuple[Source, ...]:
    """Return the Python files below the given folders of the project, in order."""
    found: list[Source] = []
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            name = path.relative_to(ROOT).as_posix()
            tree = ast.parse(text, filename=name)
            found.append(Source(name, text, tree, tuple(ast.walk(tree))))
    return tuple(found)


def imported_names(source: Source) -> dict[str, str]:
    """Map each name that the file binds by an import to what it stands for."""
    names: dict[str, str] = {}
    for node in source.walk():
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.partition(".")[0]
                names[bound] = alias.name if alias.asname else bound
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def dotted(node: ast.AST) -> str | None:
    """Return `a.b.c` for an attribute chain on a name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (left := dotted(node.value)):
        return f"{left}.{node.attr}"
    return None


def uses(source: Source) -> Iterator[tuple[str, int]]:
    """Yield every imported thing that the file uses, by its full name, with the line."""
    names = imported_names(source)
    for node in source.walk():
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Attribute) and (chain := dotted(node)):
            first, _, rest = chain.partition(".")
            if first in names:
                yield f"{names[first]}.{rest}", node.lineno


def breaches(
    files: tuple[Source, ...],
    check: Callable[[Source], Iterable[object]],
    *,
    but: Container[str] = (),
) -> dict[str, list[object]]:
    """Return what `check` finds in each file, leaving out the files where it finds nothing."""
    found = {file.path: list(check(file)) for file in files if file.path not in but}
    return {path: finds for path, finds in found.items() if finds}
