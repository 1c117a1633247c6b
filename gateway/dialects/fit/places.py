"""Where a part stands, in the words of the caller's own format: what errors and warnings name (K33)."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from gateway.core.message import Message

_SYSTEM = frozenset({"system", "developer"})
_ITEMS = {
    "thinking": "reasoning",
    "image": "input_image",
    "file": "input_file",
    "audio": "input_audio",
}
"""What Responses calls the parts."""
Place = Callable[[], str]
"""The name of a part, made when it is needed: a history is long, and most of it is right."""


class Places:
    """The names of all places of one history, each found in constant time; none is counted before it is asked."""

    __slots__ = ("_indices", "_messages", "_origin")

    def __init__(self, origin: str, messages: Sequence[Message]) -> None:
        self._origin = origin
        self._messages = messages
        self._indices: list[int] | None = None

    def message(self, at: int) -> str:
        """Return the name of a message: `messages[2]`, or `input` where items are no messages (Responses)."""
        if self._origin == "openai_responses":
            return "input"
        if self._origin == "anthropic_messages" and at == 0 and self._messages[0].role in _SYSTEM:
            return "system"
        return f"messages[{self._index(at)}]"

    def part(self, at: int, part: int, kind: str, item: str = "") -> str:
        """Return the name of a part: `messages[2].content[1] (image)`; `item` is that of its item in Responses."""
        if self._origin == "openai_responses":
            return f"{item or 'input'} ({_ITEMS.get(kind, kind)})"
        place = self.message(at)
        if place == "system":
            return f"system[{part}] ({kind})"
        if self._origin == "anthropic_messages" and at:
            before = self._messages[at - 1]
            part += len(before.parts) if _opens(before, self._messages[at]) else 0
        return f"{place}.content[{part}] ({kind})"

    def result_part(self, at: int, result: int, part: int, kind: str, item: str = "") -> str:
        """Return the name of a part in a result of a tool: `messages[2].content[0].content[1] (image)`."""
        if self._origin == "openai_responses":
            return f"{item or 'input'} ({_ITEMS.get(kind, kind)})"
        if self._origin == "openai_chat":
            return f"messages[{self._index(at) + result}].content[{part}] ({kind})"
        return f"{self.message(at)}.content[{result}].content[{part}] ({kind})"

    def call(self, at: int, call_id: str) -> str:
        """Return the name of a tool call or result: its message and its id; results may be messages."""
        place = self.message(at)
        message = self._messages[at]
        if self._origin == "openai_chat" and message.role == "tool":
            more = next((n for n, part in enumerate(message.parts) if _id(part) == call_id), 0)
            place = f"messages[{self._index(at) + more}]"
        return f"{place} (tool call {call_id})"

    def _index(self, at: int) -> int:
        """Return the index that a message has in the caller's list."""
        if self._indices is None:
            self._indices = list(_COUNTS.get(self._origin, _as_it_is)(self._messages))
        return self._indices[at]


def _id(part: object) -> str:
    return getattr(part, "call_id", "")


def _as_it_is(messages: Sequence[Message]) -> Iterable[int]:
    return range(len(messages))


def _in_chat(messages: Sequence[Message]) -> Iterator[int]:
    """Yield the index of each message of chat, where each result of a tool is one."""
    index = 0
    for message in messages:
        yield index
        index += len(message.parts) if message.role == "tool" else 1


def _opens(last: Message, this: Message) -> bool:
    """Return whether results open the message of the user behind them."""
    return last.role == "tool" and this.role == "user"


def _in_messages(messages: Sequence[Message]) -> Iterator[int]:
    """Yield the index in Messages: leading system prompts stand apart, results open their user's message."""
    count, last = 0, None
    for this in messages:
        leads = count == 0 and this.role in _SYSTEM
        joins = last is not None and _opens(last, this)
        count += not (leads or joins)
        last = this
        yield max(count - 1, 0)


_COUNTS: dict[str, Callable[[Sequence[Message]], Iterable[int]]] = {
    "openai_chat": _in_chat,
    "anthropic_messages": _in_messages,
}
