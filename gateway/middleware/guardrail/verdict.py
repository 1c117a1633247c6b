"""Asks all checks of one phase about all texts, and does what they say (K27): any block wins, whatever the order.

What is looked at here comes first: what is to be blocked is told to nobody, and others are asked about the texts as
they will be sent. All of those are asked side by side, under one deadline.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from gateway.core.errors import GatewayError
from gateway.dialects.leaves import Leaf
from gateway.middleware.guardrail.check import About, Armed, Check, CheckFailed, Finding
from gateway.middleware.guardrail.sieve import Battery, Part, Span, parts_of

_log = logging.getLogger("gateway")
_END = 1 << 60


class Masks:
    """Marks that stand for what was taken out of the texts of one run, to be put back into its answers."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.texts: Sequence[str] = ()
        """What is said anyway: no mark may be a part of it."""
        self._marks: dict[tuple[str, str], str] = {}

    def mark(self, label: str, value: str) -> str:
        """Return the mark of a value, the same for the same value."""
        known = self._marks.get((label, value))
        if known is not None:
            return known
        number = len(self._marks) + 1
        while any(f"[{label}_{number}]" in text for text in (*self.values, *self.texts)):
            number += 1
        mark = f"[{label}_{number}]"
        self._marks[label, value] = mark
        self.values[mark] = value
        return mark


@dataclass(slots=True)
class Verdict:
    """What all checks of a phase say together: names of checks, by what they lead to.

    `changed`: texts were written anew.
    """

    blocked: list[str] = field(default_factory=list[str])
    flagged: list[str] = field(default_factory=list[str])
    redacted: list[str] = field(default_factory=list[str])
    failed: list[str] = field(default_factory=list[str])
    changed: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be told."""
        return not (self.blocked or self.flagged or self.redacted or self.failed)


async def judge(
    checks: Battery,
    leaves: Sequence[Leaf],
    about: About,
    timeout_s: float,
    *,
    write: bool = True,
    masks: Masks | None = None,
) -> Verdict:
    """Look at all texts with all checks; with `write` what is to be redacted is changed in its leaves."""
    verdict = Verdict()
    if checks.finds_nothing(leaves):
        return verdict
    parts = parts_of(leaves)
    for armed, suspects in checks.looks(parts):
        _look(armed, suspects, about, verdict, masks)
    remote = checks.remote
    if verdict.blocked:
        return verdict
    if verdict.changed:
        _redact(parts, verdict, write=write)
    if remote and not verdict.blocked:
        await _ask_about(remote, parts, about, timeout_s, verdict, masks)
        if not verdict.blocked:
            _redact(parts, verdict, write=write)
    return verdict


async def _ask_about(
    remote: Sequence[Armed],
    parts: Sequence[Part],
    about: About,
    timeout_s: float,
    verdict: Verdict,
    masks: Masks | None,
) -> None:
    """Ask each check about the texts of those it looks at."""
    said = [part for part in parts if _is_said(part)]
    asked = [
        [part for part in said if roles is None or part.leaves[0].role in roles]
        for roles in (armed.check.roles for armed in remote)
    ]
    questions = [[part.text for part in each] for each in asked]
    answers = await ask_all(remote, questions, about, timeout_s, verdict)
    for armed, each, found in zip(remote, asked, answers, strict=True):
        for part, findings in zip(each, found, strict=True):
            _note(verdict, armed, part, findings, masks)


def _is_said(part: Part) -> bool:
    """Whether others are asked about it: names and ids alone say nothing."""
    first = part.leaves[0]
    return not first.fixed or first.enclosed or " " in part.text


def _look(
    armed: Armed, parts: Sequence[Part], about: About, verdict: Verdict, masks: Masks | None
) -> None:
    look = armed.check.look
    role, key = "", ""
    for part in parts:
        leaves = part.leaves
        first = leaves[0]
        if first.role != role or first.key != key:
            role, key = first.role, str(first.key)
            about = about._replace(role=role, key=key)
        found = look(part.text, about)
        if len(leaves) > 1:
            found = [*found, *_alone(armed.check, leaves, about)]
        if found:
            _note(verdict, armed, part, found, masks)


async def ask_all(
    remote: Sequence[Armed],
    questions: Sequence[Sequence[str]],
    about: About,
    timeout_s: float,
    verdict: Verdict,
) -> list[Sequence[Sequence[Finding]]]:
    """Ask all checks that ask somebody, side by side, each its own texts; those that fail are noted."""
    asked = zip(remote, questions, strict=True)
    answers = await asyncio.gather(*(_ask(*each, about, timeout_s) for each in asked))
    verdict.failed += [a.name for a, found in zip(remote, answers, strict=True) if found is None]
    return [
        [()] * len(texts) if found is None else found
        for texts, found in zip(questions, answers, strict=True)
    ]


async def _ask(
    armed: Armed, texts: Sequence[str], about: About, timeout_s: float
) -> Sequence[Sequence[Finding]] | None:
    """Return what a check that asks somebody found; None when it failed or did not answer in time (W-GRD-11)."""
    if not texts:
        return ()
    try:
        limit = asyncio.get_running_loop().time() + timeout_s
        async with asyncio.timeout_at(min(limit, about.call.run.deadline)):
            found = await armed.check.ask(texts, about)
    except (CheckFailed, GatewayError, TimeoutError) as failure:
        _log.warning("check %s failed: %s", armed.name, _cause(failure))
        return None
    return found if len(found) == len(texts) else None


def _cause(failure: Exception) -> str:
    """Return why a check failed, for the log: a private address too (`egress: ...`)."""
    if isinstance(failure, GatewayError) and failure.detail:
        return f"{failure.code}: {failure.detail}"
    return type(failure).__name__


def _alone(check: Check, part: Sequence[Leaf], about: About) -> list[Finding]:
    """Look at the texts of a stretch one by one, for what begins or ends with one of them."""
    found: list[Finding] = []
    start = 0
    for leaf in part:
        for each in check.look(leaf.text, about):
            end = each.end or len(leaf.text)
            found.append(each._replace(start=start + each.start, end=start + end))
        start += len(leaf.text)
    return found


def _note(
    verdict: Verdict,
    armed: Armed,
    part: Part,
    found: Sequence[Finding],
    masks: Masks | None,
) -> None:
    if not found:
        return
    if armed.action == "block":
        verdict.blocked.append(armed.name)
    elif armed.action == "flag":
        verdict.flagged.append(armed.name)
    else:
        tell(verdict, found[0], armed)
        for each in found:
            end = each.end or _END
            mark = mark_of(each, armed, part.text[each.start : end], masks)
            part.spans.append(Span(each.start, end, mark))


def tell(verdict: Verdict, found: Finding, armed: Armed) -> None:
    """Note that something is to be taken out, or only put back."""
    verdict.changed = True
    if found.mark is None:
        verdict.redacted.append(armed.name)


def mark_of(found: Finding, armed: Armed, value: str, masks: Masks | None) -> str:
    """Return what takes the place of what was found."""
    if found.mark is not None:
        return found.mark
    if masks is not None and armed.restore:
        return masks.mark(found.label, value)
    return f"[{found.label}]"


def _redact(parts: Sequence[Part], verdict: Verdict, *, write: bool) -> None:
    """Put marks in the place of what was found; the text of a stretch that it begins in gets the mark."""
    for part in parts:
        if not part.spans:
            continue
        spans, part.spans = merge(part.spans), []
        if any(leaf.fixed for leaf in part.leaves):
            if verdict.redacted:
                verdict.blocked.append(
                    verdict.redacted[-1]
                )  # what others refer to cannot be changed
            continue
        start = 0
        texts: list[str] = []
        for leaf in part.leaves:
            end = start + len(leaf.text)
            inside = [span for span in spans if span.start < end and span.end > start]
            texts.append(cut_out(leaf.text, start, inside) if inside else leaf.text)
            if inside and write:
                leaf.set(texts[-1])
            start = end
        part.text = "".join(texts)


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
