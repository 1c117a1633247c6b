"""Asks all checks of one phase side by side about all texts, and does what they say (K27): any block wins."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gateway.core.errors import GatewayError
from gateway.dialects.leaves import Leaf
from gateway.middleware.guardrail.check import About, Action, Check, CheckFailed, Finding

_log = logging.getLogger("gateway")

_JOINT = ""


class Armed(NamedTuple):
    """A check with what is to be done about what it finds. `name` is its label in answers, logs and metrics."""

    check: Check
    name: str
    action: Action


@dataclass(slots=True)
class Verdict:
    """What all checks of a phase say together: names of checks, by what they lead to."""

    blocked: list[str] = field(default_factory=list[str])
    flagged: list[str] = field(default_factory=list[str])
    redacted: list[str] = field(default_factory=list[str])
    failed: list[str] = field(default_factory=list[str])


class Span(NamedTuple):
    """Characters of a text that are to be put out of sight, and the mark in their place."""

    start: int
    end: int
    mark: str


def stretches(leaves: Sequence[Leaf]) -> list[list[Leaf]]:
    """Return the texts that are read on as one: neighbours of one role; all others stand alone."""
    found: list[list[Leaf]] = []
    for leaf in leaves:
        before = found[-1][-1] if found else None
        if before is not None and leaf.spoken and before.spoken and leaf.role == before.role:
            found[-1].append(leaf)
        else:
            found.append([leaf])
    return found


async def judge(
    checks: Sequence[Armed],
    leaves: Sequence[Leaf],
    about: About,
    timeout_s: float,
    *,
    write: bool = True,
) -> Verdict:
    """Look at all texts with all checks; with `write` what is to be redacted is changed in its leaves."""
    verdict = Verdict()
    parts = stretches(leaves)
    texts = [_JOINT.join(leaf.text for leaf in part) for part in parts]
    spans: dict[int, list[Span]] = {}
    for armed in checks:
        if armed.check.is_local:
            for at, text in enumerate(texts):
                place = about._replace(role=parts[at][0].role)
                found = [*armed.check.look(text, place)]
                if not found and len(parts[at]) > 1:
                    found = _alone(armed.check, parts[at], place)
                _note(verdict, armed, at, found, spans)
    remote = [armed for armed in checks if not armed.check.is_local]
    if remote:
        for armed, found in await ask_all(remote, texts, about, timeout_s, verdict):
            for at, findings in enumerate(found):
                _note(verdict, armed, at, findings, spans)
    if write and not verdict.blocked:
        for at, each in spans.items():
            _redact(parts[at], each, verdict)
    return verdict


async def ask_all(
    remote: Sequence[Armed],
    texts: Sequence[str],
    about: About,
    timeout_s: float,
    verdict: Verdict,
) -> list[tuple[Armed, Sequence[Sequence[Finding]]]]:
    """Ask all checks that ask somebody, side by side; those that failed are noted and left out."""
    answers = await asyncio.gather(*(_ask(armed, texts, about, timeout_s) for armed in remote))
    verdict.failed += [a.name for a, found in zip(remote, answers, strict=True) if found is None]
    return [(a, found) for a, found in zip(remote, answers, strict=True) if found is not None]


async def _ask(
    armed: Armed, texts: Sequence[str], about: About, timeout_s: float
) -> Sequence[Sequence[Finding]] | None:
    """Return what a check that asks somebody found; None when it failed or did not answer in time (W-GRD-11)."""
    try:
        async with asyncio.timeout(timeout_s):
            found = await armed.check.ask(texts, about)
    except (CheckFailed, GatewayError, TimeoutError) as failure:
        _log.warning("check %s failed: %s", armed.name, type(failure).__name__)
        return None
    return found if len(found) == len(texts) else None


def _alone(check: Check, part: Sequence[Leaf], about: About) -> list[Finding]:
    """Look at the texts of a stretch one by one, for what begins or ends with one of them."""
    found: list[Finding] = []
    start = 0
    for leaf in part:
        for each in check.look(leaf.text, about):
            end = each.end or len(leaf.text)
            found.append(Finding(each.label, start + each.start, start + end))
        start += len(leaf.text)
    return found


def _note(
    verdict: Verdict,
    armed: Armed,
    at: int,
    found: Sequence[Finding],
    spans: dict[int, list[Span]],
) -> None:
    if not found:
        return
    if armed.action == "block":
        verdict.blocked.append(armed.name)
    elif armed.action == "flag":
        verdict.flagged.append(armed.name)
    else:
        verdict.redacted.append(armed.name)
        spans.setdefault(at, []).extend(
            Span(each.start, each.end or 1 << 60, f"[{each.label}]") for each in found
        )


def _redact(part: Sequence[Leaf], spans: Sequence[Span], verdict: Verdict) -> None:
    """Put marks in the place of what was found; the part of a stretch that it begins in gets the mark."""
    if any(leaf.fixed for leaf in part):
        verdict.blocked.append(verdict.redacted[-1])  # what others refer to cannot be changed
        return
    merged = merge(spans)
    start = 0
    for leaf in part:
        end = start + len(leaf.text)
        inside = [span for span in merged if span.start < end and span.end > start]
        if inside:
            leaf.set(cut_out(leaf.text, start, inside))
        start = end


def cut_out(text: str, start: int, spans: Sequence[Span]) -> str:
    """Return a text that begins at `start` of the whole without what the spans cover."""
    out: list[str] = []
    at = 0
    for span in spans:
        first, last = max(span.start - start, 0), min(span.end - start, len(text))
        out.append(text[at:first])
        if span.start >= start:
            out.append(span.mark)
        at = last
    out.append(text[at:])
    return "".join(out)


def merge(spans: Sequence[Span]) -> list[Span]:
    """Return spans in order, each place covered once, the mark of the first."""
    merged: list[Span] = []
    for span in sorted(spans, key=lambda each: (each.start, -each.end)):
        if merged and span.start < merged[-1].end:
            if span.end > merged[-1].end:
                merged[-1] = merged[-1]._replace(end=span.end)
        else:
            merged.append(span)
    return merged
