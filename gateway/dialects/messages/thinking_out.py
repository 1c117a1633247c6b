"""How much a model of this format shall think, and how long it may answer: budgets, efforts and their bounds."""

from typing import Any, NamedTuple

from gateway.core.codec import replace
from gateway.core.message import Prompt, Reasoning
from gateway.dialects.fit.spoken import word
from gateway.dialects.losses import Notes
from gateway.dialects.messages.blocks_in import DIALECT
from gateway.dialects.messages.models import Traits
from gateway.dialects.sides import Facts

DEFAULT_MAX_TOKENS = 4096
"""The longest answer of a model of which nothing is known, where the caller says nothing (B111)."""
_LEAST_BUDGET = 1024
_MOST_BUDGET = 32_000
_SHARES = {"minimal": 0.1, "low": 0.2, "medium": 0.5, "high": 0.8, "xhigh": 0.9, "max": 0.95}
_USUAL = "medium"
_TOLD = frozenset({"display", "type"})
_ORDER = ("minimal", "low", "medium", "high", "xhigh", "max")
_NEEDS_THINKING, _MOST_WITHOUT = frozenset({"xhigh", "max"}), "high"
"""Efforts that go with thinking alone, and the most that goes without, where a model thinks unasked."""
_EFFORT_BY_BUDGET = ((4096, "low"), (16_384, "medium"))


class Plan(NamedTuple):
    """What goes into the request; `thinks`: reasoning is switched on by it."""

    max_tokens: int
    thinking: dict[str, Any] | None
    effort: str
    thinks: bool


def plan_thinking(prompt: Prompt, facts: Facts, traits: Traits, notes: Notes) -> Plan:
    """Return thinking and limits that keep the format's rules: the budget is below the limit, both fit the model.

    A forced call of a tool goes before thinking, which the format does not take together.
    """
    reasoning = _understood(prompt, notes)
    limit = _limit(prompt, facts, traits, notes)
    if reasoning is None:
        return Plan(limit, _silenced(prompt, traits), "", thinks=False)
    known = facts.max_output_tokens or traits.most_output
    if prompt.max_tokens is None and known is None and reasoning.budget:
        limit += reasoning.budget
    effort = _effort(reasoning, traits, notes)
    if not _wanted(prompt, reasoning):
        if reasoning.effort not in {"", "none"} and not effort:
            notes.lost("field_unsupported", word(prompt.origin, "effort"))
        off = _off(reasoning, traits, notes) or _silenced(prompt, traits)
        off = _with_rest(off, prompt, reasoning, notes)
        return Plan(limit, off, _beside(off, effort, traits, notes), thinks=False)
    if _is_forced(prompt):
        notes.lost("value_changed", "reasoning")
        off = {"type": "disabled"} if traits.quiet else None
        return Plan(limit, off, _beside(off, effort, traits, notes), thinks=False)
    if reasoning.effort and reasoning.budget is not None and not traits.efforts:
        notes.lost("field_unsupported", word(prompt.origin, "effort"))
    thinking = _thinking(reasoning, limit, traits, notes)
    if thinking is not None and thinking["type"] == "adaptive":
        effort = effort or _effort_of(reasoning, notes)
    thinking = _with_rest(thinking, prompt, reasoning, notes)
    return Plan(limit, thinking, effort, thinks=thinking is not None)


def _is_forced(prompt: Prompt) -> bool:
    choice = prompt.choice
    return bool(prompt.tools) and choice is not None and choice.mode in {"required", "named"}


def _silenced(prompt: Prompt, traits: Traits) -> dict[str, Any] | None:
    """Return that thinking is off, for a forced call of a model that thinks unasked: it would be refused."""
    return {"type": "disabled"} if _is_forced(prompt) and traits.forced == "quiet" else None


def _beside(off: dict[str, Any] | None, effort: str, traits: Traits, notes: Notes) -> str:
    """Return the effort that a model takes which would think if it were not told not to."""
    if off is None or not traits.thinks or effort not in _NEEDS_THINKING:
        return effort
    notes.lost("value_changed", "reasoning_effort")
    return _MOST_WITHOUT


def _with_rest(
    thinking: dict[str, Any] | None, prompt: Prompt, reasoning: Reasoning, notes: Notes
) -> dict[str, Any] | None:
    """Return what is said of thinking with the members that only this format knows, of a caller who speaks it."""
    if prompt.origin != DIALECT or reasoning.extra.keys() <= _TOLD:
        return thinking
    rest = {name: held for name, held in reasoning.extra.items() if name not in _TOLD}
    if thinking is not None:
        return {**thinking, **rest}
    for name in rest:
        notes.lost("field_unknown", f"thinking.{name}")
    return None


def _understood(prompt: Prompt, notes: Notes) -> Reasoning | None:
    """Return what is asked; an effort of an unknown word means what no word means, and never the most."""
    reasoning = prompt.reasoning
    if reasoning is None or reasoning.effort in {"", "none", *_ORDER}:
        return reasoning
    notes.lost("value_changed", word(prompt.origin, "effort"))
    return replace(reasoning, effort="")


def _limit(prompt: Prompt, facts: Facts, traits: Traits, notes: Notes) -> int:
    most, asked = facts.max_output_tokens, prompt.max_tokens
    if asked is None:
        return most or traits.most_output or DEFAULT_MAX_TOKENS
    if most is not None and asked > most:
        notes.lost("value_changed", "max_tokens")
        return most
    return asked


def _wanted(prompt: Prompt, reasoning: Reasoning) -> bool:
    """Tell whether thinking was asked for; in this format itself an effort alone does not."""
    if reasoning.enabled is not None:
        return reasoning.enabled
    by_effort = bool(reasoning.effort) and prompt.origin != DIALECT
    return reasoning.effort != "none" and (by_effort or bool(reasoning.budget))


def _off(reasoning: Reasoning, traits: Traits, notes: Notes) -> dict[str, Any] | None:
    if reasoning.enabled is not False and reasoning.effort != "none":
        return None
    if traits.quiet:
        return {"type": "disabled"}
    if traits.thinks:
        notes.lost("value_changed", "reasoning")
    return None


def _effort(reasoning: Reasoning, traits: Traits, notes: Notes) -> str:
    """Return the effort as the model knows it: the nearest below, or the least; "" for none."""
    asked = reasoning.effort
    if asked in {"", "none"} or not traits.efforts:
        return ""
    if asked in traits.efforts:
        return asked
    rank = _ORDER.index(asked)
    below = [known for known in traits.efforts if _ORDER.index(known) <= rank]
    notes.lost("value_changed", "reasoning_effort")
    return below[-1] if below else traits.efforts[0]


def _thinking(
    reasoning: Reasoning, limit: int, traits: Traits, notes: Notes
) -> dict[str, Any] | None:
    shown = {
        key: value for key, value in reasoning.extra.items() if key == "display" and value
    } or ({"display": "summarized"} if reasoning.summary not in {"", "none"} else {})
    if traits.adaptive and (reasoning.budget is None or not traits.budget):
        kind = reasoning.extra.get("type")
        return {"type": kind if isinstance(kind, str) else "adaptive", **shown}
    budget = _budget(reasoning, limit) if traits.budget else 0
    if budget < _LEAST_BUDGET:
        notes.lost("field_unsupported", "reasoning")
        return None
    if reasoning.budget is not None and budget != reasoning.budget:
        notes.lost("value_changed", "thinking.budget_tokens")
    return {"type": "enabled", "budget_tokens": budget, **(shown if traits.adaptive else {})}


def _budget(reasoning: Reasoning, limit: int) -> int:
    """Return the tokens to think with: what was asked, or the effort's share; below the limit, 0 for none."""
    if limit <= _LEAST_BUDGET:
        return 0
    if reasoning.budget is not None and _LEAST_BUDGET <= reasoning.budget < limit:
        return reasoning.budget
    share = _SHARES.get(reasoning.effort or _USUAL, _SHARES[_USUAL])
    if reasoning.budget is not None and reasoning.budget >= limit:
        share = _SHARES["high"]
    asked = _LEAST_BUDGET if reasoning.budget is not None and reasoning.budget < limit else 0
    return asked or max(_LEAST_BUDGET, min(int(limit * share), _MOST_BUDGET))


def _effort_of(reasoning: Reasoning, notes: Notes) -> str:
    """Return the effort that stands for a budget, at a model that takes no budgets."""
    if reasoning.budget is None:
        return ""
    notes.lost("value_changed", "thinking.budget_tokens")
    return next((name for most, name in _EFFORT_BY_BUDGET if reasoning.budget <= most), "high")
