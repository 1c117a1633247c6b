"""Functions in namespaces, as coding assistants offer them: flat for targets of other formats, and back (B116)."""

from collections.abc import Sequence
from typing import Any

from gateway.core import codec
from gateway.core.answer import Answer, Event, PartBegan
from gateway.core.message import Message, Part, Prompt, ServerTool, Tool, ToolCall, ToolChoice
from gateway.dialects.chat.fields import Json, a_list, a_name, an_object, maybe_text, wrong
from gateway.dialects.grammar import Grammar
from gateway.dialects.losses import Notes, refuse
from gateway.dialects.responses.shapes import OwnMembers
from gateway.dialects.responses.states import ORIGIN
from gateway.dialects.responses.tools_in import tool_of

KIND = "namespace"
_GLUE = "__"
_KNOWN = frozenset({"type", "name", "description", "tools"})
DEFERRED = "defer_loading"
"""Of a function that need not be offered before it is found: it may be."""
_CHOICE = "tool_choice"
_CHOICES = frozenset({"allowed_tools", "custom", "function", KIND})
Home = tuple[str, str]
"""A namespace, and a name in it."""


class Namespaces:
    """The names that functions of namespaces have outside of them. False when there are none."""

    __slots__ = ("_flat", "_homes", "_taken")

    def __init__(self, taken: Sequence[str] = ()) -> None:
        self._taken = set(taken)
        self._homes: dict[str, Home] = {}
        self._flat: dict[Home, str] = {}

    def __bool__(self) -> bool:
        return bool(self._homes)

    def add(self, home: Home) -> str:
        """Return the name of a function outside of its namespace: no other tool has it."""
        flat = flat_name(*home)
        while flat in self._taken:
            flat += "_"
        self._taken.add(flat)
        self._homes[flat] = home
        self._flat[home] = flat
        return flat

    def name_of(self, home: Home) -> str:
        """Return the name of a function that the history or the choice names, offered or not."""
        return self._flat.get(home) or flat_name(*home)

    def names_in(self, space: str) -> list[str]:
        """Return the names of all functions of a namespace."""
        return [flat for flat, (named, _) in self._homes.items() if named == space]

    def answer(self, answer: Answer) -> Answer:
        """Return a whole answer whose calls say namespace and name."""
        choices = tuple(
            codec.replace(choice, parts=tuple(map(self._back, choice.parts)))
            for choice in answer.choices
        )
        return codec.replace(answer, choices=choices)

    def events(self, events: Sequence[Event]) -> Sequence[Event]:
        """Return events of a stream whose calls say namespace and name."""
        return [
            codec.replace(event, part=self._back(event.part))
            if isinstance(event, PartBegan)
            else event
            for event in events
        ]

    def _back(self, part: Part) -> Part:
        home = self._homes.get(part.name) if isinstance(part, ToolCall) else None
        if home is None or not isinstance(part, ToolCall):
            return part
        space, name = home
        return codec.replace(part, name=name, extra=OwnMembers({KIND: space}))


_NO_SPACES = Namespaces()


def flat_name(space: str, name: str) -> str:
    """Return what a function of a namespace is called outside of it."""
    return f"{space}{name}" if space.endswith(_GLUE) else f"{space}{_GLUE}{name}"


def flattened(prompt: Prompt, grammar: Grammar, notes: Notes) -> tuple[Prompt, Namespaces]:
    """Return a prompt without namespaces, for a target that knows none; calls of the history are renamed alike.

    Raises InputError `invalid_request` with the path of what is no namespace.
    """
    if prompt.origin != ORIGIN or grammar.items is None or ORIGIN in grammar.items:
        return prompt, _NO_SPACES
    spaces = Namespaces([tool.name for tool in prompt.tools if isinstance(tool, Tool)])
    tools: list[Tool | ServerTool] = []
    for at, tool in enumerate(prompt.tools):
        if isinstance(tool, ServerTool) and tool.kind == KIND:
            tools += _members(tool.value, f"tools[{at}]", spaces, notes)
        else:
            tools.append(tool)
    changes: dict[str, Any] = {}
    messages = tuple(_message(message, spaces) for message in prompt.messages)
    if any(a is not b for a, b in zip(messages, prompt.messages, strict=True)):
        changes["messages"] = messages
    if spaces:
        changes |= {"tools": tuple(tools), **_choice(prompt, spaces)}
    return codec.replace(prompt, **changes) if changes else prompt, spaces


def _members(space: Json, at: str, spaces: Namespaces, notes: Notes) -> list[Tool | ServerTool]:
    """Return the tools of a namespace; what is said of all of them stands before what is said of the first."""
    name = a_name(space.get("name"), f"{at}.name")
    said = maybe_text(space.get("description"), f"{at}.description")
    found: list[Tool | ServerTool] = []
    for place, item in enumerate(a_list(space.get("tools"), f"{at}.tools")):
        where = f"{at}.tools[{place}]"
        tool = tool_of(an_object(item, where), where)
        if isinstance(tool, Tool):
            for member in tool.extra.keys() - {DEFERRED}:
                notes.lost("field_unknown", f"{where}.{member}")
            words = [f"{name}: {said}" if said else "", tool.description]
            described = "\n\n".join(word for word in words if word)
            tool = codec.replace(
                tool, name=spaces.add((name, tool.name)), description=described, extra={}
            )
            said = ""
        found.append(tool)
    for member in space.keys() - _KNOWN:
        notes.lost("field_unknown", f"{at}.{member}")
    return found


def _message(message: Message, spaces: Namespaces) -> Message:
    if message.role != "assistant" or not any(map(_space_of, message.parts)):
        return message
    return codec.replace(message, parts=tuple(_outside(part, spaces) for part in message.parts))


def _space_of(part: Part) -> str:
    space = part.extra.get(KIND) if isinstance(part, ToolCall) else None
    return space if isinstance(space, str) else ""


def _outside(part: Part, spaces: Namespaces) -> Part:
    space = _space_of(part)
    if not space or not isinstance(part, ToolCall):
        return part
    rest = {name: value for name, value in part.extra.items() if name != KIND}
    return codec.replace(part, name=spaces.name_of((space, part.name)), extra=rest)


def _choice(prompt: Prompt, spaces: Namespaces) -> dict[str, Any]:
    """Return the choice among tools with names outside of namespaces, where it names such."""
    said = codec.as_object(prompt.extra.get(_CHOICE))
    if said is None or said.get("type") not in _CHOICES:
        return {}
    if said.get("type") != "allowed_tools":
        names = _named(said, _CHOICE, spaces)
        choice = ToolChoice("named" if len(names) == 1 else "required", tuple(names))
    else:
        names: list[str] = []
        for at, item in enumerate(a_list(said.get("tools"), f"{_CHOICE}.tools")):
            where = f"{_CHOICE}.tools[{at}]"
            names += _named(an_object(item, where), where, spaces)
        mode = "required" if said.get("mode") == "required" else "auto"
        choice = ToolChoice(mode, tuple(names))
    extra = {name: value for name, value in prompt.extra.items() if name != _CHOICE}
    return {"choice": choice, "extra": extra}


def _named(said: Json, at: str, spaces: Namespaces) -> list[str]:
    """Return the names of the tools that an entry of a choice names."""
    kind = a_name(said.get("type"), f"{at}.type")
    if kind == KIND:
        space = a_name(said.get("name"), f"{at}.name")
        names = spaces.names_in(space)
        if not names:
            raise refuse("choice_unknown", f"{at} ({space[:64]})", param=_CHOICE)
        return names
    name = a_name(said.get("name"), f"{at}.name") if kind in {"function", "custom"} else kind
    space = said.get(KIND)
    if space is not None and not isinstance(space, str):
        raise wrong(f"{at}.{KIND}", "a text")
    return [spaces.name_of((space, name)) if space else name]
