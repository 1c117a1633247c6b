"""Results of tools: of one turn together, ordered as its calls, each call answered once (B104)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.core.message import NO_BAG, Message, Part, Text, ToolCall, ToolResult
from gateway.dialects.fit.places import Places
from gateway.dialects.losses import Notes, refuse

MISSING = "No result of this tool call is known."
SHOWN_BELOW = "(shown below)"


@dataclass(slots=True)
class Turn:
    """What the model said in a row, and what followed until it spoke again; with indices of the history."""

    said: list[tuple[int, Message]] = field(default_factory=list[tuple[int, Message]])
    results: list[tuple[int, Message]] = field(default_factory=list[tuple[int, Message]])
    rest: list[Message] = field(default_factory=list[Message])


def turns(messages: Sequence[Message | None], first: int) -> Iterator[Turn]:
    """Yield the turns of a history from an index on; the first may have nothing that the model said."""
    turn = Turn()
    for at in range(first, len(messages)):
        message = messages[at]
        if message is None:
            continue
        if message.role == "assistant":
            if turn.rest or turn.results:
                yield turn
                turn = Turn()
            turn.said.append((at, message))
        elif message.role == "tool":
            turn.results.append((at, message))
        else:
            turn.rest.append(message)
    yield turn


class Results:
    """Checks and orders the results of one prompt's turns."""

    def __init__(self, places: Places, notes: Notes, *, complete: bool) -> None:
        self._places = places
        self._notes = notes
        self._complete = complete

    def of(self, turn: Turn) -> Message | None:
        """Return the one message with all results of a turn, None for none.

        Raises InputError `invalid_request` naming the message of a result that is an orphan or a double.
        """
        calls = self._calls(turn)
        if not calls and not turn.results:
            return None
        found = self._found(turn, calls)
        parts: list[Part] = []
        for call, at in calls.values():
            result = found.get(call.id)
            if result is not None:
                parts.append(result)
            elif self._complete:
                self._notes.lost("result_missing", self._places.call(at, call.id))
                parts.append(_error(call))
        if not parts:
            return None
        if len(turn.results) == 1 and _same(turn.results[0][1].parts, parts):
            return turn.results[0][1]
        extra = {name: held for _, each in turn.results for name, held in each.extra.items()}
        return Message("tool", tuple(parts), extra=extra or NO_BAG)

    def _calls(self, turn: Turn) -> dict[str, tuple[ToolCall, int]]:
        calls: dict[str, tuple[ToolCall, int]] = {}
        for at, message in turn.said:
            for part in message.parts:
                if isinstance(part, ToolCall):
                    if part.id in calls:
                        raise self._refused("call_repeated", at, part.id)
                    calls[part.id] = (part, at)
        return calls

    def _found(self, turn: Turn, calls: dict[str, tuple[ToolCall, int]]) -> dict[str, ToolResult]:
        found: dict[str, ToolResult] = {}
        for at, message in turn.results:
            for part in message.parts:
                if not isinstance(part, ToolResult):
                    continue
                if part.call_id not in calls:
                    raise self._refused("result_orphaned", at, part.call_id)
                if part.call_id in found:
                    raise self._refused("result_repeated", at, part.call_id)
                found[part.call_id] = part
        return found

    def _refused(self, row: str, at: int, call_id: str) -> InputError:
        place = self._places.call(at, call_id)
        return refuse(row, place, param=place.partition(" ")[0])


def _same(one: Sequence[Part], other: Sequence[Part]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def _error(call: ToolCall) -> ToolResult:
    return ToolResult(call.id, (Text(MISSING),), is_error=True, name=call.name, custom=call.custom)


def text_only(message: Message) -> tuple[Message, Message | None]:
    """Return results of text alone, and a message of the user that shows what else they held."""
    parts: list[Part] = []
    shown: list[Part] = []
    for result in message.parts:
        if not isinstance(result, ToolResult) or all(isinstance(p, Text) for p in result.parts):
            parts.append(result)
            continue
        texts = tuple(part for part in result.parts if isinstance(part, Text))
        others = [part for part in result.parts if not isinstance(part, Text)]
        parts.append(codec.replace(result, parts=texts or (Text(SHOWN_BELOW),)))
        shown += (Text(f"Content of the result of tool call {result.call_id}:"), *others)
    if not shown:
        return message, None
    return codec.replace(message, parts=tuple(parts)), Message("user", tuple(shown))
