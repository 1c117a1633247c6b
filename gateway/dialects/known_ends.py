"""Reasons for the end of an answer that every format can tell; any other is told by the nearest, and named."""

from gateway.dialects.losses import Notes

_WHOLE = (
    "complete", "completed", "continuation", "done", "end_turn", "eos", "eos_token", "finish_reason_unspecified",
    "stop", "stop_sequence",
)  # fmt: skip
_CUT = (
    "incomplete", "length", "max_output_tokens", "max_tokens", "model_context_window_exceeded", "model_length",
)  # fmt: skip
_CALLS = ("function_call", "tool_call", "tool_calls", "tool_use")
_BLOCKED = (
    "blocklist", "content_filter", "content_filtered", "guardrail_intervened", "image_prohibited_content",
    "image_recitation", "image_safety", "jailbreak", "model_armor", "prohibited_content", "recitation", "refusal",
    "safety", "sensitive", "spii",
)  # fmt: skip
_TOLD_ELSEWHERE = ("compaction", "pause_turn")
"""Where a format has no word for these, its writer says so."""
_KNOWN = frozenset({"", *_WHOLE, *_CUT, *_CALLS, *_BLOCKED, *_TOLD_ELSEWHERE})


def note_end(native: str, notes: Notes) -> None:
    """Name a provider's reason for the end that no format of a caller has a word for."""
    if native.lower() not in _KNOWN:
        notes.lost("finish_changed", native[:64])
