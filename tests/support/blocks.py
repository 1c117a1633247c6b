"""The blocks of code in the documents, and the links between them."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.shared import ROOT

DOCUMENTS = (
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "benchmarks" / "README.md",
)
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:^ {4}\S.*\n(?:^ {4}.*\n)*)", re.MULTILINE)
_ITEM = re.compile(r"^(?:[-*]|\d+\.) .*\n(?: {2,}.*\n)*", re.MULTILINE)
"""An item of a list: what continues it is indented too."""
PROGRAMS = frozenset({"gateway", "make", "python", "pip", "curl", "docker", "sysctl", "ulimit"})
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a document; `line` is where it begins."""

    page: Path
    line: int
    language: str
    text: str

    @property
    def name(self) -> str:
        """Where it stands, for the name of a test."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def fenced(*languages: str) -> list[Block]:
    """Return the fenced blocks of some languages in all documents."""
    return [
        Block(page, text[: match.start()].count("\n") + 1, match[1], match[2])
        for page in DOCUMENTS
        for text in (page.read_text(encoding="utf-8"),)
        for match in _FENCE.finditer(text)
        if match[1] in languages
    ]


def commands() -> list[tuple[str, list[str]]]:
    """Return every line of every block for a shell, split into words, with its page.

    Such a block is indented, or fenced without a language, and has a line that begins with one of `PROGRAMS`.
    """
    found: list[tuple[str, list[str]]] = []
    for page in DOCUMENTS:
        text = page.read_text(encoding="utf-8")
        blocks = [body for language, body in _FENCE.findall(text) if not language]
        blocks += _INDENTED.findall(_ITEM.sub("", _FENCE.sub("", text)))
        for block in blocks:
            joined = block.replace("\\\n", " ")
            lines = [shlex.split(line, comments=True) for line in joined.splitlines()]
            if any(line and program(line[0]) in PROGRAMS for line in lines):
                found += [(page.name, line) for line in lines if line]
    return found


def program(word: str) -> str:
    """Return the name of the program that a command line begins with."""
    name = word.removeprefix(".venv/bin/")
    return "python" if name.startswith("python") else name


def links() -> Iterator[tuple[Path, str]]:
    """Yield every link of a document to a file or an anchor."""
    for page in DOCUMENTS:
        for target in _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
            if "://" not in target and not target.startswith("mailto:"):
                yield page, target


def anchors(page: Path) -> set[str]:
    """Return the anchors of a document's headings."""
    headings = _HEADING.findall(_FENCE.sub("", page.read_text(encoding="utf-8")))
    return {_NOT_IN_ANCHORS.sub("", each.lower()).replace(" ", "-") for each in headings}
