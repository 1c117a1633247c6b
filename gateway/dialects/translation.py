"""One request on its way between two formats: read, fitted and written; its answer read and written back."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from gateway.core import codec
from gateway.core.answer import (
    Answer,
    Collector,
    Counted,
    Delta,
    Ended,
    Event,
    Finished,
    PartBegan,
)
from gateway.core.errors import InputError, UpstreamError
from gateway.core.message import Message, Prompt, ToolCall
from gateway.core.usage import Usage
from gateway.dialects.base import ProviderError, StreamRules
from gateway.dialects.fit.custom_tools import CustomTools, as_functions
from gateway.dialects.fit.forced_form import as_call
from gateway.dialects.fit.names import NameMap
from gateway.dialects.fit.naming import media_of, placed
from gateway.dialects.fit.prompt import fit
from gateway.dialects.fit.stop_watch import StopWatch
from gateway.dialects.fit.stops import watched
from gateway.dialects.grammar import Grammar
from gateway.dialects.known_ends import note_end
from gateway.dialects.losses import Notes
from gateway.dialects.makers import Makers
from gateway.dialects.responses.namespaces import flattened
from gateway.dialects.responses.states import ORIGIN as RESPONSES
from gateway.dialects.responses.tool_search import with_search
from gateway.dialects.sides import CallerSide, Facts, StreamReader, StreamWriter, TargetSide, Told
from gateway.dialects.sse import holds_field
from gateway.dialects.strange import foreign
from gateway.dialects.wires import EVENTS, WIRES, Wire

_MOST_UNHEARD = 16
"""So many frames of a stream may say nothing at its beginning."""
_HEAD = 64


class Step(NamedTuple):
    """How one change to a request is undone on the way back: in a whole answer, and in the events of a stream."""

    answer: Callable[[Answer], Answer]
    stream: Callable[[], Callable[[Sequence[Event]], Sequence[Event]]]


class Translation:
    """The way between a caller's format and a target's, for one request; made anew for each target."""

    __slots__ = ("_caller", "_steps", "_target", "_told", "notes", "wire")

    def __init__(
        self,
        caller: CallerSide,
        target: TargetSide,
        told: Told,
        notes: Notes,
        steps: Sequence[Step] = (),
    ) -> None:
        self.wire: Wire = WIRES[target.name]
        self.notes = notes
        self._caller = caller
        self._target = target
        self._told = told
        self._steps = steps

    @property
    def prompt(self) -> Prompt:
        """Return the request as the caller sent it."""
        return self._told.prompt

    def watch(self, rules: StreamRules) -> "TranslatedStream":
        """Return a watcher for one stream."""
        reader = self._target.reader(rules)
        writer = self._caller.writer(self._told, self.notes)
        steps = [step.stream() for step in self._steps]
        return TranslatedStream(reader, writer, steps, Collector(self._target.name), self)

    def read_whole(self, body: bytes, rules: StreamRules) -> tuple[bytes, Answer]:
        """Return a whole answer in the caller's format, and what it says."""
        answer = self._target.read_whole(
            body, rules.secrets, reasoning_outside=rules.reasoning_outside
        )
        for choice in answer.choices:
            note_end(choice.native, self.notes)
        for step in self._steps:
            answer = step.answer(answer)
        return self._caller.write_answer(answer, self._told, self.notes), answer


class Written(NamedTuple):
    """A request for a target: its fields without model and stream, the way back, and the names that it says."""

    fields: codec.Fields
    translation: Translation
    names: NameMap


def write(
    prompt: Prompt,
    caller: CallerSide,
    target: TargetSide,
    facts: Facts,
    grammar: Grammar,
    told: Told,
    notes: Notes,
) -> Written:
    """Write a request for a target of this grammar; raises InputError for what it cannot take."""
    prompt, search = with_search(prompt, grammar, notes)
    prompt, spaces = flattened(prompt, grammar, notes)
    customs = CustomTools.of(prompt)
    prompt, form = as_call(prompt, grammar, notes)
    if form is not None and grammar.prefill:
        grammar = replace(grammar, prefill=False)  # what begins a text begins no call
    if not grammar.custom_tools:
        prompt = as_functions(prompt, notes)
    fitted = fit(prompt, grammar, notes)
    names = NameMap.of(fitted, grammar.names)
    makers = Makers(facts.kind if target.name == RESPONSES else "")
    try:
        fields = target.write_request(makers.apply(names.apply(fitted)), facts, notes)
    except InputError as error:
        raise _where(error, told.prompt, target, facts, grammar, notes) from None
    steps = [Step(each.answer, lambda it=each: it.events) for each in (makers, names) if each]
    if customs:
        steps.append(Step(customs.answer, lambda: customs.stream().events))
    if spaces:
        steps.append(Step(spaces.answer, lambda: spaces.events))
    if search:
        steps.append(Step(search.answer, lambda: search.stream().events))
    if form is not None:
        steps.append(Step(form.answer, lambda: form.stream().events))
    stops = watched(prompt, grammar)
    if stops:
        steps.append(Step(partial(_stopped, stops), lambda: StopWatch(stops).add))
    return Written(fields, Translation(caller, target, told, notes, steps), names)


def _stopped(stops: Sequence[str], answer: Answer) -> Answer:
    return StopWatch(stops).whole(answer)


def _where(
    error: InputError,
    prompt: Prompt,
    target: TargetSide,
    facts: Facts,
    grammar: Grammar,
    notes: Notes,
) -> InputError:
    """Return the error of a writer with the place of the part at fault: the first that is refused by itself."""
    for medium in media_of(prompt, notes):
        alone = codec.replace(
            prompt, messages=(Message("user", (medium.part,)),), tools=(), choice=None
        )
        try:
            target.write_request(fit(alone, grammar, Notes()), facts, Notes())
        except InputError as other:
            if other.message.rpartition(": ")[2] == error.message.rpartition(": ")[2]:
                return placed(error, medium.place)
    return error


class TranslatedStream:
    """A stream of a provider as its caller's format; `dialects.base.Watcher` says the rest."""

    __slots__ = (
        "_first", "_heard", "_reader", "_steps", "_writer", "begun", "collector", "done", "error", "on_ended",
        "translation", "usage",
    )  # fmt: skip

    def __init__(
        self,
        reader: StreamReader,
        writer: StreamWriter,
        steps: Sequence[Callable[[Sequence[Event]], Sequence[Event]]],
        collector: Collector,
        translation: Translation,
    ) -> None:
        self.usage: Usage | None = None
        self.done = False
        self.begun = False
        self.error: ProviderError | None = None
        self.collector = collector
        self._heard = False
        self._first = b""
        self.on_ended: Callable[[], None] | None = None
        self.translation = translation
        self._reader = reader
        self._writer = writer
        self._steps = steps

    @property
    def events(self) -> int:
        """Return how many frames were read."""
        return self._reader.frames

    @property
    def broken(self) -> int:
        """Return how many frames could not be read."""
        return self._reader.broken

    @property
    def surplus(self) -> int:
        """Return how many frames came behind the end."""
        return self._reader.surplus

    @property
    def real(self) -> bool:
        """Return whether the last feed held more than signs of life."""
        return self._reader.real

    @property
    def open_choices(self) -> Sequence[int]:
        """Return the choices that have begun and not finished."""
        return self._writer.open_choices

    def feed(self, data: bytes) -> bytes:
        """Return what the client gets of these bytes."""
        events = self._reader.feed(data)
        if not (events or self._heard):
            self._listen(data)
        return self._write(events)

    def _listen(self, data: bytes) -> None:
        """Give up where nothing that came is of the target's format."""
        self._first = self._first or data[:_HEAD]
        if self._first[:1] == b"\0" and EVENTS in self.translation.wire.streams:
            raise foreign("it is binary")
        if self._reader.frames + self._reader.broken > _MOST_UNHEARD:
            raise foreign("nothing of it is known")

    def end(self, complete: bool) -> bytes:  # noqa: FBT001  one fact about the transport
        """Return the rest after the upstream's end."""
        if self.done or self.error is not None:
            return b""
        try:
            return self._write(self._reader.end(complete))
        except UpstreamError as error:
            if error.code == "upstream_truncated" and not self._heard and self._is_foreign():
                raise foreign("nothing of it is known") from None
            raise

    def _is_foreign(self) -> bool:
        """Tell whether what came was something else than a stream of the target's that was cut."""
        if self._reader.frames or self._reader.broken:
            return True
        return EVENTS in self.translation.wire.streams and not holds_field(self._first)

    def _write(self, events: Sequence[Event]) -> bytes:
        self.error = self._reader.error
        if not events:
            return b""
        self._heard = True
        for step in self._steps:
            events = step(events)
        for event in events:
            match event:
                case Delta():
                    self.begun = True
                case PartBegan(part=ToolCall()):
                    self.begun = True
                case Finished(native=native):
                    self.begun = True
                    note_end(native, self.translation.notes)
                case Counted(usage):
                    self.usage = usage
                case Ended():
                    self.done = True
                case _:
                    pass
        self.collector.add(events)
        return self._writer.write(events)
