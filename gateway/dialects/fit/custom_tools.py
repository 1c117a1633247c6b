"""Tools that take free text, for targets that know only functions: offered as one with a text `input`, and back."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gateway.core import codec
from gateway.core.answer import Answer, Delta, Event, PartBegan, PartEnded
from gateway.core.codec import as_object
from gateway.core.message import Message, Part, Prompt, Tool, ToolCall, ToolResult
from gateway.dialects.losses import Notes

_FIELD = "input"
_BAD = (codec.JSONError, RecursionError)


class CustomTools:
    """The custom tools of one request, by name. False when it has none."""

    __slots__ = ("_names",)

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)

    @classmethod
    def of(cls, prompt: Prompt) -> "CustomTools":
        """Return the custom tools of a prompt, in the names that its caller gave them."""
        if not prompt.tools:
            return _NO_CUSTOM_TOOLS
        return cls(t.name for t in prompt.tools if isinstance(t, Tool) and t.custom)

    def __bool__(self) -> bool:
        return bool(self._names)

    def answer(self, answer: Answer) -> Answer:
        """Return a whole answer in which calls of them are calls of custom tools again."""
        if not self._names:
            return answer
        choices = tuple(
            codec.replace(choice, parts=tuple(self._back(part) for part in choice.parts))
            for choice in answer.choices
        )
        return codec.replace(answer, choices=choices)

    def _back(self, part: Part) -> Part:
        if not isinstance(part, ToolCall) or not self.is_wrapped(part):
            return part
        text = InputText()
        said = text.feed(part.arguments) + text.end()
        return codec.replace(part, custom=True, arguments=said)

    def is_wrapped(self, call: ToolCall) -> bool:
        """Tell whether a call is one of a custom tool that was offered as a function."""
        return not call.custom and call.name in self._names

    def stream(self) -> "CustomStream":
        """Return what does the same for the events of one stream."""
        return CustomStream(self)


class CustomStream:
    """Turns calls back as they come: the text is told as soon as it is known."""

    __slots__ = ("_open", "_tools")

    def __init__(self, tools: CustomTools) -> None:
        self._tools = tools
        self._open: dict[tuple[int, int], InputText] = {}

    def events(self, events: Sequence[Event]) -> list[Event]:
        """Return the events with calls of custom tools in their own form."""
        found: list[Event] = []
        for event in events:
            match event:
                case PartBegan(choice, at, ToolCall() as call) if self._tools.is_wrapped(call):
                    text = self._open[choice, at] = InputText()
                    said = text.feed(call.arguments)
                    bare = codec.replace(call, custom=True, arguments=said)
                    found.append(PartBegan(choice, at, bare))
                case Delta(choice, at, piece) if (choice, at) in self._open:
                    said = self._open[choice, at].feed(piece)
                    if said:
                        found.append(Delta(choice, at, said))
                case PartEnded(choice, at) if (choice, at) in self._open:
                    said = self._open.pop((choice, at)).end()
                    if said:
                        found.append(Delta(choice, at, said))
                    found.append(event)
                case _:
                    found.append(event)
        return found


_NO_CUSTOM_TOOLS = CustomTools(())


def as_functions(prompt: Prompt, notes: Notes) -> Prompt:
    """Return a prompt in which custom tools, their calls and results are those of functions."""
    if not CustomTools.of(prompt) and not any(map(_has_custom, prompt.messages)):
        return prompt
    tools = tuple(
        _as_function(tool, notes) if isinstance(tool, Tool) and tool.custom else tool
        for tool in prompt.tools
    )
    messages = tuple(_plain(message) for message in prompt.messages)
    choice = prompt.choice and codec.replace(prompt.choice, custom=False)
    return codec.replace(prompt, tools=tools, messages=messages, choice=choice)


def _as_function(tool: Tool, notes: Notes) -> Tool:
    text: dict[str, Any] = {"type": "string", "description": _hint(tool.format, tool.name, notes)}
    parameters = {
        "type": "object",
        "properties": {_FIELD: text},
        "required": [_FIELD],
        "additionalProperties": False,
    }
    return codec.replace(tool, custom=False, format=None, parameters=parameters)


def _hint(form: Mapping[str, Any] | None, name: str, notes: Notes) -> str:
    """Return what is said of the text; a grammar can be told here, not enforced."""
    form = form or {}
    inner = as_object(form.get("grammar")) or form
    definition = inner.get("definition")
    if form.get("type") != "grammar" or not isinstance(definition, str):
        return "The whole input, as plain text."
    notes.lost("grammar_hinted", f"tools ({name})")
    return f"The whole input, as plain text. It must follow this {inner.get('syntax')} grammar:\n{definition}"


def _has_custom(message: Message) -> bool:
    for part in message.parts:  # noqa: SIM110  any() would cost three times as much, for every message
        if isinstance(part, ToolCall | ToolResult) and part.custom:
            return True
    return False


def _plain(message: Message) -> Message:
    if not _has_custom(message):
        return message
    return codec.replace(message, parts=tuple(_plain_part(part) for part in message.parts))


def _plain_part(part: Part) -> Part:
    match part:
        case ToolCall(custom=True):
            said = codec.encode({_FIELD: part.arguments}).decode()
            return codec.replace(part, custom=False, arguments=said)
        case ToolResult(custom=True):
            return codec.replace(part, custom=False)
        case _:
            return part


_HEAD = re.compile(r'\s*\{\s*"input"\s*:\s*"')
_MAYBE_HEAD = re.compile(
    r'\s*(?:\{\s*(?:"(?:i(?:n(?:p(?:u(?:t(?:"\s*(?::\s*)?)?)?)?)?)?)?)?)?\Z', re.DOTALL
)
_STOP = re.compile(r'["\\]')
_SHORT, _LONG, _PAIR = 2, 6, 12
"""Lengths of escapes: of one character, of one by its number, of two that are one character."""
_HIGH, _LOW = frozenset({"d8", "d9", "da", "db"}), frozenset({"dc", "dd", "de", "df"})


class InputText:
    """The text in `{"input": "..."}`, read piece by piece; what has another form is given whole, at its end."""

    __slots__ = ("_closed", "_held", "_inside")

    def __init__(self) -> None:
        self._held = ""
        self._inside = False
        self._closed = False

    def feed(self, piece: str) -> str:
        """Return what is known of the text by this piece."""
        if self._closed:
            return ""
        self._held += piece
        if not self._inside:
            head = _HEAD.match(self._held)
            if head is None:
                return ""
            self._inside = True
            self._held = self._held[head.end() :]
        return self._read()

    def end(self) -> str:
        """Return the rest: arguments of another form, in full."""
        if self._inside or not self._held:
            return ""
        try:
            fields = as_object(codec.decode(self._held))
        except _BAD:
            return "" if _MAYBE_HEAD.match(self._held) else self._held
        values = list((fields or {}).values())
        if not values and fields is not None:
            return ""
        own = (fields or {}).get(_FIELD, values[0] if len(values) == 1 else None)
        return own if isinstance(own, str) else self._held

    def _read(self) -> str:
        held, at = self._held, 0
        found: list[str] = []
        while True:
            stop = _STOP.search(held, at)
            if stop is None:
                found.append(held[at:])
                at = len(held)
                break
            found.append(held[at : stop.start()])
            at = stop.start()
            if held[at] == '"':
                self._closed = True
                break
            length = _escape_length(held, at)
            if length == 0:
                break
            found.append(_unescaped(held[at : at + length]))
            at += length
        self._held = held[at:]
        return "".join(found)


def _escape_length(text: str, at: int) -> int:
    """Return the length of the escape at a place, 0 while it is not all there."""
    rest = len(text) - at
    if rest < _SHORT:
        return 0
    if text[at + 1] != "u":
        return _SHORT
    if rest < _LONG:
        return 0
    if text[at + 2 : at + 4].lower() not in _HIGH:
        return _LONG
    following = text[at + _LONG : at + _PAIR]
    if not "\\u".startswith(following[:2]):
        return _LONG
    if len(following) < _LONG:
        return 0
    return _PAIR if following[2:4].lower() in _LOW else _LONG


def _unescaped(escape: str) -> str:
    try:
        return str(codec.decode(f'"{escape}"'))
    except _BAD:
        return "\ufffd"
