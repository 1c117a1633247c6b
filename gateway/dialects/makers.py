"""Providers that speak Responses and seal reasoning each for itself: none reads what another sealed (K32)."""

from collections.abc import Sequence

from gateway.core import codec
from gateway.core.answer import Answer, Event, PartBegan, Sealed
from gateway.core.message import Part, Prompt, Thinking

WIRE = "openai"
"""What readers and writers of Responses call the maker of all seals."""
OWN = frozenset({"azure", "xai"})
"""Kinds of providers that are makers of their own."""


def maker_of(kind: str) -> str:
    """Return whose seals a provider of this kind reads where it speaks Responses."""
    return kind if kind in OWN else WIRE


class Makers:
    """Names the maker of a target's seals, in what is sent and what comes back; nothing where it is OpenAI."""

    __slots__ = ("_maker",)

    def __init__(self, kind: str) -> None:
        self._maker = maker_of(kind)

    def __bool__(self) -> bool:
        return self._maker != WIRE

    def apply(self, prompt: Prompt) -> Prompt:
        """Return a prompt that fits the target's grammar as its writer knows makers."""
        if not self:
            return prompt
        messages = tuple(
            codec.replace(message, parts=tuple(self._forth(part) for part in message.parts))
            if message.role == "assistant"
            else message
            for message in prompt.messages
        )
        return codec.replace(prompt, messages=messages)

    def answer(self, answer: Answer) -> Answer:
        """Return a whole answer with the maker's own name."""
        if not self:
            return answer
        choices = tuple(
            codec.replace(choice, parts=tuple(self._back(part) for part in choice.parts))
            for choice in answer.choices
        )
        return codec.replace(answer, choices=choices)

    def events(self, events: Sequence[Event]) -> Sequence[Event]:
        """Return events of a stream with the maker's own name."""
        if not self:
            return events
        return [self._event(event) for event in events]

    def _event(self, event: Event) -> Event:
        if isinstance(event, Sealed) and event.maker == WIRE:
            return codec.replace(event, maker=self._maker)
        if isinstance(event, PartBegan):
            return codec.replace(event, part=self._back(event.part))
        return event

    def _forth(self, part: Part) -> Part:
        if isinstance(part, Thinking) and part.maker == self._maker:
            return codec.replace(part, maker=WIRE)
        return part

    def _back(self, part: Part) -> Part:
        if isinstance(part, Thinking) and part.maker == WIRE:
            return codec.replace(part, maker=self._maker)
        return part
