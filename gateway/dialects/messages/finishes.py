"""Why an answer ended: the format's words and the neutral ones, true to what the answer holds (K35)."""

from collections.abc import Sequence

from gateway.core.answer import Finish
from gateway.core.message import Part, ToolCall
from gateway.dialects.messages.blocks_out import read_arguments

_READ: dict[str, Finish] = {
    "end_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "stop_sequence": "stop_sequence",
    "tool_use": "tool_calls",
    "pause_turn": "pause",
    "compaction": "pause",
    "refusal": "refusal",
}
_WRITTEN: dict[Finish, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "stop_sequence": "stop_sequence",
    "tool_calls": "tool_use",
    "pause": "pause_turn",
    "refusal": "refusal",
    "content_filter": "refusal",
}


def read_finish(native: str, parts: Sequence[Part]) -> Finish:
    """Return why an answer ended: at a usual end a complete call makes it `tool_calls`, a cut one `length`."""
    finish = _READ.get(native, "stop")
    if finish not in {"stop", "tool_calls"}:
        return finish
    calls = [part for part in parts if isinstance(part, ToolCall)]
    if any(call.custom or read_arguments(call.arguments) is not None for call in calls):
        return "tool_calls"
    return "length" if calls else "stop"


def write_finish(finish: Finish, native: str) -> str:
    """Return the format's word; the provider's own where it is one of this format and says the same."""
    return native if _READ.get(native) == finish else _WRITTEN[finish]
