"""Answers in JSON of targets that know no such form: the arguments of a tool that must be called, given as text."""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.core import codec
from gateway.core.answer import (
    Answer,
    Choice,
    Cited,
    Delta,
    Event,
    Finished,
    PartBegan,
    PartEnded,
    Sealed,
)
from gateway.core.errors import InputError
from gateway.core.message import (
    Format,
    Part,
    Prompt,
    Reasoning,
    ServerTool,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
)
from gateway.dialects.fit.parts import is_blank
from gateway.dialects.fit.server_tools import without_foreign
from gateway.dialects.fit.spoken import word
from gateway.dialects.fit.thinking import is_on
from gateway.dialects.grammar import Grammar
from gateway.dialects.losses import Notes, refuse

NAME = "give_answer"
_OPEN_OBJECT: Mapping[str, Any] = {"type": "object", "additionalProperties": True}
_WORDS = "Give your whole answer by calling this tool once: its input is the answer."
_JSON = " The input is one JSON object, with the members that the conversation asks for."
_OBJECTS = frozenset({"$ref", "allOf", "anyOf", "oneOf", "properties"})
"""Words of a schema without a type that may well say what an object is."""


class FormCall:
    """The call that an answer comes as; `name` is the tool's."""

    __slots__ = ("_notes", "name")

    def __init__(self, name: str, notes: Notes) -> None:
        self.name = name
        self._notes = notes

    def answer(self, answer: Answer) -> Answer:
        """Return a whole answer with the call as its text."""
        return codec.replace(answer, choices=tuple(map(self._choice, answer.choices)))

    def _choice(self, choice: Choice) -> Choice:
        if not any(self.is_it(part) for part in choice.parts):
            return choice
        parts: list[Part] = []
        is_told = False
        for part in choice.parts:
            if isinstance(part, ToolCall) and self.is_it(part) and not is_told:
                is_told = True
                parts.append(Text(part.arguments or "{}"))
            elif isinstance(part, Text | ToolCall):
                self.drop(part)
            else:
                parts.append(part)
        finish = "stop" if choice.finish == "tool_calls" else choice.finish
        return codec.replace(choice, parts=tuple(parts), finish=finish)

    def is_it(self, part: Part) -> bool:
        """Tell whether a part is the call."""
        return isinstance(part, ToolCall) and part.name == self.name

    def drop(self, part: Part) -> None:
        """Leave out what stands beside the answer, which would be no JSON with it."""
        if not isinstance(part, Text) or not is_blank(part.text):
            self._notes.lost("answer_part_dropped")

    def stream(self) -> "FormStream":
        """Return what does the same for the events of one stream."""
        return FormStream(self)


class FormStream:
    """Turns the call into text as it comes. Texts before it are held: what they are shows at the end."""

    __slots__ = ("_call", "_dropped", "_held", "_open", "_said")

    def __init__(self, call: FormCall) -> None:
        self._call = call
        self._open: set[tuple[int, int]] = set()
        self._dropped: set[tuple[int, int]] = set()
        self._held: dict[int, list[Event]] = {}
        self._said: set[tuple[int, int] | int] = set()

    def events(self, events: Sequence[Event]) -> list[Event]:
        """Return the events with the call as a text; choices whose call has begun say nothing else."""
        found: list[Event] = []
        for event in events:
            match event:
                case PartBegan(choice, at, Text() | ToolCall() as part):
                    self._begin(choice, at, part, event, found)
                case Finished(choice, finish) if choice in self._said and finish == "tool_calls":
                    found.append(codec.replace(event, finish="stop"))
                case Finished(choice):
                    found += (*self._held.pop(choice, ()), event)
                case PartBegan() | Delta() | Sealed() | Cited() | PartEnded():
                    self._inside((event.choice, event.at), event, found)
                case _:
                    found.append(event)
        return found

    def _begin(
        self, choice: int, at: int, part: Text | ToolCall, event: Event, found: list[Event]
    ) -> None:
        place = choice, at
        if choice in self._said:
            self._call.drop(part)
            self._dropped.add(place)
        elif isinstance(part, ToolCall) and self._call.is_it(part):
            for held in self._held.pop(choice, ()):
                if isinstance(held, PartBegan):
                    self._dropped.add((choice, held.at))
                if isinstance(held, PartBegan | Delta):
                    self._call.drop(held.part if isinstance(held, PartBegan) else Text(held.text))
            self._said.add(choice)
            self._open.add(place)
            if part.arguments:
                self._said.add(place)
            found.append(PartBegan(choice, at, Text(part.arguments)))
        elif isinstance(part, Text):
            self._held.setdefault(choice, []).append(event)
        else:
            found.append(event)

    def _inside(self, place: tuple[int, int], event: Event, found: list[Event]) -> None:
        choice, at = place
        if place in self._dropped:
            if isinstance(event, Delta):
                self._call.drop(Text(event.text))
            return
        if isinstance(event, Delta) and place in self._open:
            if event.text:
                self._said.add(place)
        elif isinstance(event, PartEnded) and place in self._open:
            self._open.discard(place)
            if place not in self._said:
                found.append(Delta(choice, at, "{}"))
        held = self._held.get(choice)
        if held is not None and any(isinstance(e, PartBegan) and e.at == at for e in held):
            held.append(event)
        else:
            found.append(event)


def as_call(prompt: Prompt, grammar: Grammar, notes: Notes) -> tuple[Prompt, FormCall | None]:
    """Return a prompt that asks for its form of answer by a call, where the target keeps no such form itself.

    Raises InputError `invalid_request` where the form is wanted beside what a forced call excludes.
    """
    form = prompt.format
    if form is None or _is_kept(form, grammar):
        return prompt, None
    prompt = without_foreign(prompt, grammar, notes) if prompt.tools else prompt
    _require_room(prompt, form, grammar)
    if form.kind == "schema" and form.schema is not None:
        notes.lost("form_by_call", word(prompt.origin, "form"))
    name = _free_name(prompt)
    tool = Tool(name, _description(form), form.schema or _OPEN_OBJECT)
    alone = not prompt.tools
    asked = codec.replace(
        prompt,
        format=None,
        tools=(*prompt.tools, tool),
        choice=ToolChoice("required") if alone else ToolChoice("named", (name,)),
        parallel=None,
        reasoning=_quiet(prompt.reasoning) if grammar.forced == "quiet" else prompt.reasoning,
    )
    return asked, FormCall(name, notes)


def _is_kept(form: Format, grammar: Grammar) -> bool:
    kind = "json" if form.kind == "schema" and form.schema is None else form.kind
    return kind in grammar.forms


def _require_room(prompt: Prompt, form: Format, grammar: Grammar) -> None:
    """Raise InputError where the call cannot be forced, or would keep the model from what else is asked."""
    name = word(prompt.origin, "form")
    if grammar.forced == "never":
        raise refuse("form_unsupported", name, param=name)
    if form.schema is not None and not _is_of_object(form.schema):
        raise refuse("form_unsupported", f"{name} (no object at its top)", param=name)
    choice = prompt.choice
    may_call = prompt.tools and (choice is None or choice.mode != "none")
    if may_call or any(isinstance(tool, ServerTool) for tool in prompt.tools):
        raise _excluded(name, "tools")
    if grammar.thinks and _thinks(prompt):
        raise _excluded(name, "thinking")


def _thinks(prompt: Prompt) -> bool:
    """Tell whether thinking is asked for; in Messages an effort alone does not."""
    reasoning = prompt.reasoning
    if reasoning is None:
        return False
    if prompt.origin == "anthropic_messages":
        reasoning = codec.replace(reasoning, effort="")
    return is_on(reasoning)


def _quiet(reasoning: Reasoning | None) -> Reasoning:
    return codec.replace(reasoning or Reasoning(), enabled=False)


def _excluded(name: str, beside: str) -> InputError:
    return refuse("form_excluded", f"{name} (with {beside})", param=name)


def _is_of_object(schema: Mapping[str, Any]) -> bool:
    kind: object = schema.get("type")
    return kind == "object" or (kind is None and not (schema and _OBJECTS.isdisjoint(schema)))


def _description(form: Format) -> str:
    if form.schema is None:
        return _WORDS + _JSON
    return f"{_WORDS} {form.description}" if form.description else _WORDS


def _free_name(prompt: Prompt) -> str:
    taken = {tool.name for tool in prompt.tools if isinstance(tool, Tool)}
    name = NAME
    while name in taken:
        name += "_"
    return name
