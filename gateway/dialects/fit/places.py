"""Where a part stands, in the words of the caller's own format: what errors and warnings name (K33)."""

from collections.abc import Callable, Sequence

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


def message_at(origin: str, messages: Sequence[Message], at: int) -> str:
    """Return the name of a message: `messages[2]`, or `input` where items are no messages (Responses)."""
    if origin == "openai_responses":
        return "input"
    before = messages[:at]
    if origin == "openai_chat":
        return f"messages[{sum(_chat_messages(message) for message in before)}]"
    if origin == "anthropic_messages":
        if at == 0 and messages[at].role in _SYSTEM:
            return "system"
        return f"messages[{_turns(before, messages[at])}]"
    return f"messages[{at}]"


def part_at(origin: str, messages: Sequence[Message], at: int, part: int, kind: str) -> str:
    """Return the name of a part: `messages[2].content[1] (image)`."""
    if origin == "openai_responses":
        return f"input ({_ITEMS.get(kind, kind)})"
    place = message_at(origin, messages, at)
    if place == "system":
        return f"system[{part}] ({kind})"
    if origin == "anthropic_messages" and at and _opens(messages[at - 1], messages[at]):
        part += len(messages[at - 1].parts)
    return f"{place}.content[{part}] ({kind})"


def result_part_at(
    origin: str, messages: Sequence[Message], at: int, result: int, part: int, kind: str
) -> str:
    """Return the name of a part in a result of a tool: `messages[2].content[0].content[1] (image)`."""
    if origin == "openai_responses":
        return f"input ({_ITEMS.get(kind, kind)})"
    if origin == "openai_chat":
        first = sum(_chat_messages(each) for each in messages[:at])
        return f"messages[{first + result}].content[{part}] ({kind})"
    return f"{message_at(origin, messages, at)}.content[{result}].content[{part}] ({kind})"


def call_at(origin: str, messages: Sequence[Message], at: int, call_id: str) -> str:
    """Return the name of a tool call or result: its message and its id; results may be messages of their own."""
    place = message_at(origin, messages, at)
    message = messages[at]
    if origin == "openai_chat" and message.role == "tool":
        first = sum(_chat_messages(each) for each in messages[:at])
        more = next((n for n, part in enumerate(message.parts) if _id(part) == call_id), 0)
        place = f"messages[{first + more}]"
    return f"{place} (tool call {call_id})"


def _id(part: object) -> str:
    return getattr(part, "call_id", "")


def _chat_messages(message: Message) -> int:
    """Return how many messages of chat a message was: each result of a tool is one."""
    return len(message.parts) if message.role == "tool" else 1


def _opens(last: Message, this: Message) -> bool:
    """Return whether results open the message of the user behind them."""
    return last.role == "tool" and this.role == "user"


def _turns(before: Sequence[Message], message: Message) -> int:
    """Return the index in Messages: leading system prompts stand apart, results open their user's message."""
    count = 0
    for last, this in zip((None, *before), (*before, message), strict=True):
        leads = count == 0 and this.role in _SYSTEM
        joins = last is not None and _opens(last, this)
        count += not (leads or joins)
    return max(count - 1, 0)
