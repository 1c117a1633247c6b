"""Streams under a guardrail: what may still become a match is held back, what was judged goes on (K26)."""

from collections import deque
from collections.abc import Callable, Sequence

from gateway.core.call import Call
from gateway.core.reply import BeforeEnd, Stream
from gateway.core.usage import Usage
from gateway.dialects.deltas import Channel, Frame, Piece, frames
from gateway.dialects.leaves import Leaf, json_tree
from gateway.middleware.guardrail.check import About, Phase
from gateway.middleware.guardrail.growing import Growing, Held
from gateway.middleware.guardrail.sieve import Battery
from gateway.middleware.guardrail.verdict import Verdict, judge

Decide = Callable[[Call, Phase, Verdict], None]
Tally = Callable[[int, int], None]
"""Told once how many characters were judged and how many left."""


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
        checks: Battery,
        about: About,
        note: Callable[[Call, Verdict], None],
        timeout_s: float,
    ) -> None:
        super().__init__(inner, about)
        self._checks = checks
        self._note = note
        self._timeout_s = timeout_s
        self._texts: dict[Channel, list[str]] = {}
        self._whole: dict[str, None] = {}

    async def next(self) -> bytes:
        """Return the next events as they came."""
        data = await self._inner.next()
        for frame in frames(self._dialect, data):
            for piece in frame.pieces:
                if piece.channel is None:
                    self._whole[piece.leaf.text] = None
                else:
                    self._texts.setdefault(piece.channel, []).append(piece.leaf.text)
        if self._inner.finished:
            self.finished = True
            await self._look()
            await self._conclude()
        return data

    async def _look(self) -> None:
        leaves: list[Leaf] = []
        for channel, pieces in self._texts.items():
            text = "".join(pieces)
            self._whole.pop(text, None)
            is_json = channel[-1] == "json"
            leaves += json_tree(text).leaves if is_json else [_leaf(text)]
        leaves += map(_leaf, self._whole)
        verdict = await judge(self._checks, leaves, self._about, self._timeout_s, write=False)
        self._note(self._about.call, verdict)


def _leaf(text: str) -> Leaf:
    return Leaf([text], 0, text, "assistant")


class Windowed(_Follower):
    """Holds back what may still become a match, `window_chars` at the most, and lets the rest go on.

    Tool calls go on when they are complete. An event is never split: it leaves when all that it says was judged.
    """

    def __init__(
        self,
        inner: Stream,
        checks: Battery,
        about: About,
        *,
        window_chars: int,
        timeout_s: float,
        decide: Decide,
        tally: Tally,
    ) -> None:
        super().__init__(inner, about)
        self._checks = checks
        self._local = checks.local
        self._remote = checks.remote
        self._window = window_chars
        self._timeout_s = timeout_s
        self._decide = decide
        self._tally = tally
        self._texts: dict[Channel, Growing] = {}
        self._queue: deque[tuple[Frame, list[tuple[Growing, Held]]]] = deque()
        self._known: dict[str, str] = {}
        """Whole texts that were judged, and what became of them: formats repeat what they have said (K26)."""
        self._found = False
        self._told = False
        self.judged = 0
        self.left = 0

    async def next(self) -> bytes:
        """Return the next events that were judged; raises PolicyError for what is blocked."""
        while True:
            data = await self._inner.next()
            for frame in frames(self._dialect, data):
                await self._take(frame)
            if self._inner.finished:
                await self._close(())
                if not self._found:
                    self._decide(self._about.call, "output", Verdict())
                out = self._leave()
                self.finished = True
                self._tell_tally()
                await self._conclude()
                return out
            out = self._leave()
            if out:
                return out

    async def close(self) -> None:
        """End the stream inside."""
        self._tell_tally()
        await self._inner.close()

    def _tell_tally(self) -> None:
        if not self._told:
            self._told = True
            self._tally(self.judged, self.left)

    async def _take(self, frame: Frame) -> None:
        """Put an event in line, and judge what can be judged with it."""
        waits: list[tuple[Growing, Held]] = []
        alone: list[Piece] = []
        for piece in frame.pieces:
            if piece.channel is None:
                alone.append(piece)
                continue
            text = self._texts.get(piece.channel)
            if text is None or text.closed:
                text = self._texts[piece.channel] = Growing(is_json=piece.is_json)
            waits.append((text, text.take(frame, piece)))
        self._queue.append((frame, waits))
        if frame.unread:
            self._settle(Verdict(failed=["event"]))
        for text in {id(text): text for text, _ in waits}.values():
            await self._judge(text, final=False)
        for channel in frame.closes:
            await self._close(channel)
        if alone:
            await self._judge_alone(frame, [piece.leaf for piece in alone])

    def _settle(self, verdict: Verdict) -> None:
        if not verdict.is_empty:
            self._found = True
            self._decide(self._about.call, "output", verdict)

    async def _judge_alone(self, frame: Frame, leaves: Sequence[Leaf]) -> None:
        """Judge texts that are whole as they stand, each text once."""
        new: list[tuple[str, Leaf]] = []
        for leaf in leaves:
            known = self._known.get(leaf.text)
            if known is None:
                new.append((leaf.text, leaf))
            elif known != leaf.text:
                leaf.set(known)
                frame.changed = True
        if not new:
            return
        plain = [leaf for _, leaf in new if leaf.key != "arguments"]
        verdict = await judge(self._checks, plain, self._about, self._timeout_s)
        frame.changed = frame.changed or verdict.changed
        self._settle(verdict)
        for before, leaf in new:
            if leaf.key == "arguments":
                leaf.set(await self._judge_json(leaf.text))
                frame.changed = frame.changed or leaf.text != before
            self._known[before] = leaf.text
            self.judged += len(before)
            self.left += len(before)

    async def _close(self, beginning: Channel) -> None:
        size = len(beginning)
        for channel, text in self._texts.items():
            if channel[:size] == beginning and not text.closed:
                text.closed = True
                await self._judge(text, final=True)
                self._known[text.said()] = text.shown()

    async def _judge(self, text: Growing, *, final: bool) -> None:
        """Judge a text as far as it can be, whatever follows; all of it at its end."""
        if text.is_json:
            if final:
                text.replace(await self._judge_json(text.text))
                self.judged += text.end
            return
        new = text.end
        if not final:
            if self._remote and text.end - text.judged < self._window:
                return
            new = text.base + text.open_from(self._local, self._window)
        if new <= text.judged:
            return
        verdict = Verdict()
        for armed in self._local:
            found = armed.check.look(text.text, self._about._replace(before=text.base))
            if found:
                text.note(armed, found, new, verdict)
        if self._remote and not verdict.blocked:
            await text.ask(self._remote, self._about, self._timeout_s, new, verdict)
        self._settle(verdict)
        self.judged += new - text.judged
        text.judged = new
        if text.forget(self._window):
            self._settle(Verdict(failed=["length of a match"]))

    async def _judge_json(self, text: str) -> str:
        """Judge the arguments of a call by what they say; return them, written anew where something is cut out."""
        tree = json_tree(text)
        verdict = await judge(self._checks, tree.leaves, self._about, self._timeout_s)
        if tree.unread:
            verdict.failed.append("arguments")
        self._settle(verdict)
        if not (verdict.changed or tree.renew):
            return text
        tree.seal()
        written: str = tree.value[0]
        return written

    def _leave(self) -> bytes:
        """Return the events at the head of the line that were judged."""
        out: list[bytes] = []
        while self._queue:
            frame, waits = self._queue[0]
            if any(held.end > text.judged for text, held in waits):
                break
            for text, held in waits:
                text.cut(held)
                self.left += held.end - held.start
            out.append(frame.encode())
            self._queue.popleft()
        return b"".join(out)
