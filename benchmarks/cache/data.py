"""Reads a folder of the layout `pairs/*.jsonl`, `conversations/*.jsonl`, `streams/*.tsv`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec


class Pair(NamedTuple):
    """Two texts, whether one answer serves both, and the kind for the tables (rules never see it)."""

    a: str
    b: str
    same: bool
    kind: str
    language: str


class Talk(NamedTuple):
    """Two conversations that end with a user's turn, and whether one answer serves both."""

    a: list[dict[str, str]]
    b: list[dict[str, str]]
    same: bool


def _rows(path: Path) -> list[dict[str, Any]]:
    lines = path.read_bytes().splitlines()
    return [cast("dict[str, Any]", msgspec.json.decode(line)) for line in lines if line.strip()]


def pairs(folder: Path) -> dict[str, list[Pair]]:
    """Return the pairs by the name of their file."""
    return {
        path.stem: [
            Pair(
                row["a"],
                row["b"],
                bool(row["same"]),
                str(row.get("cat", "")),
                str(row.get("lang", "en")),
            )
            for row in _rows(path)
        ]
        for path in sorted((folder / "pairs").glob("*.jsonl"))
    }


def talks(folder: Path) -> list[Talk]:
    """Return the pairs of conversations of all files."""
    return [
        Talk(row["a"], row["b"], bool(row["same_answer"]))
        for path in sorted((folder / "conversations").glob("*.jsonl"))
        for row in _rows(path)
    ]


def streams(folder: Path) -> dict[str, list[tuple[str, str]]]:
    """Return rows of answer and prompt, in order of arrival, by the name of their file."""
    return {
        path.stem: [
            cast("tuple[str, str]", tuple(line.split("\t", 1)))
            for line in path.read_text(encoding="utf-8").splitlines()
            if "\t" in line
        ]
        for path in sorted((folder / "streams").glob("*.tsv"))
    }
