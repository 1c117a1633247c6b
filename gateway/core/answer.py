"""The neutral form of an answer, whole and as a stream of events, and the one way from the stream to the whole."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from gateway.core import codec
from gateway.core.message import (
    NO_BAG,
    Bag,
    Citation,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
)
from gateway.core.usage import Usage

Finish = Literal[
    "stop", "length", "tool_calls", "content_filter", "refusal", "stop_sequence", "pause"
]
"""Why an answer ended. `tool_calls` if and only if a complete call was given; a cut call is `length` (K35).

refusal: the model would not. content_filter: the provider stopped or blocked it. pause: a server tool runs on.
"""


class Choice(codec.Struct, frozen=True):
    """One answer. `native` is the provider's own word for its end; `logprobs` as OpenAI writes its content list."""

    index: int
    parts: tuple[Part, ...]
    finish: Finish
    native: str = ""
    stop_sequence: str = ""
    logprobs: tuple[Any, ...] = ()
    extra: Bag = NO_BAG


class Answer(codec.Struct, frozen=True):
    """A whole answer. `origin` is the dialect it was read from; `created` seconds since the epoch, 0 when unknown.

    `extra` holds top-level fields that only `origin` knows (`service_tier`, `system_fingerprint`, ...).
    """

    origin: str
    id: str
    model: str
    choices: tuple[Choice, ...]
    usage: Usage | None = None
    created: int = 0
    extra: Bag = NO_BAG


class Began(codec.Struct, frozen=True, gc=False):
    """The answer begins: exactly once, before all others. Any field may be empty."""

    id: str = ""
    model: str = ""
    created: int = 0


class PartBegan(codec.Struct, frozen=True, gc=False):
    """A part begins; deltas are added to what `part` holds already. `at` counts parts of the choice from 0.

    A part that is complete as it stands (Opaque, a redacted Thinking, an Image) gets no deltas; it still ends.
    The `summary` of a Thinking that begins is one empty piece where its text will be a summary.
    """

    choice: int
    at: int
    part: Part


class Delta(codec.Struct, frozen=True, gc=False):
    """More of an open part: of the text of Text, Thinking and Refusal, of the arguments of ToolCall."""

    choice: int
    at: int
    text: str


class Sealed(codec.Struct, frozen=True, gc=False):
    """The signature of an open part, whole; `maker` as in Thinking."""

    choice: int
    at: int
    signature: str
    maker: str


class Cited(codec.Struct, frozen=True, gc=False):
    """A citation of an open Text."""

    choice: int
    at: int
    citation: Citation


class Weighed(codec.Struct, frozen=True, gc=False):
    """Log probabilities of tokens of a choice, as OpenAI writes them."""

    choice: int
    tokens: tuple[Any, ...]


class PartEnded(codec.Struct, frozen=True, gc=False):
    """A part is complete; every part ends once, before its choice finishes. Parts of a choice may overlap."""

    choice: int
    at: int


class Finished(codec.Struct, frozen=True, gc=False):
    """A choice is complete: once per choice."""

    choice: int
    finish: Finish
    native: str = ""
    stop_sequence: str = ""


class Counted(codec.Struct, frozen=True, gc=False):
    """The usage so far; it replaces what was told before."""

    usage: Usage


class Ended(codec.Struct, frozen=True, gc=False):
    """The provider's own end was seen: last, and only when every choice has finished."""

    extra: Bag = NO_BAG


Event = (
    Began | PartBegan | Delta | Sealed | Cited | Weighed | PartEnded | Finished | Counted | Ended
)


class _Open:
    __slots__ = ("citations", "part", "sealed", "texts")

    def __init__(self, part: Part) -> None:
        self.part = part
        self.texts: list[str] = []
        self.sealed: Sealed | None = None
        self.citations: list[Citation] = []

    def close(self) -> Part:
        part = self.part
        text = "".join(self.texts)
        seal: Mapping[str, Any] = (
            {"signature": self.sealed.signature, "maker": self.sealed.maker} if self.sealed else {}
        )
        match part:
            case Text():
                cited = (*part.citations, *self.citations)
                return codec.replace(part, text=part.text + text, citations=cited, **seal)
            case Thinking():
                whole = part.text + text
                summary = (whole,) if part.summary == ("",) else part.summary
                return codec.replace(part, text=whole, summary=summary, **seal)
            case Refusal():
                return Refusal(part.text + text)
            case ToolCall():
                return codec.replace(part, arguments=part.arguments + text, **seal)
            case _:
                return part


class Collector:
    """Puts events together to the answer they tell; the same for every dialect (K37)."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._began = Began()
        self._parts: dict[int, dict[int, _Open]] = {}
        self._ends: dict[int, Finished] = {}
        self._weighed: dict[int, list[Any]] = {}
        self.usage: Usage | None = None
        self.ended = False

    def add(self, events: Iterable[Event]) -> None:
        """Take the next events."""
        for event in events:
            match event:
                case Delta(choice, at, text):
                    self._parts[choice][at].texts.append(text)
                case PartBegan(choice, at, part):
                    self._parts.setdefault(choice, {})[at] = _Open(part)
                case Sealed(choice, at):
                    self._parts[choice][at].sealed = event
                case Cited(choice, at, citation):
                    self._parts[choice][at].citations.append(citation)
                case Weighed(choice, tokens):
                    self._weighed.setdefault(choice, []).extend(tokens)
                case Finished(choice):
                    self._ends[choice] = event
                case Began():
                    self._began = event
                case Counted(usage):
                    self.usage = usage
                case Ended():
                    self.ended = True
                case PartEnded():
                    pass

    def answer(self) -> Answer:
        """Return the whole answer; a choice that has not finished is left out."""
        choices = tuple(
            Choice(
                index=index,
                parts=tuple(each.close() for _, each in sorted(self._parts.get(index, {}).items())),
                finish=end.finish,
                native=end.native,
                stop_sequence=end.stop_sequence,
                logprobs=tuple(self._weighed.get(index, ())),
            )
            for index, end in sorted(self._ends.items())
        )
        began = self._began
        return Answer(self._origin, began.id, began.model, choices, self.usage, began.created)


def events_of(answer: Answer) -> list[Event]:
    """Return a whole answer as the events of a stream, each part in one piece."""
    events: list[Event] = [Began(answer.id, answer.model, answer.created)]
    for choice in answer.choices:
        for at, part in enumerate(choice.parts):
            events += (PartBegan(choice.index, at, part), PartEnded(choice.index, at))
        if choice.logprobs:
            events.append(Weighed(choice.index, choice.logprobs))
        events.append(Finished(choice.index, choice.finish, choice.native, choice.stop_sequence))
    if answer.usage is not None:
        events.append(Counted(answer.usage))
    events.append(Ended(answer.extra))
    return events
