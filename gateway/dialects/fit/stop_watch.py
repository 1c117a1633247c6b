"""Ends an answer at stop sequences that its target does not take, also where deltas split them (B114)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from gateway.core import codec
from gateway.core.answer import (
    Answer,
    Choice,
    Delta,
    Event,
    Finish,
    Finished,
    PartBegan,
    PartEnded,
    Weighed,
)
from gateway.core.message import Part, Text, ToolCall


def cut_at(text: str, stops: Sequence[str]) -> tuple[int, str] | None:
    """Return where the sequence begins that is complete first, and the sequence; None for none."""
    best: tuple[int, int, str] | None = None
    for stop in stops:
        begin = text.find(stop)
        if begin >= 0 and (best is None or (begin + len(stop), begin) < best[:2]):
            best = (begin + len(stop), begin, stop)
    return None if best is None else (best[1], best[2])


def held(text: str, stops: Sequence[str]) -> int:
    """Return how many characters at the end of a text may be the begin of a sequence."""
    most = min(max(map(len, stops), default=0) - 1, len(text))
    for size in range(most, 0, -1):
        end = text[-size:]
        if any(stop.startswith(end) for stop in stops):
            return size
    return 0


@dataclass(slots=True)
class _Watched:
    """One choice: its open parts, the text held back of each, and whether a call is complete."""

    open: dict[int, Part] = field(default_factory=dict[int, Part])
    held: dict[int, str] = field(default_factory=dict[int, str])
    called: bool = False
    is_cut: bool = False


class StopWatch:
    """Watches the texts of one answer; `stops` are what `stops.watched` returned, at least one.

    A choice ends with `stop_sequence` where one is met (`tool_calls` when a complete call was given before): it
    finishes there, and what its target still says of it is left out. Usage and the end go by.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._choices: dict[int, _Watched] = {}

    @property
    def is_cut(self) -> bool:
        """Return whether all choices that have begun were ended here: nothing more is wanted but the usage."""
        return bool(self._choices) and all(each.is_cut for each in self._choices.values())

    def add(self, events: Sequence[Event]) -> list[Event]:
        """Return the next events of a stream, with a text ended at a sequence."""
        out: list[Event] = []
        for event in events:
            self._one(event, out)
        return out

    def whole(self, answer: Answer) -> Answer:
        """Return a whole answer with its texts ended."""
        choices = tuple(self._choice(choice) for choice in answer.choices)
        if all(a is b for a, b in zip(choices, answer.choices, strict=True)):
            return answer
        return codec.replace(answer, choices=choices)

    def _choice(self, choice: Choice) -> Choice:
        for at, part in enumerate(choice.parts):
            found = cut_at(part.text, self._stops) if isinstance(part, Text) else None
            if found is None or not isinstance(part, Text):
                continue
            begin, stop = found
            before = choice.parts[:at]
            kept = (*before, codec.replace(part, text=part.text[:begin]))
            called = any(isinstance(each, ToolCall) for each in before)
            finish, stop = _ending(stop, called=called)
            return codec.replace(choice, parts=kept, finish=finish, stop_sequence=stop)
        return choice

    def _one(self, event: Event, out: list[Event]) -> None:
        if not isinstance(event, PartBegan | Delta | PartEnded | Finished | Weighed):
            choice = getattr(event, "choice", None)
            if choice is None or not self._watched(choice).is_cut:
                out.append(event)
            return
        watched = self._watched(event.choice)
        if watched.is_cut:
            return
        match event:
            case PartBegan(choice, at, part):
                watched.open[at] = part
                if isinstance(part, Text) and part.text:
                    out.append(PartBegan(choice, at, codec.replace(part, text="")))
                    self._text(watched, choice, at, part.text, out)
                else:
                    out.append(event)
            case Delta(choice, at, text) if isinstance(watched.open.get(at), Text):
                self._text(watched, choice, at, text, out)
            case PartEnded(choice, at):
                rest = watched.held.pop(at, "")
                if rest:
                    out.append(Delta(choice, at, rest))
                part = watched.open.pop(at, None)
                watched.called = watched.called or isinstance(part, ToolCall)
                out.append(event)
            case _:
                out.append(event)

    def _watched(self, choice: int) -> _Watched:
        found = self._choices.get(choice)
        if found is None:
            found = self._choices[choice] = _Watched()
        return found

    def _text(self, watched: _Watched, choice: int, at: int, text: str, out: list[Event]) -> None:
        """Tell a text as far as no sequence can begin in it, or end the choice."""
        text = watched.held.pop(at, "") + text
        found = cut_at(text, self._stops)
        if found is None:
            size = held(text, self._stops)
            if size:
                watched.held[at] = text[-size:]
                text = text[:-size]
            if text:
                out.append(Delta(choice, at, text))
            return
        begin, stop = found
        if begin:
            out.append(Delta(choice, at, text[:begin]))
        for each in sorted(watched.open):
            rest = watched.held.pop(each, "")
            if rest:
                out.append(Delta(choice, each, rest))
            out.append(PartEnded(choice, each))
        watched.open.clear()
        watched.is_cut = True
        finish, stop = _ending(stop, called=watched.called)
        out.append(Finished(choice, finish, "", stop))


def _ending(stop: str, *, called: bool) -> tuple[Finish, str]:
    """Return finish and stop sequence: a complete call outlives the text behind it (K35)."""
    return ("tool_calls", "") if called else ("stop_sequence", stop)
