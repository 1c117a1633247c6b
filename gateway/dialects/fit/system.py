"""System prompts where a target takes them: in place, in front, or as one text; never lost or given away (B115)."""

from collections.abc import Sequence

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.core.message import Message, Part, Text
from gateway.dialects.losses import Notes, refuse

SYSTEM_ROLES = frozenset({"system", "developer"})
_OPEN = "<system_message>\n"
_CLOSE = "\n</system_message>"
_GLUE = "\n\n"


def leading(messages: Sequence[Message]) -> int:
    """Return how many messages in front are system prompts."""
    count = 0
    while count < len(messages) and messages[count].role in SYSTEM_ROLES:
        count += 1
    return count


def marked(message: Message) -> Message:
    """Return a system prompt as a turn of the user that says what it is, at the same place."""
    texts = [at for at, part in enumerate(message.parts) if isinstance(part, Text)]
    parts = list(message.parts)
    for at in texts:
        part = parts[at]
        before = _OPEN if at == texts[0] else ""
        behind = _CLOSE if at == texts[-1] else ""
        if isinstance(part, Text):
            parts[at] = codec.replace(part, text=f"{before}{part.text}{behind}")
    return Message("user", tuple(parts))


def single(messages: Sequence[Message], place: str, notes: Notes) -> Message:
    """Return leading system prompts as one message with one text.

    Raises InputError `invalid_request` for what is no text.
    """
    parts = [part for message in messages for part in message.parts]
    if len(messages) == 1 and len(parts) == 1 and isinstance(parts[0], Text):
        return messages[0]
    texts: list[str] = []
    for part in parts:
        if not isinstance(part, Text):
            raise _refused(part, place)
        texts.append(part.text)
        if part.cache is not None and part is not parts[-1]:
            notes.lost("cache_dropped", place)
    last = parts[-1] if parts else None
    cache = last.cache if isinstance(last, Text) else None
    return Message("system", (Text(_GLUE.join(texts), cache=cache),))


def _refused(part: Part, place: str) -> InputError:
    kind = type(part).__name__.lower()
    return refuse("part_unsupported", f"{place} ({kind} in a system message)", param=place)
