"""How an answer of Converse ended and what it cost, the same for whole answers and streams (K35)."""

from gateway.core.answer import Finish
from gateway.core.message import Bag
from gateway.core.usage import Usage
from gateway.dialects.base import ProviderError
from gateway.dialects.bedrock.wire import Tokens
from gateway.dialects.counts import plausible, together

_FINISHES: dict[str, Finish] = {
    "end_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "stop_sequence": "stop_sequence",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
    "refusal": "refusal",
    "pause_turn": "pause",
}
_BEFORE_CALLS = frozenset({"length", "content_filter", "refusal"})
_MALFORMED = {
    "malformed_model_output": "The model's output could not be read.",
    "malformed_tool_use": "The model called a tool in a form that could not be read.",
}


def finish_of(reason: str, *, has_calls: bool) -> Finish:
    """Return why an answer ended; `has_calls`: it holds calls that are complete, unless it was cut."""
    finish = _FINISHES.get(reason, "stop")
    if has_calls and finish not in _BEFORE_CALLS:
        return "tool_calls"
    return finish


def fault_of(reason: str) -> ProviderError | None:
    """Return the error that a reason for the end stands for, if it does: there is no answer to give."""
    words = _MALFORMED.get(reason)
    return ProviderError(words, type=reason) if words else None


def stop_sequence_of(fields: Bag | None) -> str:
    """Return which stop sequence ended the answer, where the model said so."""
    said = (fields or {}).get("stop_sequence")
    return said if isinstance(said, str) else ""


def usage_of(tokens: Tokens | None) -> Usage | None:
    """Return the counts as totals: what the cache gave and took is a part of the input (K07)."""
    if tokens is None:
        return None
    cached, written = tokens.cache_read_input_tokens, tokens.cache_write_input_tokens
    total = tokens.input_tokens
    return Usage(
        input=None if total is None else together(total, cached, written),
        output=plausible(tokens.output_tokens),
        cached=plausible(cached),
        cache_write=plausible(written),
    )
