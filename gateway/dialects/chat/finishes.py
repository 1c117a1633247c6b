"""Why answers ended: providers' words read from the content too, and the words that chat callers know (K35)."""

from collections.abc import Sequence

from gateway.core.answer import Finish
from gateway.core.message import Part, Refusal, ToolCall

_READ: dict[str, Finish] = {
    "abort": "length",
    "content_filter": "content_filter",
    "content_filtered": "content_filter",
    "insufficient_system_resource": "length",
    "length": "length",
    "max_tokens": "length",
    "MAX_TOKENS": "length",
    "model_context_window_exceeded": "length",
    "model_length": "length",
    "network_error": "length",
    "refusal": "refusal",
    "safety": "content_filter",
    "SAFETY": "content_filter",
    "sensitive": "content_filter",
}
"""Words that say more than that the answer is whole."""
WORDS: dict[Finish, str] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
    "refusal": "content_filter",
    "stop_sequence": "stop",
    "pause": "stop",
}
"""What a chat caller is told."""


def finish_of(native: str, *, calls: bool, refused: bool, stop: str = "") -> Finish:
    """Return the reason: `calls` and `refused` tell what the answer holds, `stop` the sequence it met."""
    said = _READ.get(native)
    if said == "length":
        return said
    if calls and said is None:
        return "tool_calls"
    if refused:
        return "refusal"
    if said is not None:
        return said
    return "stop_sequence" if stop else "stop"


def finish_for(native: str, parts: Sequence[Part], stop: str = "") -> Finish:
    """Return the reason for an answer that is known whole."""
    calls = any(isinstance(part, ToolCall) for part in parts)
    refused = any(isinstance(part, Refusal) for part in parts)
    return finish_of(native, calls=calls, refused=refused, stop=stop)
