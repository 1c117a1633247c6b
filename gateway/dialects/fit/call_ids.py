"""Ids of calls in a history as a target takes them: in its form, and unique; the same in every turn (K33)."""

from collections.abc import Sequence

from gateway.core import codec
from gateway.core.message import Message, Part, ToolCall, ToolResult
from gateway.core.scope import digest
from gateway.dialects.fit.names import fits, shortened
from gateway.dialects.grammar import NameRules


def fit_call_ids(messages: Sequence[Message], rules: NameRules) -> Sequence[Message]:
    """Return the messages with ids that fit, in calls and their results; the same ones where all fit already.

    An id that an earlier turn has used is made a new one, by how often it was used: stable when a history grows.
    """
    own = {p.id for m in messages for p in m.parts if isinstance(p, ToolCall) and fits(p.id, rules)}
    used: dict[str, int] = {}
    now: dict[str, str] = {}
    taken = set(own)
    changed: list[Message] | None = None
    for at, message in enumerate(messages):
        if message.role not in {"assistant", "tool"}:
            continue
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolCall):
                count = used.get(part.id, 0)
                used[part.id] = count + 1
                now[part.id] = _made(part.id, count, rules, taken)
            parts.append(_renamed(part, now))
        if any(a is not b for a, b in zip(parts, message.parts, strict=True)):
            if changed is None:
                changed = list(messages)
            changed[at] = codec.replace(message, parts=tuple(parts))
    return messages if changed is None else changed


def _made(call_id: str, count: int, rules: NameRules, taken: set[str]) -> str:
    if not count and fits(call_id, rules):
        return call_id
    made = shortened(digest(call_id, str(count)), rules, taken)
    taken.add(made)
    return made


def _renamed(part: Part, now: dict[str, str]) -> Part:
    if isinstance(part, ToolCall):
        made = now[part.id]
        return part if made == part.id else codec.replace(part, id=made)
    if isinstance(part, ToolResult):
        made = now.get(part.call_id, part.call_id)
        return part if made == part.call_id else codec.replace(part, call_id=made)
    return part
