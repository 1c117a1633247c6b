"""Reasoning in a history: what this target may get back, and what follows where a seal was lost (K32, B100)."""

from collections.abc import Sequence

from gateway.core import codec
from gateway.core.message import Message, Prompt, Reasoning, Text, Thinking, ToolCall
from gateway.dialects.fit.places import Place
from gateway.dialects.grammar import Grammar
from gateway.dialects.losses import Notes

_OFF = Reasoning(enabled=False)


def fit_thinking(part: Thinking, place: Place, grammar: Grammar, notes: Notes) -> Thinking | None:
    """Return the reasoning that this target may get: sealed for it, or open where it takes that; else None."""
    sealed = bool(part.signature or part.redacted)
    if sealed and part.maker in grammar.makers:
        return part
    if grammar.open_thinking and part.text:
        if not sealed and not part.maker:
            return part
        if sealed:
            notes.lost("seal_removed", place())
        return codec.replace(part, signature="", redacted="", maker="", id="")
    notes.lost("thinking_dropped", place())
    return None


def unsealed(
    part: Text | ToolCall, place: Place, grammar: Grammar, notes: Notes
) -> Text | ToolCall:
    """Return a text or call without a seal that this target cannot read."""
    if not part.signature or part.maker in grammar.makers:
        return part
    notes.lost("thinking_dropped", f"the seal of {place()}")
    return codec.replace(part, signature="", maker="")


def settled(
    prompt: Prompt, messages: Sequence[Message], grammar: Grammar, notes: Notes
) -> Reasoning | None:
    """Return how much to think: nothing, where the turn in progress has lost the seal that thinking needs."""
    reasoning = prompt.reasoning
    if not grammar.sealed_turns or reasoning is None or not is_on(reasoning):
        return reasoning
    if not _lost(messages, grammar):
        return reasoning
    notes.lost("thinking_off")
    return _OFF


def is_on(reasoning: Reasoning) -> bool:
    """Return whether thinking is asked for."""
    if reasoning.enabled is not None:
        return reasoning.enabled
    return reasoning.budget is not None or reasoning.effort not in {"", "none"}


def _lost(messages: Sequence[Message], grammar: Grammar) -> bool:
    """Return whether the turn that the last results belong to begins without sealed reasoning."""
    end = len(messages)
    while end and messages[end - 1].role not in {"assistant", "tool"}:
        end -= 1
    if not end or messages[end - 1].role != "tool":
        return False
    begin = end
    while begin and messages[begin - 1].role in {"assistant", "tool"}:
        begin -= 1
    first = next((each for each in messages[begin:end] if each.role == "assistant"), None)
    if first is None or not any(isinstance(part, ToolCall) for part in first.parts):
        return False
    part = first.parts[0]
    if not isinstance(part, Thinking) or not (part.signature or part.redacted):
        return True
    return part.maker not in grammar.makers
