"""Streams under a guardrail: what may still become a match is held back, what was judged goes on (K26)."""

from collections import deque
from collections.abc import Callable, Sequence

from gateway.core import codec
from gateway.core.call import Call
from gateway.core.reply import BeforeEnd, Stream
from gateway.core.usage import Usage
from gateway.dialects.deltas import Channel, Frame, Piece, frames
from gateway.dialects.leaves import Leaf, Tree, event_tree
from gateway.middleware.guardrail.check import About, Finding, Phase
from gateway.middleware.guardrail.verdict import (
    Armed,
    Span,
    Verdict,
    ask_all,
    cut_out,
    judge,
    merge,
)

Decide = Callable[[Call, Phase, Verdict], None]


class _Follower:
    """What both kinds of streams share: the stream inside, and hooks before the end."""

    def __init__(self, inner: Stream, about: About) -> None:
        self.status = inner.status
        self.headers = inner.headers
        self.length: int | None = None
        self.finished = False
        self._inner = inner
        self._about = about
        self._dialect = about.call.run.dialect_name
        self._hooks: list[BeforeEnd] = []

    @property
    def usage(self) -> Usage | None:
        """Return the tokens counted so far."""
        return self._inner.usage

    def before_end(self, hook: BeforeEnd) -> None:
        """Have a hook called before the last bytes go out."""
        self._hooks.append(hook)

    async def close(self) -> None:
        """End the stream inside."""
        await self._inner.close()

    async def _conclude(self) -> None:
        hooks, self._hooks = self._hooks, []
        for hook in hooks:
            await hook()


class Audited(_Follower):
    """Lets everything pass, and looks at all of it at the end."""

    def __init__(
        self,
        inner: Stream,
        checks: Sequence[Armed],
        about: About,
        note: Callable[[Call, Verdict], None],
        timeout_s: float,
    ) -> None:
        super().__init__(inner, about)
        self._checks = checks
        self._note = note
        self._timeout_s = timeout_s
        self._texts: dict[Channel, list[str]] = {}
        self._whole: list[str] = []

    async def next(self) -> bytes:
        """Return the next events as they came."""
        data = await self._inner.next()
        for frame in frames(self._dialect, data):
            for piece in frame.pieces:
                if piece.channel is None:
                    self._whole.append(piece.leaf.text)
                else:
                    self._texts.setdefault(piece.channel, []).append(piece.leaf.text)
        if self._inner.finished:
            self.finished = True
            await self._look()
            await self._conclude()
        return data

    async def _look(self) -> None:
        texts = [*map("".join, self._texts.values()), *self._whole]
        leaves = [Leaf(texts, at, text, "assistant") for at, text in enumerate(texts)]
        verdict = await judge(self._checks, leaves, self._about, self._timeout_s, write=False)
        self._note(self._about.call, verdict)


class _Held:
    """A piece on its way: where it stands in its channel's text, from 0."""

    __slots__ = ("end", "frame", "piece", "start")

    def __init__(self, frame: Frame, piece: Piece, start: int) -> None:
        self.frame = frame
        self.piece = piece
        self.start = start
        self.end = start + len(piece.leaf.text)


class _Text:
    """The text of one channel: what of it is known, judged, and to be cut out. Places count from its beginning."""

    __slots__ = ("base", "closed", "held", "is_json", "judged", "spans", "text")

    def __init__(self, *, is_json: bool) -> None:
        self.is_json = is_json
        self.base = 0
        self.text = ""
        self.judged = 0
        self.closed = False
        self.held: deque[_Held] = deque()
        self.spans: list[Span] = []

    @property
    def end(self) -> int:
        """Where the text ends so far."""
        return self.base + len(self.text)


class Windowed(_Follower):
    """Holds back what may still become a match, `window_chars` at the most, and lets the rest go on.

    Tool calls go on when they are complete. An event is never split: it leaves when all that it says was judged.
    """

    def __init__(
        self,
        inner: Stream,
        checks: Sequence[Armed],
        about: About,
        *,
        window_chars: int,
        timeout_s: float,
        decide: Decide,
    ) -> None:
        super().__init__(inner, about)
        self._local = [armed for armed in checks if armed.check.is_local]
        self._remote = [armed for armed in checks if not armed.check.is_local]
        self._window = window_chars
        self._timeout_s = timeout_s
        self._decide = decide
        self._texts: dict[Channel, _Text] = {}
        self._queue: deque[tuple[Frame, list[tuple[_Text, _Held]]]] = deque()
        self._told = Verdict()

    async def next(self) -> bytes:
        """Return the next events that were judged; raises PolicyError for what is blocked."""
        while True:
            data = await self._inner.next()
            for frame in frames(self._dialect, data):
                await self._take(frame)
            if self._inner.finished:
                await self._close(())
                out = self._leave()
                self.finished = True
                await self._conclude()
                return out
            out = self._leave()
            if out:
                return out

    async def _take(self, frame: Frame) -> None:
        """Put an event in line, and judge what can be judged with it."""
        waits: list[tuple[_Text, _Held]] = []
        alone: list[Piece] = []
        for piece in frame.pieces:
            if piece.channel is None:
                alone.append(piece)
                continue
            text = self._texts.get(piece.channel)
            if text is None or text.closed:
                text = self._texts[piece.channel] = _Text(is_json=piece.is_json)
            held = _Held(frame, piece, text.end)
            text.text += piece.leaf.text
            text.held.append(held)
            waits.append((text, held))
        self._queue.append((frame, waits))
        if alone:
            await self._judge_alone(frame, [piece.leaf for piece in alone])
        for text in dict.fromkeys(text for text, _ in waits):
            await self._judge(text, final=False)
        for channel in frame.closes:
            await self._close(channel)

    async def _judge_alone(self, frame: Frame, leaves: Sequence[Leaf]) -> None:
        verdict = await judge([*self._local, *self._remote], leaves, self._about, self._timeout_s)
        frame.changed = frame.changed or bool(verdict.redacted)
        self._decide(self._about.call, "output", verdict)

    async def _close(self, beginning: Channel) -> None:
        size = len(beginning)
        for channel, text in self._texts.items():
            if channel[:size] == beginning and not text.closed:
                text.closed = True
                await self._judge(text, final=True)

    async def _judge(self, text: _Text, *, final: bool) -> None:
        """Judge a text as far as it can be, whatever follows; all of it at its end."""
        if text.is_json:
            if final:
                await self._judge_json(text)
            return
        open_at = len(text.text)
        if not final:
            for armed in self._local:
                open_at = min(open_at, armed.check.open_from(text.text))
            waiting = text.end - text.judged
            if self._remote and waiting < self._window:
                return
            open_at = max(open_at, len(text.text) - self._window)
        new = text.base + open_at
        if new <= text.judged:
            return
        verdict = Verdict()
        for armed in self._local:
            found = [*armed.check.look(text.text, self._about._replace(before=text.base))]
            new = min(new, self._take_findings(text, armed, found, verdict, new))
        if self._remote:
            asked = await ask_all(self._remote, [text.text], self._about, self._timeout_s, verdict)
            for armed, found in asked:
                self._take_findings(text, armed, found[0], verdict, new)
        text.judged = max(text.judged, new)
        self._decide(self._about.call, "output", verdict)
        self._forget(text)

    def _take_findings(
        self, text: _Text, armed: Armed, found: Sequence[Finding], verdict: Verdict, new: int
    ) -> int:
        """Note what a check found in the part that is being judged; return where that part ends now."""
        for each in found:
            start, end = text.base + each.start, text.base + (each.end or len(text.text))
            if end <= text.judged:
                continue
            if start < new < end and start > text.judged:
                new = start  # it may go on: it is judged when it is complete
                continue
            if start >= new:
                continue
            if armed.action == "block":
                verdict.blocked.append(armed.name)
            elif armed.action == "flag":
                verdict.flagged.append(armed.name)
            else:
                verdict.redacted.append(armed.name)
                text.spans.append(Span(max(start, text.judged), end, f"[{each.label}]"))
        return new

    async def _judge_json(self, text: _Text) -> None:
        """Judge the arguments of a call by what they say; they are written anew where something is cut out."""
        try:
            tree = event_tree(b'{"arguments":' + (text.text or "{}").encode() + b"}")
        except (codec.JSONError, RecursionError, UnicodeEncodeError):
            tree = Tree(None, [Leaf([text.text], 0, text.text, "assistant")])
        verdict = await judge(
            [*self._local, *self._remote], tree.leaves, self._about, self._timeout_s
        )
        self._decide(self._about.call, "output", verdict)
        text.judged = text.end
        if verdict.redacted:
            value = codec.as_object(tree.value)
            written = (
                codec.encode(value["arguments"]).decode()
                if value is not None
                else tree.leaves[0].text
            )
            for number, held in enumerate(text.held):
                held.piece.leaf.set(written if number == 0 else "")
                held.frame.changed = True

    def _forget(self, text: _Text) -> None:
        """Keep no more of what was judged than later findings may need to see."""
        keep = text.judged - self._window
        if keep > text.base:
            text.text = text.text[keep - text.base :]
            text.base = keep

    def _leave(self) -> bytes:
        """Return the events at the head of the line that were judged."""
        out: list[bytes] = []
        while self._queue:
            frame, waits = self._queue[0]
            if any(held.end > text.judged for text, held in waits):
                break
            for text, held in waits:
                self._cut(text, held)
            out.append(frame.encode())
            self._queue.popleft()
        return b"".join(out)

    def _cut(self, text: _Text, held: _Held) -> None:
        """Cut what was found out of a piece that is about to leave."""
        text.held.popleft()
        if text.is_json or not text.spans:
            return
        spans = merge(text.spans)
        inside = [span for span in spans if span.start < held.end and span.end > held.start]
        if inside:
            held.piece.leaf.set(cut_out(held.piece.leaf.text, held.start, inside))
            held.frame.changed = True
        text.spans = [span for span in spans if span.end > held.end]
