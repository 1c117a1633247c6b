"""Prints a run, keeps it as JSON and Markdown, and brings the README's figures up to date."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from benchmarks.process import REPOSITORY
from benchmarks.rows import Metric
from benchmarks.subjects.registry import BASE_LINE, OURS, SUBJECTS
from benchmarks.summary import Run, figure, measured, missed, verdicts

RESULTS: Final = Path(__file__).resolve().parent / "results"
LATEST: Final = RESULTS / "latest.json"
README: Final = REPOSITORY / "README.md"
_BEGIN: Final = "<!-- bench:start -->"
_END: Final = "<!-- bench:end -->"


class ReadmeError(Exception):
    """The README has no place for the figures."""


def _number(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}"


def _cell(run: Run, metric: Metric, subject: str) -> str:
    found = figure(run, metric, subject)
    if found is None:
        return "-"
    text = _number(found.value, metric.digits)
    if found.ratio is not None and subject != "nginx":
        text += f" ({_number(found.ratio, 1 if found.ratio < 100 else 0)}x)"
    return text


def _goal_cell(run: Run, metric: Metric) -> str:
    words = {True: "met", False: "MISSED", None: "?"}
    return "; ".join(f"{v.goal.words()}: {words[v.kept]}" for v in verdicts(run, metric)) or ""


def _title(metric: Metric) -> str:
    return f"{metric.title}, {metric.unit}" if metric.unit else metric.title


def table_rows(run: Run, subjects: list[str], *, goals: bool) -> list[list[str]]:
    """Return the table as cells, the head first; rows without any figure are left out."""
    head = ["", *subjects]
    rows = [head + (["goal"] if goals else [])]
    for metric in measured(run):
        cells = [_cell(run, metric, subject) for subject in subjects]
        if all(cell == "-" for cell in cells):
            continue
        rows.append([_title(metric), *cells] + ([_goal_cell(run, metric)] if goals else []))
    return rows


def plain_table(rows: list[list[str]]) -> str:
    """Align cells for a terminal."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    last = len(widths) - 1

    def line(row: list[str]) -> str:
        cells = [
            cell.ljust(width) if at in {0, last} else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return "  ".join(cells).rstrip()

    return "\n".join([line(rows[0]), "-" * sum(w + 2 for w in widths), *map(line, rows[1:])])


def markdown_table(rows: list[list[str]]) -> str:
    """Return cells as a Markdown table, figures to the right."""
    rule = ["---"] + ["---:"] * (len(rows[0]) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in [rows[0], rule, *rows[1:]])


def _conditions(run: Run) -> str:
    kept = ", ".join(f"{name} {value}" for name, value in run.machine.items())
    return (
        f"{len(run.rounds)} interleaved rounds; {kept}. CPU is user and system time of the "
        "gateway's processes, the smallest of the rounds; in brackets the median of the "
        "per-round ratio to nginx. Latencies are medians of the rounds."
    )


def notes(run: Run) -> list[str]:
    """Return what the figures do not say: subjects left out, failed requests, missed goals."""
    lines = [f"{name} left out: {why}" for name, why in run.skipped.items()]
    for subject, steps in run.errors.items():
        counts = ", ".join(f"{step} {count}" for step, count in steps.items())
        lines.append(f"{subject}: failed requests: {counts}")
    lines += [f"goal missed: {title}" for title in missed(run)]
    return lines


def show(run: Run) -> str:
    """Return a run for the terminal."""
    if not run.subjects:
        return "\n".join(["nothing was measured", *notes(run)])
    table = plain_table(table_rows(run, run.subjects, goals=OURS in run.subjects))
    return "\n".join([table, "", _conditions(run), *notes(run)])


def readme_table(run: Run) -> str:
    """Return the block of the README: this product first, then nginx and the peers."""
    order = sorted(
        (name for name in run.subjects if name != BASE_LINE), key=lambda name: name != OURS
    )
    rows = table_rows(run, order, goals=False)
    rows[0] = ["", *(SUBJECTS[name].label for name in order)]
    return f"{markdown_table(rows)}\n\n{_conditions(run)}\n"


def update_readme(run: Run, readme: Path = README) -> None:
    """Replace what stands between the two marks in README.md."""
    text = readme.read_text(encoding="utf-8")
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise ReadmeError(f"README.md has no {_BEGIN} ... {_END}")
    readme.write_text(f"{before}{_BEGIN}\n{readme_table(run)}{_END}{after}", encoding="utf-8")


def save(run: Run) -> None:
    """Keep a run as latest.json and latest.md."""
    RESULTS.mkdir(exist_ok=True)
    LATEST.write_bytes(msgspec.json.format(msgspec.json.encode(run), indent=1) + b"\n")
    table = markdown_table(table_rows(run, run.subjects, goals=OURS in run.subjects))
    more = "".join(f"- {note}\n" for note in notes(run))
    text = f"# Benchmark\n\n{table}\n\n{_conditions(run)}\n\n{more}"
    (RESULTS / "latest.md").write_text(text.rstrip() + "\n", encoding="utf-8")


def load() -> Run:
    """Read the last kept run."""
    return msgspec.json.decode(LATEST.read_bytes(), type=Run)
