"""A search for tools that the caller itself runs (Codex): a function for targets of other formats, and back.

What a search has found is offered like any other tool from then on.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from gateway.core import codec
from gateway.core.answer import Answer, Delta, Event, PartBegan, PartEnded
from gateway.core.message import (
    Message,
    Opaque,
    Part,
    Prompt,
    ServerTool,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from gateway.dialects.chat.fields import Json, a_list, a_name, an_object, maybe_object, maybe_text
from gateway.dialects.grammar import Grammar
from gateway.dialects.losses import Notes
from gateway.dialects.responses.ids import new_base
from gateway.dialects.responses.namespaces import DEFERRED, flat_name
from gateway.dialects.responses.shapes import objects
from gateway.dialects.responses.states import ORIGIN
from gateway.dialects.responses.tools_in import tool_of

KIND, CALL, OUTPUT = "tool_search", "tool_search_call", "tool_search_output"
_SPACE = "namespace"
_WORDS = "Finds more tools, which can be called once they are found."
_QUERY: Json = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "What the tools are for."}},
    "required": ["query"],
}
_FOUND, _NONE = "These tools can be called now: ", "No tool was found."
_BAD = (codec.JSONError, RecursionError)


class ToolSearch:
    """The function that stands for the search; False where there is none."""

    __slots__ = ("_name", "_notes")

    def __init__(self, name: str, notes: Notes) -> None:
        self._name = name
        self._notes = notes

    def __bool__(self) -> bool:
        return bool(self._name)

    def is_it(self, part: Part) -> bool:
        """Tell whether a part calls it."""
        return isinstance(part, ToolCall) and part.name == self._name

    def item(self, part: ToolCall) -> Opaque:
        """Return a call as the item that the caller knows."""
        arguments: object = {}
        if part.arguments.strip():
            try:
                arguments = codec.decode(part.arguments)
            except _BAD:
                self._notes.lost("arguments_cut", part.name)
        item: Json = {
            "id": f"tsc_{new_base()}",
            "type": CALL,
            "status": "completed",
            "call_id": part.id or f"call_{new_base()}",
            "execution": "client",
            "arguments": arguments,
        }
        return Opaque(ORIGIN, CALL, item)

    def answer(self, answer: Answer) -> Answer:
        """Return a whole answer with its searches as items."""
        choices = tuple(
            codec.replace(choice, parts=tuple(map(self._back, choice.parts)))
            for choice in answer.choices
        )
        return codec.replace(answer, choices=choices)

    def _back(self, part: Part) -> Part:
        return self.item(part) if isinstance(part, ToolCall) and self.is_it(part) else part

    def stream(self) -> "SearchStream":
        """Return what does the same for the events of one stream."""
        return SearchStream(self)


class SearchStream:
    """Holds the calls of the search in one stream: their item is told when it is whole."""

    __slots__ = ("_open", "_search")

    def __init__(self, search: ToolSearch) -> None:
        self._search = search
        self._open: dict[tuple[int, int], tuple[ToolCall, list[str]]] = {}

    def events(self, events: Sequence[Event]) -> list[Event]:
        """Return the events with searches as items."""
        found: list[Event] = []
        for event in events:
            match event:
                case PartBegan(choice, at, ToolCall() as call) if self._search.is_it(call):
                    self._open[choice, at] = (call, [call.arguments])
                case Delta(choice, at, text) if (choice, at) in self._open:
                    self._open[choice, at][1].append(text)
                case PartEnded(choice, at) if (choice, at) in self._open:
                    call, pieces = self._open.pop((choice, at))
                    whole = codec.replace(call, arguments="".join(pieces))
                    found += (PartBegan(choice, at, self._search.item(whole)), event)
                case _:
                    found.append(event)
        return found


def with_search(prompt: Prompt, grammar: Grammar, notes: Notes) -> tuple[Prompt, ToolSearch]:
    """Return a prompt whose search is a function, with the tools that it has found before.

    Raises InputError `invalid_request` with the path of what is no tool.
    """
    is_own = grammar.items is None or ORIGIN in grammar.items
    if prompt.origin != ORIGIN or is_own or not _searches(prompt):
        return prompt, ToolSearch("", notes)
    name = KIND
    while any(isinstance(tool, Tool) and tool.name == name for tool in prompt.tools):
        name += "_"
    tools = [_function(tool, at, name) for at, tool in enumerate(prompt.tools)]
    known = {home for tool in tools for home in _homes(tool)}
    messages: list[Message] = []
    for message in prompt.messages:
        messages.append(_message(message, name))
        for part in message.parts:
            if isinstance(part, Opaque) and _is_client(part, OUTPUT):
                tools += _found(part.value, known)
    found = codec.replace(prompt, tools=tuple(tools), messages=tuple(messages))
    return found, ToolSearch(name, notes)


def _searches(prompt: Prompt) -> bool:
    tools = (tool for tool in prompt.tools if isinstance(tool, ServerTool))
    is_offered = any(
        tool.kind == KIND and tool.value.get("execution") == "client" for tool in tools
    )
    return is_offered or any(
        isinstance(part, Opaque) and (_is_client(part, CALL) or _is_client(part, OUTPUT))
        for message in prompt.messages
        for part in message.parts
    )


def _is_client(part: Opaque, kind: str) -> bool:
    """Tell whether an item is of a search that the caller ran: such have the id of a call."""
    value = part.value
    is_client = value.get("execution", "client") == "client"
    return part.kind == kind and is_client and isinstance(value.get("call_id"), str)


def _function(tool: Tool | ServerTool, at: int, name: str) -> Tool | ServerTool:
    if not isinstance(tool, ServerTool) or tool.kind != KIND:
        return tool
    if tool.value.get("execution") != "client":
        return tool
    where = f"tools[{at}]"
    said = maybe_text(tool.value.get("description"), f"{where}.description") or _WORDS
    taken = maybe_object(tool.value.get("parameters"), f"{where}.parameters")
    return Tool(name, said, taken or _QUERY)


def _homes(tool: Tool | ServerTool) -> Iterator[tuple[str, str]]:
    """Yield namespace and name of the functions that a tool offers."""
    if isinstance(tool, Tool):
        yield "", tool.name
    elif tool.kind == _SPACE:
        space = str(tool.value.get("name"))
        for member in objects(tool.value.get("tools")):
            yield space, str(member.get("name"))


def _found(output: Json, known: set[tuple[str, str]]) -> Iterator[Tool | ServerTool]:
    """Yield the tools that a search has found and that are not offered yet."""
    for place, item in enumerate(a_list(output.get("tools"), "input.tools")):
        where = f"input.tools[{place}]"
        tool = tool_of(an_object(item, where), where)
        new = [home for home in _homes(tool) if home not in known]
        known.update(new)
        if isinstance(tool, ServerTool) and tool.kind == _SPACE:
            names = {name for _, name in new}
            listed = objects(tool.value.get("tools"))
            members = [member for member in listed if str(member.get("name")) in names]
            tool = codec.replace(tool, value={**tool.value, "tools": members})
        elif isinstance(tool, Tool):
            extra = {name: value for name, value in tool.extra.items() if name != DEFERRED}
            tool = codec.replace(tool, extra=extra)
        if new:
            yield tool


def _message(message: Message, name: str) -> Message:
    parts = tuple(_part(part, name) for part in message.parts)
    if any(isinstance(part, ToolResult) for part in parts):
        return codec.replace(message, role="tool", parts=parts)
    is_same = all(a is b for a, b in zip(parts, message.parts, strict=True))
    return message if is_same else codec.replace(message, parts=parts)


def _part(part: Part, name: str) -> Part:
    if not isinstance(part, Opaque):
        return part
    if _is_client(part, CALL):
        arguments: Any = part.value.get("arguments")
        said = arguments if isinstance(arguments, str) else codec.encode(arguments or {}).decode()
        return ToolCall(a_name(part.value.get("call_id"), "input.call_id"), name, said)
    if _is_client(part, OUTPUT):
        call_id = a_name(part.value.get("call_id"), "input.call_id")
        return ToolResult(call_id, (Text(_words(part.value)),))
    return part


def _words(output: Json) -> str:
    """Return what a search tells the model: the names that it may call from now on."""
    listed = a_list(output.get("tools"), "input.tools")
    tools = [tool_of(an_object(item, "input.tools"), "input.tools") for item in listed]
    homes = [home for tool in tools for home in _homes(tool)]
    names = [flat_name(space, name) if space else name for space, name in homes]
    return _FOUND + ", ".join(names) if names else _NONE
