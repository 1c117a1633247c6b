"""Requests in order of arrival, answered from an empty cache: hits, and wrong ones among them (C-4, C-5).

Labels of the data stand for a judge of answers, and for the report; no rule reads them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from random import Random
from statistics import fmean

import numpy as np
import numpy.typing as npt

from benchmarks.cache.data import streams
from benchmarks.cache.embedders import Vectors, embedded
from gateway.core.caching import Entry, Found, Pool
from gateway.middleware.semantic_cache.online.features import FLOOR, NEAREST, features_of
from gateway.middleware.semantic_cache.online.pool import PoolModel
from gateway.middleware.semantic_cache.words.signature import Signature, signature
from gateway.middleware.semantic_cache.words.tier import tier_key

ALPHAS = (0.01, 0.02, 0.03)
THRESHOLDS = (0.8, 0.9, 0.95)
ORDERS = 10
COMPARED = 3
_NEIGHBOURS = 1024
_FEW = (1, 2, 3)
_GRID = tuple(0.7 + 0.01 * step for step in range(30))
_POOL = Pool("bench", "default", "tenant", "", "")


@dataclass(slots=True)
class Stream:
    """A stream, ready to be sent in any order: for each prompt its neighbours, the nearest first."""

    name: str
    prompts: list[str]
    answers: list[str]
    near: npt.NDArray[np.int32]
    similar: Vectors
    signatures: dict[str, Signature] = field(default_factory=dict)
    forms: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Outcome:
    """What one pass gave; of the second half of the requests apart."""

    requests: int = 0
    hits: int = 0
    wrong: int = 0
    late_requests: int = 0
    late_hits: int = 0
    late_wrong: int = 0
    compared: int = 0
    broken: int = 0

    def count(self, late: bool, hit: bool, wrong: bool) -> None:
        self.requests += 1
        self.hits += hit
        self.wrong += wrong
        self.late_requests += late
        self.late_hits += late and hit
        self.late_wrong += late and wrong

    @property
    def share(self) -> float:
        return self.hits / max(self.requests, 1)

    @property
    def late_share(self) -> float:
        return self.late_hits / max(self.late_requests, 1)

    @property
    def error(self) -> float:
        return self.wrong / max(self.hits, 1)


def read(name: str, rows: list[tuple[str, str]]) -> Stream:
    """Embed one stream and find the neighbours of its prompts."""
    answers, prompts = [row[0] for row in rows], [row[1] for row in rows]
    near, similar = _neighbours(embedded(prompts))
    signatures = {prompt: signature(prompt) for prompt in prompts}
    forms = [tier_key(prompt) for prompt in prompts]
    return Stream(name, prompts, answers, near, similar, signatures, forms)


def _neighbours(vectors: Vectors) -> tuple[npt.NDArray[np.int32], Vectors]:
    count = len(vectors)
    kept = min(_NEIGHBOURS, count - 1)
    near = np.zeros((count, kept), np.int32)
    similar = np.zeros((count, kept), np.float32)
    for start in range(0, count, 256):
        block = vectors[start : start + 256] @ vectors.T
        at = np.arange(len(block))
        block[at, at + start] = -1.0
        some = np.argpartition(-block, kept - 1, axis=1)[:, :kept]
        values = np.take_along_axis(block, some, axis=1)
        order = np.argsort(-values, axis=1, kind="stable")
        near[start : start + 256] = np.take_along_axis(some, order, axis=1)
        similar[start : start + 256] = np.take_along_axis(values, order, axis=1)
    return near, similar


def arrival(stream: Stream, seed: int) -> list[int]:
    """Return an order of arrival; 0 is that of the file."""
    order = list(range(len(stream.prompts)))
    if seed:
        Random(seed).shuffle(order)
    return order


def by_threshold(stream: Stream, threshold: float, seed: int) -> Outcome:
    """Serve whatever is nearest at this similarity or more."""
    outcome = Outcome()
    kept = np.zeros(len(stream.prompts), bool)
    half = len(stream.prompts) // 2
    for turn, at in enumerate(arrival(stream, seed)):
        found = np.flatnonzero(kept[stream.near[at]])[:1]
        hit = bool(len(found)) and float(stream.similar[at, found[0]]) >= threshold
        if hit:
            source = int(stream.near[at, found[0]])
            outcome.count(turn >= half, True, stream.answers[source] != stream.answers[at])
        else:
            kept[at] = True
            outcome.count(turn >= half, False, False)
    return outcome


class Learning:
    """One pass of the learned policy: what the cache does, with a judge that never errs."""

    def __init__(self, stream: Stream, alpha: float, seed: int, *, canonical: bool = False) -> None:
        self.model = PoolModel(alpha, seed=seed)
        self.outcome = Outcome()
        self._stream = stream
        self._order = arrival(stream, seed)
        self._kept = np.zeros(len(stream.prompts), bool)
        self._entries: dict[int, Entry] = {}
        self._truth: dict[str, str] = {}
        self._forms: dict[str, int] | None = {} if canonical else None

    def run(self) -> Outcome:
        """Send the stream."""
        half = len(self._order) // 2
        for turn, at in enumerate(self._order):
            hit, wrong = self._request(at)
            self.outcome.count(turn >= half, hit, wrong)
            if self.model.due and self.model.refit() == "broken":
                self.outcome.broken += 1
        return self.outcome

    def _request(self, at: int) -> tuple[bool, bool]:
        stream, truth = self._stream, self._stream.answers[at]
        form = stream.forms[at]
        if self._forms is not None and form and form in self._forms:
            return True, self._truth[self._forms[form]] != truth
        found = self._nearest(at)
        looked = features_of(found, stream.prompts[at], self.model.histories, self._read)
        if looked is None:
            self._keep(at, "")
            return False, False
        right = self._truth[looked.answer] == truth
        decision = self.model.decide(looked)
        if decision.action == "serve":
            return True, not right
        self.outcome.compared += 1
        if looked.veto:
            pass
        elif self.model.label(looked, right=right, weight=decision.weight) == "broken":
            self.outcome.broken += 1
        same = looked.answer if right else self._same(found, truth)
        self._keep(at, same)
        return False, False

    def _same(self, found: list[Found], truth: str) -> str:
        """Compare the new answer with the next best ones too: the same answer is not kept twice."""
        others = dict.fromkeys(each.entry.id for each in found if each.similarity >= FLOOR)
        for answer in list(others)[1:COMPARED]:
            self.outcome.compared += 1
            if self._truth[answer] == truth:
                return answer
        return ""

    def _nearest(self, at: int) -> list[Found]:
        near, similar = self._stream.near[at], self._stream.similar[at]
        places = np.flatnonzero(self._kept[near])[:NEAREST]
        return [Found(self._entries[int(near[p])], float(similar[p])) for p in places]

    def _keep(self, at: int, answer: str) -> None:
        """Keep a prompt, as an alias of an answer or with an answer of its own."""
        answer = answer or str(at)
        self._kept[at] = True
        self._truth.setdefault(answer, self._stream.answers[at])
        self._entries[at] = _entry(answer, self._stream.prompts[at])
        if self._forms is not None and self._stream.forms[at]:
            self._forms.setdefault(self._stream.forms[at], answer)

    def _read(self, text: str) -> Signature:
        return self._stream.signatures[text]


def _entry(answer: str, asked: str) -> Entry:
    return Entry(answer, _POOL, asked, "", "", b"", 0.0, 0.0)


@dataclass(slots=True)
class Row:
    """One policy on one stream, over all orders."""

    policy: str
    runs: list[Outcome]
    alpha: float | None = None

    @property
    def hits(self) -> float:
        return fmean(run.share for run in self.runs)

    @property
    def late(self) -> float:
        return fmean(run.late_share for run in self.runs)

    @property
    def errors(self) -> list[float]:
        return [run.error for run in self.runs]

    @property
    def kept(self) -> int:
        """In how many runs the bound held."""
        return sum(error <= (self.alpha or 0.0) for error in self.errors)

    def line(self) -> str:
        error = f"{fmean(self.errors):6.2%} {max(self.errors):6.2%}"
        kept = f"  {self.kept}/{len(self.runs)}" if self.alpha is not None else ""
        return f"  {self.policy:<34} {self.hits:6.1%} {self.late:6.1%}   {error}{kept}"


def report(folder: Path, orders: int = ORDERS, say: Callable[[str], None] = print) -> list[Row]:
    """Measure all streams of a folder and print a table for each; returns the rows of the learned policy."""
    learned: list[Row] = []
    for name, rows in streams(folder).items():
        stream = read(name, rows)
        say(f"{name}: {len(rows)} requests, one pass from empty, {orders} orders of arrival")
        say(f"  {'policy':<34} {'hits':>6} {'late':>6}   {'wrong':>6} {'worst':>6}  bound held")
        for row in _rows(stream, orders):
            say(row.line())
            if row.alpha is None:
                continue
            learned.append(row)
            equal = equal_error(stream, fmean(row.errors))
            if equal is not None:
                threshold, hits = equal
                ratio = row.hits / max(hits, 1e-9)
                say(
                    f"    {ratio:.1f} x the hits of a threshold as wrong ({threshold:.2f}: {hits:.1%})"
                )
    if learned:
        held, runs = sum(row.kept for row in learned), sum(len(row.runs) for row in learned)
        say(f"C-4: the bound held in {held} of {runs} runs")
    return learned


def equal_error(stream: Stream, error: float) -> tuple[float, float] | None:
    """Return the lowest threshold that is no more often wrong, and its share of hits."""
    for threshold in _GRID:
        runs = [by_threshold(stream, threshold, seed) for seed in _FEW]
        if fmean(run.error for run in runs) <= error:
            return threshold, fmean(run.share for run in runs)
    return None


def _rows(stream: Stream, orders: int) -> Iterator[Row]:
    seeds = range(1, orders + 1)
    for threshold in THRESHOLDS:
        runs = [by_threshold(stream, threshold, seed) for seed in seeds]
        yield Row(f"threshold {threshold:.2f}", runs)
    for alpha in ALPHAS:
        jobs = [(alpha, seed, False) for seed in seeds]
        yield Row(f"learned, at most {alpha:.0%} wrong", _run(stream, jobs), alpha)
    jobs = [(ALPHAS[1], seed, True) for seed in seeds]
    yield Row(f"the same at {ALPHAS[1]:.0%}, canonical form first", _run(stream, jobs))


_job: list[Stream] = []
"""The stream of the processes that are started next; they inherit it."""


def _run(stream: Stream, jobs: list[tuple[float, int, bool]]) -> list[Outcome]:
    _job[:] = [stream]
    with get_context("fork").Pool(os.cpu_count() or 1) as pool:
        return pool.starmap(_one, jobs, chunksize=1)


def _one(alpha: float, seed: int, canonical: bool) -> Outcome:
    return Learning(_job[0], alpha, seed, canonical=canonical).run()
