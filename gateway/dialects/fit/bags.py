"""What only the caller's format knows of tools, messages and parts: named where its target cannot be told (K34)."""

from functools import partial

from gateway.core import codec
from gateway.core.message import Bag, File, Message, Part, Prompt, Text, Tool, ToolCall, ToolResult
from gateway.dialects.fit.places import Place, Places
from gateway.dialects.fit.spoken import word
from gateway.dialects.grammar import Grammar
from gateway.dialects.losses import Notes
from gateway.dialects.within import Within, paths_of

_MOST_NAMES = 64
_OTHERS = "(others)"
_SYSTEM = frozenset({"system", "developer"})
_INNER = frozenset({"item", "legacy", "sealed", "source", "type"})
"""Members that a reader put there for its own writer; what they say is told in other ways too."""


def note_bags(prompt: Prompt, grammar: Grammar, notes: Notes) -> None:
    """Note every member that is not written again, each once by its name, with the first place where it stands."""
    found = _Found(prompt, grammar)
    if prompt.origin in grammar.bags:
        for at, message in enumerate(prompt.messages):
            if message.extra and message.role in _SYSTEM and grammar.system != "inline":
                found.bag(message.extra, partial(found.message, at))
        found.tell(notes)
        return
    for at, tool in enumerate(prompt.tools):
        if isinstance(tool, Tool) and tool.extra:
            found.bag(tool.extra, partial(str, f"tools[{at}]"))
    for at, message in enumerate(prompt.messages):
        if message.extra:
            found.bag(message.extra, partial(found.message, at))
        for index, part in enumerate(message.parts):
            if type(part) is not Text or part.extra or part.citations:
                found.part(at, index, part)
    if prompt.reasoning is not None:
        found.reasoning(prompt.reasoning.extra)
    for name, stray in prompt.strays.items():
        found.bag(stray, partial(str, name))
    found.tell(notes)


class _Found:
    """Gathers what is lost: by row and name, where it stands first and how often it stands."""

    __slots__ = ("_count", "_first", "_grammar", "_places", "_prompt")

    def __init__(self, prompt: Prompt, grammar: Grammar) -> None:
        self._prompt = prompt
        self._grammar = grammar
        self._places = Places(prompt.origin, prompt.messages)
        self._first: dict[tuple[str, str], str] = {}
        self._count: dict[tuple[str, str], int] = {}

    def bag(self, extra: Bag, place: Place) -> None:
        for name, value in extra.items():
            if isinstance(value, Within):
                for path, held in paths_of(value, name):
                    if _says(held):
                        self._add("field_unknown", _within(path, held), place)
            elif name not in _INNER and _says(value):
                self._add("field_unknown", _within(name, value), place)

    def part(self, at: int, index: int, part: Part, place: Place | None = None) -> None:
        extra: Bag = getattr(part, "extra", {})
        origin, place = self._prompt.origin, place or partial(self._place, at, index, part)
        if extra:
            self.bag(extra, place)
        if isinstance(part, Text) and part.citations:
            self._add("citation_dropped", word(origin, "citations"), place)
        elif isinstance(part, File) and part.name and not self._is_titled(part):
            self._add("field_unsupported", word(origin, "title"), place)
        elif isinstance(part, ToolResult):
            for deeper, each in enumerate(part.parts):
                self.part(at, index, each, partial(self._inside, place, deeper))

    def reasoning(self, extra: Bag) -> None:
        field = "thinking" if self._prompt.origin == "anthropic_messages" else "reasoning"
        taken = {"display"} if self._grammar.displays else set[str]()
        self.bag({name: extra[name] for name in extra if name not in taken}, partial(str, field))

    def message(self, at: int) -> str:
        """Return the name of a message."""
        messages, origin = self._prompt.messages, self._prompt.origin
        if origin == "openai_responses":
            return "input[]"
        if origin == "anthropic_messages" and at == 0 and messages[0].role == "system":
            return "system"
        return self._places.message(at)

    def tell(self, notes: Notes) -> None:
        """Note what was found."""
        for (row, name), place in self._first.items():
            more = self._count[row, name] - 1
            notes.lost(row, f"{place}.{name}{f' and {more} more' if more else ''}")

    def _add(self, row: str, name: str, place: Place) -> None:
        """Count a loss; only so many names are told that each may be looked for."""
        key = row, name
        if key not in self._first:
            if len(self._first) >= _MOST_NAMES:
                key = row, _OTHERS
            self._first.setdefault(key, place() if key[1] == name else "messages")
        self._count[key] = self._count.get(key, 0) + 1

    def _is_titled(self, file: File) -> bool:
        titles = self._grammar.titles
        return titles == "all" or (titles == "data" and bool(file.data or file.url or file.file_id))

    def _inside(self, result: Place, deeper: int) -> str:
        """Return the name of a part in a result of a tool."""
        if self._prompt.origin == "openai_responses":
            return f"{result()}.output[{deeper}]"
        return f"{result()}.content[{deeper}]"

    def _place(self, at: int, index: int, part: Part) -> str:
        """Return the name of a part: of a call or result too, which in some formats are no content."""
        messages, place = self._prompt.messages, self.message(at)
        match self._prompt.origin:
            case "openai_chat" if isinstance(part, ToolCall):
                before = messages[at].parts[:index]
                return f"{place}.tool_calls[{sum(isinstance(each, ToolCall) for each in before)}]"
            case "openai_chat" if messages[at].role == "tool":
                return _behind(place, index)
            case "openai_responses":
                is_item = isinstance(part, ToolCall | ToolResult)
                return place if is_item else f"{place}.content[]"
            case "anthropic_messages":
                return f"{place}{'' if place == 'system' else '.content'}[{index + _opened(messages, at)}]"
            case _:
                return f"{place}.content[{index}]"


def _opened(messages: tuple[Message, ...], at: int) -> int:
    """Return how many results of tools stand before what a user says in one message of Messages."""
    joins = at and messages[at].role == "user" and messages[at - 1].role == "tool"
    return len(messages[at - 1].parts) if joins else 0


def _behind(place: str, count: int) -> str:
    """Return the name of the message that stands so many behind: each result of chat is one."""
    head, _, number = place.removesuffix("]").rpartition("[")
    return f"{head}[{int(number) + count}]"


def _says(value: object) -> bool:
    """Tell whether a member says anything."""
    members = codec.as_object(value)
    if members is not None:
        return any(map(_says, members.values()))
    return bool(value) or (isinstance(value, int | float) and not isinstance(value, bool))


def _within(name: str, value: object) -> str:
    """Return the name of a member: of what it holds, where that is one thing."""
    members = codec.as_object(value)
    return f"{name}.{next(iter(members))}" if members and len(members) == 1 else name
