"""Which checks have to look at which texts: one search tells for most that there is nothing to be found."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import NamedTuple

from gateway.dialects.leaves import Leaf
from gateway.middleware.guardrail.check import Armed
from gateway.middleware.guardrail.checks.plain import settled
from gateway.middleware.guardrail.linear import Trigger

_APART = b"\n\0\n"
"""Stands between texts that are searched as one: no pattern that finds something goes over it unnoticed."""


class Span(NamedTuple):
    """Characters of a text that are to be put out of sight, and the mark in their place."""

    start: int
    end: int
    mark: str


@dataclass(slots=True)
class Part:
    """Texts that are read on as one: neighbours of one role; all others stand alone."""

    leaves: list[Leaf]
    text: str
    spans: list[Span] = field(default_factory=list[Span])


def parts_of(leaves: Sequence[Leaf]) -> list[Part]:
    """Return what is read on as one."""
    found: list[Part] = []
    before: Leaf | None = None
    for leaf in leaves:
        if before is not None and _is_read_on(before, leaf):
            found[-1].leaves.append(leaf)
            found[-1].text += leaf.text
        else:
            found.append(Part([leaf], leaf.text))
        before = leaf
    return found


def _is_read_on(before: Leaf, leaf: Leaf) -> bool:
    return leaf.spoken and before.spoken and before.role == leaf.role and before.group == leaf.group


class Battery:
    """The checks of one phase, with what tells which of them may find anything."""

    __slots__ = ("_any", "_is_told", "_readings", "_rows", "armed", "local", "remote")

    def __init__(self, armed: Sequence[Armed] = ()) -> None:
        self.armed = tuple(armed)
        self.local = tuple(each for each in self.armed if each.check.is_local)
        self.remote = tuple(each for each in self.armed if not each.check.is_local)
        self._rows = [(each, _trigger([each])) for each in self.local]
        readings = (way for each in self.local for way in each.check.readings)
        self._readings: tuple[Callable[[str], str], ...] = tuple(dict.fromkeys(readings))
        told = [each for each, trigger in self._rows if trigger is not None]
        self._any = _trigger(told) if told else None
        self._is_told = len(told) == len(self.armed)

    def beside(self, more: Sequence[Armed]) -> "Battery":
        """Return these with more checks behind them, which look at everything."""
        if not more:
            return self
        other = Battery()
        other.armed = (*self.armed, *more)
        other.local = (*self.local, *more)
        other.remote = self.remote
        other._rows = [*self._rows, *((each, None) for each in more)]
        other._readings, other._any = self._readings, self._any
        return other

    def __bool__(self) -> bool:
        return bool(self.armed)

    def finds_nothing(self, leaves: Sequence[Leaf]) -> bool:
        """Tell in one search that no check can find anything in texts; False where it takes more to know."""
        if self._any is None or not self._is_told:
            return False
        texts = [leaf.text for leaf in leaves]
        run: list[str] = []
        for before, leaf in pairwise(leaves):
            if leaf.spoken and before.role == leaf.role and _is_read_on(before, leaf):
                run = run or [before.text]
                run.append(leaf.text)
            elif run:
                texts.append("".join(run))
                run = []
        if run:
            texts.append("".join(run))
        joined = _APART.decode().join(texts)
        if self._any.find(joined.encode()) >= 0:
            return False
        if joined.isascii():
            return True
        read = _read(joined, self._readings)
        return not any(self._any.find(each.encode()) >= 0 for each in read)

    def looks(self, parts: Sequence[Part]) -> Iterator[tuple[Armed, Sequence[Part]]]:
        """Yield local checks in their order, each with the texts that it has to look at."""
        if not parts:
            return
        joined: _Joined | None = None
        if self._any is not None:
            joined = _Joined(parts, self._readings)
            if not joined.has(self._any):
                joined = None
        for armed, trigger in self._rows:
            if trigger is None:
                yield armed, parts
            elif joined is not None:
                suspects = joined.suspects(trigger)
                if suspects:
                    yield armed, suspects


def _trigger(checks: Sequence[Armed]) -> Trigger | None:
    """Return what finds where any of some checks may find something; None where that cannot be told."""
    patterns: list[str] = []
    for armed in checks:
        if armed.check.triggers is None:
            return None
        patterns += armed.check.triggers
    try:
        return Trigger(patterns)
    except ValueError:  # together they are larger than an engine may be
        return None


def _read(text: str, readings: Sequence[Callable[[str], str]]) -> set[str]:
    """Return what a text is read as, where that is not what is written."""
    quick = settled(text) if readings else text
    return ({quick} if quick is not None else {way(text) for way in readings}) - {text}


class _Joined:
    """All texts of some parts as one: each text by itself, and each part that is read on as one."""

    def __init__(self, parts: Sequence[Part], readings: Sequence[Callable[[str], str]]) -> None:
        self._parts = parts
        texts: list[str] = []
        owners: list[int] = []
        for at, part in enumerate(parts):
            leaves = part.leaves
            texts.append(part.text)
            owners.append(at)
            if len(leaves) > 1:
                texts += [leaf.text for leaf in leaves]
                owners += [at] * len(leaves)
        self._owners = owners
        self._texts = [text.encode() for text in texts]
        self._data = _APART.join(self._texts)
        self._read: list[bytes] = []
        if not self._data.isascii() and readings:
            written = self._data.decode()
            self._read = [each.encode() for each in _read(written, readings)]

    def has(self, trigger: Trigger) -> bool:
        """Tell whether anything matches, however the texts are read."""
        return trigger.find(self._data) >= 0 or any(trigger.find(each) >= 0 for each in self._read)

    def suspects(self, trigger: Trigger) -> Sequence[Part]:
        """Return the parts in which something matches; all where that is so as they are read."""
        if any(trigger.find(each) >= 0 for each in self._read):
            return self._parts
        place = trigger.find(self._data)
        if place < 0:
            return ()
        if len(self._parts) == 1:
            return self._parts
        sizes = [len(text) + len(_APART) for text in self._texts]
        starts = list(accumulate(sizes, initial=0))
        found: dict[int, None] = {}
        while place >= 0:
            at = bisect_right(starts, place + 1) - 1
            found[self._owners[at]] = None
            # On from the character before the next text, which a pattern may ask for: a match that goes over
            # the end of one text hides none that begins in the next.
            at += 1
            place = trigger.find(self._data, starts[at] - 1) if at < len(self._texts) else -1
        return [self._parts[at] for at in found]
