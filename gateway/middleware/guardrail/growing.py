"""The text of one channel of a stream: what of it is known, judged, and to be cut out (K26)."""

from collections import deque
from collections.abc import Sequence

from gateway.dialects.deltas import Frame, Piece
from gateway.middleware.guardrail.check import About, Armed, Finding
from gateway.middleware.guardrail.sieve import Span
from gateway.middleware.guardrail.verdict import (
    Verdict,
    ask_all,
    cut_out,
    mark_of,
    merge,
    tell,
)

_LONGEST = 65_536
"""A match that is longer than this is no longer followed: it cannot be judged."""


class Held:
    """A piece on its way: where it stands in its channel's text, from 0."""

    __slots__ = ("end", "frame", "piece", "start")

    def __init__(self, frame: Frame, piece: Piece, start: int) -> None:
        self.frame = frame
        self.piece = piece
        self.start = start
        self.end = start + len(piece.leaf.text)


class Growing:
    """The text of one channel. Places count from its beginning; `text` begins at `base`.

    What was found and reaches over the part that is judged grows with the text: it stays known from its beginning.
    """

    __slots__ = (
        "_anchor",
        "_held",
        "_said",
        "_shown",
        "_spans",
        "base",
        "closed",
        "is_json",
        "judged",
        "text",
    )

    def __init__(self, *, is_json: bool) -> None:
        self.is_json = is_json
        self.base = 0
        self.text = ""
        self.judged = 0
        self.closed = False
        self._anchor = -1
        self._held: deque[Held] = deque()
        self._spans: list[Span] = []
        self._said: list[str] = []
        self._shown: list[str] = []

    @property
    def end(self) -> int:
        """Where the text ends so far."""
        return self.base + len(self.text)

    def said(self) -> str:
        """Return all of the text as it came."""
        return "".join(self._said)

    def shown(self) -> str:
        """Return all of the text as it leaves; after its end alone."""
        return "".join(self._shown) + "".join(
            self._after(held) for held in self._held if not self.is_json
        )

    def take(self, frame: Frame, piece: Piece) -> Held:
        """Put the next piece behind what is known."""
        held = Held(frame, piece, self.end)
        self.text += piece.leaf.text
        self._said.append(piece.leaf.text)
        self._held.append(held)
        return held

    def open_from(self, checks: Sequence[Armed], window: int) -> int:
        """Return from which character of `text` on something may still become a match, `window` at the most."""
        text = self.text
        size = len(text)
        open_at = size
        for armed in checks:
            found = armed.check.open_from(text)
            open_at = min(open_at, found)
        return max(open_at, size - window)

    def note(self, armed: Armed, found: Sequence[Finding], new: int, verdict: Verdict) -> None:
        """Take what a check found that begins before `new`: that much is being judged."""
        for each in found:
            start, end = self.base + each.start, self.base + (each.end or len(self.text))
            if end <= self.judged or start >= new:
                continue
            if not each.end:
                start = max(start, self.judged)
            grows = start < self.judged
            if end >= new and armed.check.reach:
                self._anchor = start if self._anchor < 0 else min(self._anchor, start)
            if armed.action == "block":
                verdict.blocked.append(armed.name)
            elif armed.action == "flag":
                if not grows:
                    verdict.flagged.append(armed.name)
            else:
                if not grows:
                    tell(verdict, each, armed)
                value = self.text[each.start : each.end or len(self.text)]
                mark = "" if grows else mark_of(each, armed, value, None)
                self._spans.append(Span(max(start, self.judged), end, mark))

    async def ask(
        self, checks: Sequence[Armed], about: About, timeout_s: float, new: int, verdict: Verdict
    ) -> None:
        """Ask others about the text, as it will be seen."""
        spans = merge(self._spans)
        shown = cut_out(self.text, self.base, spans) if spans else self.text
        answers = await ask_all(checks, [[shown]] * len(checks), about, timeout_s, verdict)
        for armed, found in zip(checks, answers, strict=True):
            places = found[0]
            if (
                spans
            ):  # places in a text that was cut are not places of this one: it is taken as a whole
                places = [each._replace(start=0, end=0) for each in places]
            self.note(armed, places, new, verdict)

    def forget(self, window: int) -> bool:
        """Keep no more of what was judged than later findings need; True when a match grows beyond all bounds."""
        keep = self.judged - window
        if self._anchor >= 0:
            keep = min(keep, self._anchor)
        self._anchor = -1
        if keep > self.base:
            self.text = self.text[keep - self.base :]
            self.base = keep
        return self.judged - self.base > _LONGEST + window

    def replace(self, text: str) -> None:
        """Write all of a text anew that has not left: its first piece holds it all."""
        self.judged = self.end
        if text == self.said():
            self._shown = [text]
            return
        self._shown = [text]
        for number, held in enumerate(self._held):
            held.piece.leaf.set(text if number == 0 else "")
            held.frame.changed = True

    def cut(self, held: Held) -> None:
        """Cut what was found out of a piece that is about to leave."""
        self._held.popleft()
        if self.is_json:
            return
        after = self._after(held)
        self._shown.append(after)
        if after is not held.piece.leaf.text:
            held.piece.leaf.set(after)
            held.frame.changed = True
        if self._spans:
            self._spans = [span for span in self._spans if span.end > held.end]

    def _after(self, held: Held) -> str:
        """Return what a piece says without what was found."""
        text = held.piece.leaf.text
        if not self._spans:
            return text
        spans = merge(self._spans)
        inside = [span for span in spans if span.start < held.end and span.end > held.start]
        return cut_out(text, held.start, inside) if inside else text
