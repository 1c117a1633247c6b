"""The one table of how a response can stand: what ends it, and which ends are answers (B127)."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gateway.core.answer import Finish
from gateway.core.codec import as_object
from gateway.core.message import Part, Refusal, ToolCall

ORIGIN = "openai_responses"
"""The format's name."""
MAKER = "openai"
"""Who can read reasoning that is sealed in `encrypted_content` (K32)."""


class State(NamedTuple):
    """`ended`: nothing comes after it. `good`: what came is an answer, cut short perhaps."""

    ended: bool
    good: bool


STATES: dict[str, State] = {
    "queued": State(ended=False, good=False),
    "in_progress": State(ended=False, good=False),
    "completed": State(ended=True, good=True),
    "incomplete": State(ended=True, good=True),
    "failed": State(ended=True, good=False),
    "cancelled": State(ended=True, good=False),
}
END_EVENTS: dict[str, State] = {f"response.{name}": s for name, s in STATES.items() if s.ended}
"""Events that end a stream, by type. An `error` event ends it too, before the `response.failed` that follows."""
_LENGTH = "max_output_tokens"
_FILTER = "content_filter"


def native_of(response: Mapping[str, Any]) -> str:
    """Return the provider's own words for the end: the status, and the reason where it is incomplete."""
    status = response.get("status")
    reason = _reason(response)
    return f"{status}:{reason}" if reason else str(status or "completed")


def finish_of(response: Mapping[str, Any], parts: Sequence[Part], *, cut: bool) -> Finish:
    """Return why an answer ended; `cut`: its last call is not complete (K35)."""
    if response.get("status") == "incomplete":
        return "content_filter" if _reason(response) == _FILTER else "length"
    if cut:
        return "length"
    if any(isinstance(part, ToolCall) for part in parts):
        return "tool_calls"
    return "refusal" if any(isinstance(part, Refusal) for part in parts) else "stop"


def _reason(response: Mapping[str, Any]) -> str:
    reason = (as_object(response.get("incomplete_details")) or {}).get("reason")
    return reason if isinstance(reason, str) else ""


def ending_of(finish: Finish, *, refused: bool) -> tuple[str, str]:
    """Return status and reason that tell a finish; `refused`: the answer holds the words of a refusal."""
    match finish:
        case "length":
            return "incomplete", _LENGTH
        case "content_filter":
            return "incomplete", _FILTER
        case "refusal" if not refused:
            return "incomplete", _FILTER
        case _:
            return "completed", ""
