"""When a similar question may be answered from the cache: learned and certified for one pool by its own labels."""

from collections import OrderedDict, deque
from collections.abc import Mapping
from math import exp, inf
from random import Random
from typing import Literal, NamedTuple

import numpy as np

from gateway.core import codec
from gateway.middleware.semantic_cache.online.bound import is_above
from gateway.middleware.semantic_cache.online.certify import Learned, learn
from gateway.middleware.semantic_cache.online.features import NAMES, Features, History, Seen
from gateway.middleware.semantic_cache.online.table import Rows, Table

Action = Literal["serve", "explore", "miss"]
Change = Literal["certified", "broken"]
CHANGES: tuple[Change, ...] = ("certified", "broken")

ENOUGH = 400
"""Labels before the first near hit."""
REFIT_EVERY = 150
EXPLORED = 0.05
EXPLORED_LATER = 0.01
CLEAN = 600
"""Right audits, with no more wrong ones than allowed, after which fewer hits are explored."""
ALARM = 0.99
"""How sure it must be that too many audits were wrong before near hits end at once."""
AFRESH = 1000
"""The newest labels that decide whether a pool that fell is certified again."""
SHARED = 2000
"""Labels that replicas share."""
_ANSWERS = 20_000
_REMEMBERED = 2000
_MARK_BITS = 64
_FEWEST_WRONG = 2
_MOST_ODDS = 30.0


class Decision(NamedTuple):
    """What to do with a candidate. `weight` is what a label of this request counts."""

    action: Action
    score: float
    weight: float


class Saved(codec.Struct, frozen=True, array_like=True):
    """The labels of a pool as they are kept: rows of half precision with `right` and the weight at their end."""

    names: tuple[str, ...]
    rows: bytes
    marks: bytes
    histories: dict[str, tuple[float, float]]
    fresh: int | None


_decode = codec.Decoder(Saved).decode


class PoolModel:
    """Decides on near hits of one pool, so that at most `alpha` of those served are wrong.

    Texts never come here: features, labels and ids of entries only. Not for several threads; `learn` may run in one
    of its own on `rows()` while labels go on coming in.
    """

    def __init__(self, alpha: float = 0.01, *, seed: int | str = 0) -> None:
        self.alpha = alpha
        self._random = Random(seed)  # noqa: S311  it picks what is audited; nothing secret depends on it
        self._table = Table()
        self._histories: OrderedDict[str, History] = OrderedDict()
        self._learned: Learned | None = None
        self._unfitted = 0
        self._fresh: int | None = None
        self._audits: deque[bool] = deque(maxlen=CLEAN)
        self._clean = 0
        self._served = 0.0
        self._reported = 0.0
        self._broken = 0.0

    @property
    def certified(self) -> bool:
        """Whether there are near hits at present."""
        return self._learned is not None and self._learned.cut < inf

    @property
    def fallen(self) -> bool:
        """Whether the bound was broken and has not been certified again: no near hits at all."""
        return self._fresh is not None and not self.certified

    @property
    def labels(self) -> int:
        """How many labels there have been."""
        return self._table.total

    @property
    def histories(self) -> Mapping[str, History]:
        """What labels said of each answer, by the entry's id."""
        return self._histories

    @property
    def due(self) -> bool:
        """Whether enough labels are new for another fit."""
        return self._unfitted >= REFIT_EVERY and self._table.total >= ENOUGH

    @property
    def explored(self) -> float:
        """The share of would-be hits that are explored."""
        return EXPLORED_LATER if self._clean >= CLEAN else EXPLORED

    def estimate(self) -> float:
        """Return the share of wrong near hits that labels tell of; when they broke the bound, the share that did.

        0.0 before there were any to serve.
        """
        if self.fallen:
            return self._broken
        return self._learned.share if self._learned is not None and self.certified else 0.0

    def bound(self) -> float:
        """Return the upper bound on that share at 90 %; 1.0 while there is none."""
        return self._learned.bound if self._learned is not None else 1.0

    def decide(self, features: Features, *, trusted: bool = False) -> Decision:
        """Decide on a candidate that the guards let pass.

        `trusted`: another verifier would serve it, so that no score is needed; it is audited all the same, and
        not served while the pool has `fallen`.
        """
        learned = self._learned
        if features.veto:
            return Decision("miss", 0.0, 1.0)
        score = -inf
        if learned is not None and len(features.values) == len(learned.model.slope):
            score = float(learned.model.scores(np.array(features.values)))
        chance = 1.0 / (1.0 + exp(-min(max(score, -_MOST_ODDS), _MOST_ODDS)))
        clears = learned is not None and score >= learned.cut
        if not clears and not (trusted and not self.fallen):
            return Decision("miss", chance, 1.0)
        if self._random.random() < self.explored:
            return Decision("explore", chance, 1.0 / self.explored)
        return Decision("serve", chance, 1.0)

    def label(
        self, features: Features | Seen, *, right: bool, weight: float = 1.0
    ) -> Change | None:
        """Take in whether the answer was right; `broken` when too many audits were wrong.

        What the guards refuse is no label. Call `refit` (or `learn` and `adopt`) when `due` afterwards.
        """
        if features.veto:
            return None
        mark = self._random.getrandbits(_MARK_BITS)
        if not self._table.add(features.values, weight, right=right, mark=mark):
            self._restart()
            self._table.add(features.values, weight, right=right, mark=mark)
        past = self._histories.pop(features.answer, History())
        self._histories[features.answer] = History(past.right + right, past.wrong + (not right))
        if len(self._histories) > _ANSWERS:
            self._histories.popitem(last=False)
        self._counted(1)
        return self._audited(right=right) if weight > 1.0 else None

    def served(self) -> None:
        """Take note of a near hit that was served; long past ones count less and less."""
        self._served += 1
        if self._served > _REMEMBERED:
            self._served /= 2
            self._reported /= 2

    def report(self, features: Features | Seen) -> Change | None:
        """Take in that a near hit which was served was wrong, as somebody said; `broken` when that is too often.

        Nobody reports what was right: all else that was served counts as that, so that the bound breaks no sooner
        than it should.
        """
        self.label(features, right=False)
        self._reported += 1
        self._served = max(self._served, self._reported)
        if self.fallen or self._reported < _FEWEST_WRONG:
            return None
        if not is_above(self._reported, self._served, self.alpha, ALARM):
            return None
        self._fall_back()
        return "broken"

    def refit(self) -> Change | None:
        """Fit at once, on this thread."""
        fresh = self.fresh
        return self.adopt(learn(self.rows(), self.alpha, fresh), fresh)

    def rows(self) -> Rows:
        """Return a copy of the labels, for `learn` on another thread."""
        self._unfitted = 0
        return self._table.rows()

    @property
    def fresh(self) -> int | None:
        """How many of the newest labels count for a certificate; None for all.

        After a fall those from before it do not, and what went wrong is forgotten in time.
        """
        if self._fresh is None or self.certified:
            return self._fresh
        return min(self._fresh, AFRESH)

    def adopt(self, learned: Learned, fresh: int | None = None) -> Change | None:
        """Decide by this model from now on; tell when that begins or ends near hits.

        `fresh` is what the property said when the fit began: a fall since then outlives it.
        """
        was = self.certified
        share = self.estimate()
        if self._fresh is not None and (
            fresh is None or self._fresh < fresh or self._fresh < ENOUGH
        ):
            learned = learned._replace(cut=inf, share=1.0, bound=1.0)
        self._learned = learned
        if self.certified == was:
            return None
        if was:
            self._broken = max(share, self.alpha)
            self._fresh = len(self._table) if self._fresh is None else self._fresh
            return "broken"
        if self._fresh is not None:
            self._fresh = min(self._fresh, AFRESH)
        return "certified"

    def save(self, most: int = SHARED) -> bytes:
        """Write the newest labels and histories: numbers alone, at most `most` of each."""
        rows, count = self._table.rows(most), min(len(self._table), most)
        numbers = np.column_stack((rows.features, rows.right, rows.weights)).astype("<f2")
        marks = np.array(self._table.marks, "<u8")[-count:] if count else np.zeros(0, "<u8")
        histories = list(self._histories.items())[-most:]
        return codec.encode(
            Saved(
                NAMES,
                numbers.tobytes(),
                marks.tobytes(),
                {answer: (past.right, past.wrong) for answer, past in histories},
                self._fresh,
            )
        )

    def merge(self, data: bytes) -> int:
        """Take in labels of another process, or of an earlier one; return how many were new.

        What cannot be read, or has other features, is left out.
        """
        try:
            saved = _decode(data)
            numbers = np.frombuffer(saved.rows, "<f2").reshape(-1, len(NAMES) + 2)
            marks = [int(mark) for mark in np.frombuffer(saved.marks, "<u8")]
        except (codec.JSONError, ValueError):
            return 0
        if saved.names != NAMES or len(marks) != len(numbers) or not np.isfinite(numbers).all():
            return 0
        if not len(self._table):
            self._fresh = saved.fresh if saved.fresh is None else saved.fresh - len(numbers)
        known, new = set(self._table.marks), 0
        for mark, row in zip(marks, numbers.astype(np.float64).tolist(), strict=True):
            if mark not in known and row[-1] > 0:
                new += self._table.add(row[:-2], row[-1], right=row[-2] > 0, mark=mark)
        for answer, (right, wrong) in saved.histories.items():
            past = self._histories.get(answer, History())
            self._histories[answer] = History(max(past.right, right), max(past.wrong, wrong))
        while len(self._histories) > _ANSWERS:
            self._histories.popitem(last=False)
        self._counted(new)
        return new

    def _counted(self, labels: int) -> None:
        self._unfitted += labels
        if self._fresh is not None:
            self._fresh += labels

    def _audited(self, *, right: bool) -> Change | None:
        self._audits.append(right)
        wrong = len(self._audits) - sum(self._audits)
        is_clean = wrong <= self.alpha * len(self._audits)
        self._clean = self._clean + right if is_clean else 0
        if self.fallen or wrong < _FEWEST_WRONG:
            return None
        if not is_above(wrong, len(self._audits), self.alpha, ALARM):
            return None
        self._fall_back()
        return "broken"

    def _fall_back(self) -> None:
        """Serve no near hit until as many labels as at first have come in, and hold."""
        audited = len(self._audits)
        wrong = (audited - sum(self._audits)) / audited if audited else 0.0
        self._broken = max(wrong, self._reported / self._served if self._served else 0.0)
        if self._learned is not None:
            self._learned = self._learned._replace(cut=inf, share=1.0, bound=1.0)
        self._fresh = 0
        self._forget_hits()

    def _restart(self) -> None:
        """Forget labels of another kind of features."""
        self._table = Table()
        self._learned = None
        self._unfitted = 0
        self._fresh = None
        self._forget_hits()

    def _forget_hits(self) -> None:
        self._audits.clear()
        self._clean = 0
        self._served = self._reported = 0.0
