"""From the figures of all rounds to one figure per row and subject, and to kept goals."""

from __future__ import annotations

from statistics import median

import msgspec

from benchmarks.rows import METRICS, Goal, Metric, Values
from benchmarks.subjects.registry import BASE_LINE, OURS, REFERENCE


class Run(msgspec.Struct, kw_only=True):
    """A whole run as it is kept in latest.json."""

    machine: dict[str, str]
    subjects: list[str]
    rounds: list[dict[str, Values]]
    skipped: dict[str, str]
    errors: dict[str, dict[str, int]]


class Figure(msgspec.Struct, frozen=True):
    """One cell: the figure of a subject, and the median of its per-round ratio to nginx."""

    value: float
    ratio: float | None = None


class Verdict(msgspec.Struct, frozen=True):
    """Whether this product keeps one goal; None when the run cannot tell."""

    goal: Goal
    kept: bool | None


def _round_value(metric: Metric, one_round: dict[str, Values], subject: str) -> float | None:
    values = one_round.get(subject, {})
    if not metric.minus_direct:
        return values.get(metric.key)
    own = values.get(metric.minus_direct)
    base = one_round.get(BASE_LINE, {}).get(metric.minus_direct)
    return None if own is None or base is None else own - base


def figure(run: Run, metric: Metric, subject: str) -> Figure | None:
    """Return one cell, None when it was not measured."""
    found = [_round_value(metric, one, subject) for one in run.rounds]
    values = [value for value in found if value is not None]
    if not values:
        return None
    pick = {"min": min, "median": median, "max": max}[metric.pick]
    ratios: list[float] = []
    if metric.with_ratio:
        for one, value in zip(run.rounds, found, strict=True):
            reference = _round_value(metric, one, REFERENCE)
            if value is not None and reference:
                ratios.append(value / reference)
    return Figure(pick(values), median(ratios) if ratios else None)


def _keeps(run: Run, metric: Metric, goal: Goal) -> bool | None:
    ours = figure(run, metric, goal.of or OURS)
    if ours is None:
        return None
    if goal.kind == "below":
        return ours.value < goal.limit
    if goal.kind == "ratio":
        return None if ours.ratio is None else ours.ratio <= goal.limit
    other = figure(run, metric, goal.other)
    if other is None:
        return None
    if goal.kind == "times":
        return ours.value <= goal.limit * other.value
    if goal.kind == "difference":
        return ours.value - other.value <= goal.limit
    return ours.value < other.value


def verdicts(run: Run, metric: Metric) -> list[Verdict]:
    """Judge every goal of one row."""
    return [Verdict(goal, _keeps(run, metric, goal)) for goal in metric.goals]


def measured(run: Run) -> list[Metric]:
    """Return the rows that any subject has a figure for."""
    return [
        metric
        for metric in METRICS
        if any(figure(run, metric, subject) is not None for subject in run.subjects)
    ]


def missed(run: Run) -> list[str]:
    """Return the titles of the rows whose goal this product misses."""
    return [
        f"{metric.title} ({verdict.goal.words()})"
        for metric in METRICS
        for verdict in verdicts(run, metric)
        if verdict.kept is False
    ]
