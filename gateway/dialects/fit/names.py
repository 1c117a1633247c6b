"""Names of tools as a target takes them, and back (B116)."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from gateway.core import codec
from gateway.core.answer import Answer, Event, PartBegan
from gateway.core.errors import InputError
from gateway.core.message import (
    Message,
    Part,
    Prompt,
    ServerTool,
    Tool,
    ToolCall,
    ToolResult,
)
from gateway.core.scope import digest
from gateway.dialects.grammar import NameRules

_HASH = 10
_TRIES = 100
_ODD = re.compile(r"[^a-zA-Z0-9_-]+")
_LETTERS = str.maketrans("0123456789", "ghijklmnop")


@lru_cache(maxsize=64)
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def fits(name: str, rules: NameRules) -> bool:
    """Return whether a name is what the rules ask for."""
    return len(name) <= rules.longest and _pattern(rules.pattern).fullmatch(name) is not None


def shortened(name: str, rules: NameRules, taken: Iterable[str] = ()) -> str:
    """Return a name that fits, made of the old one and a hash of it, and is not taken: the same every time.

    Raises InputError `invalid_request` where the rules leave no room.
    """
    plain = _ODD.sub("_", name).strip("_-")
    for number in range(_TRIES):
        mark = digest(name, str(number) if number else "")[: min(_HASH, rules.longest)]
        mark = mark.translate(_LETTERS)
        room = max(rules.longest - len(mark) - 1, 0)
        for made in (f"{plain[:room]}_{mark}", f"t_{plain[: max(room - 2, 0)]}_{mark}", mark):
            if made not in taken and fits(made, rules):
                return made
    raise InputError(
        "invalid_request", f"tool {name[:64]}: has a name that this target cannot take"
    )


class NameMap:
    """The names of one request: short ones for the target, the caller's own for answers. False when it is empty.

    It depends on the prompt alone, so that it can be made again; names that fit are never changed.
    """

    __slots__ = ("_long", "_short")

    def __init__(self, names: Iterable[str], rules: NameRules) -> None:
        self._short: dict[str, str] = {}
        self._long: dict[str, str] = {}
        odd: list[str] = []
        taken: set[str] = set()
        for name in dict.fromkeys(names):
            if fits(name, rules):
                taken.add(name)
            else:
                odd.append(name)
        for name in sorted(odd):
            made = shortened(name, rules, taken)
            taken.add(made)
            self._short[name] = made
            self._long[made] = name

    @classmethod
    def of(cls, prompt: Prompt, rules: NameRules) -> "NameMap":
        """Return the map for all names of a prompt: of tools, the choice, calls and results."""
        if not prompt.tools and all(_nameless(message) for message in prompt.messages):
            return _EMPTY
        return cls(_names(prompt), rules)

    def __bool__(self) -> bool:
        return bool(self._short)

    def short(self, name: str) -> str:
        """Return the name as the target takes it."""
        return self._short.get(name, name)

    def original(self, name: str) -> str:
        """Return the caller's own name; a name that the model made up stays."""
        return self._long.get(name, name)

    def apply(self, prompt: Prompt) -> Prompt:
        """Return the prompt with short names everywhere."""
        if not self._short:
            return prompt
        choice = prompt.choice
        if choice is not None and choice.names:
            names = tuple(self.short(name) for name in choice.names)
            choice = codec.replace(choice, names=names)
        return codec.replace(
            prompt,
            messages=tuple(self._message(message) for message in prompt.messages),
            tools=tuple(self._tool(tool) for tool in prompt.tools),
            choice=choice,
        )

    def answer(self, answer: Answer) -> Answer:
        """Return a whole answer with the caller's own names."""
        if not self._long:
            return answer
        choices = tuple(
            codec.replace(choice, parts=tuple(self._back(part) for part in choice.parts))
            for choice in answer.choices
        )
        return codec.replace(answer, choices=choices)

    def events(self, events: Sequence[Event]) -> Sequence[Event]:
        """Return events of a stream with the caller's own names: a name stands whole in the begin of its part."""
        if not self._long:
            return events
        return [
            codec.replace(event, part=self._back(event.part))
            if isinstance(event, PartBegan)
            else event
            for event in events
        ]

    def _tool(self, tool: Tool | ServerTool) -> Tool | ServerTool:
        if isinstance(tool, Tool) and tool.name in self._short:
            return codec.replace(tool, name=self._short[tool.name])
        return tool

    def _message(self, message: Message) -> Message:
        if not any(_name(part) in self._short for part in message.parts):
            return message
        return codec.replace(message, parts=tuple(self._forth(part) for part in message.parts))

    def _forth(self, part: Part) -> Part:
        if isinstance(part, ToolCall | ToolResult) and part.name in self._short:
            return codec.replace(part, name=self._short[part.name])
        return part

    def _back(self, part: Part) -> Part:
        if isinstance(part, ToolCall) and part.name in self._long:
            return codec.replace(part, name=self._long[part.name])
        return part


def _name(part: Part) -> str | None:
    if isinstance(part, ToolCall):
        return part.name
    return part.name or None if isinstance(part, ToolResult) else None


def _nameless(message: Message) -> bool:
    return message.role in {"user", "system", "developer"} or not any(
        isinstance(part, ToolCall | ToolResult) for part in message.parts
    )


def _names(prompt: Prompt) -> Iterator[str]:
    for tool in prompt.tools:
        if isinstance(tool, Tool):
            yield tool.name
    if prompt.choice is not None:
        yield from prompt.choice.names
    for message in prompt.messages:
        if message.role in {"assistant", "tool"}:
            for part in message.parts:
                name = _name(part)
                if name is not None:
                    yield name


_EMPTY = NameMap((), NameRules())
