"""How much a model on Bedrock thinks: each family has its own words, outside of what Converse itself defines."""

from dataclasses import dataclass, field
from typing import Any

from gateway.core.message import Prompt, Reasoning
from gateway.dialects.bedrock.models import Family
from gateway.dialects.losses import Notes

_FIELD = {"openai_chat": "reasoning_effort", "anthropic_messages": "thinking"}
_BUDGETS = {
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    "high": 16_384,
    "xhigh": 32_768,
    "max": 63_999,
}
_SMALLEST_BUDGET = 1024
_ROOM = 8192
_EFFORTS = frozenset({"low", "medium", "high", "xhigh", "max"})
_THREE = {"minimal": "low", "xhigh": "high", "max": "high"}


@dataclass(frozen=True, slots=True)
class Thought:
    """What a request says about thinking. `effort` is Converse's own field, `fields` are the model's.

    `room`: the answer's limit must be above this many tokens, 0 for none.
    """

    effort: str = ""
    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    room: int = 0
    is_on: bool = False


def write_reasoning(prompt: Prompt, family: Family, notes: Notes) -> Thought:
    """Return what to say about thinking; what a family has no words for is noted."""
    asked = prompt.reasoning
    if asked is None or asked.enabled is False or asked.effort == "none":
        return Thought()
    name = _FIELD.get(prompt.origin, "reasoning")
    if family.is_adaptive and (asked.budget is None or not family.takes_budget):
        return _adaptive(asked, name, notes)
    if family.takes_budget:
        return _budgeted(asked, prompt.max_tokens, name, notes)
    if asked.enabled is None and not asked.effort and asked.budget is None:
        return Thought()
    if family.vendor == "openai":
        effort = _one_of_three(asked, name, notes)
        return Thought(fields={"reasoning_effort": effort}, is_on=True)
    if family.is_nova and family.name.startswith("nova-2"):
        effort = _one_of_three(asked, name, notes)
        if effort == "high" and _has_limits(prompt):
            # At this effort Nova refuses a request that says anything of limits or sampling.
            notes.lost("value_changed", name)
            effort = "medium"
        config = {"type": "enabled", "maxReasoningEffort": effort}
        return Thought(fields={"reasoningConfig": config}, is_on=True)
    notes.lost("field_unsupported", name)
    return Thought()


def _adaptive(asked: Reasoning, name: str, notes: Notes) -> Thought:
    effort = asked.effort
    if asked.budget is not None and not effort:
        effort = _effort_of(asked.budget)
        notes.lost("value_changed", name)
    if effort and effort not in _EFFORTS:
        notes.lost("value_changed", name)
        effort = "low" if effort == "minimal" else ""
    if asked.enabled is None and not effort:
        return Thought()
    return Thought(effort=effort, fields={"thinking": {"type": "adaptive"}}, is_on=True)


def _budgeted(asked: Reasoning, limit: int | None, name: str, notes: Notes) -> Thought:
    if asked.enabled is None and not asked.effort and asked.budget is None:
        return Thought()
    wanted = asked.budget
    if wanted is None:
        wanted = _BUDGETS.get(asked.effort, _BUDGETS["medium"])
    budget = max(wanted, _SMALLEST_BUDGET)
    if limit is not None and budget >= limit:
        budget = limit - 1
    if budget < _SMALLEST_BUDGET:
        notes.lost("field_unsupported", name)
        return Thought()
    if asked.budget is not None and budget != wanted:
        notes.lost("value_changed", name)
    thinking = {"type": "enabled", "budget_tokens": budget}
    return Thought(fields={"thinking": thinking}, room=budget + _ROOM, is_on=True)


def _one_of_three(asked: Reasoning, name: str, notes: Notes) -> str:
    effort = asked.effort
    if not effort and asked.budget is not None:
        effort = _THREE.get(_effort_of(asked.budget), _effort_of(asked.budget))
        notes.lost("value_changed", name)
    if effort in _THREE:
        notes.lost("value_changed", name)
        effort = _THREE[effort]
    return effort or "medium"


def _effort_of(budget: int) -> str:
    return next(
        (effort for effort, most in _BUDGETS.items() if most >= budget and effort != "minimal"),
        "max",
    )


def _has_limits(prompt: Prompt) -> bool:
    sampling = prompt.sampling
    said = (prompt.max_tokens, sampling.temperature, sampling.top_p, sampling.top_k)
    return any(value is not None for value in said)
