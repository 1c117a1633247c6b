"""How much a model on Bedrock thinks: each family has its own words, outside of what Converse itself defines."""

from dataclasses import dataclass, field
from typing import Any

from gateway.core.message import Prompt, Reasoning
from gateway.dialects.bedrock.models import Family
from gateway.dialects.fit.spoken import word
from gateway.dialects.losses import Notes
from gateway.dialects.messages.models import traits_of
from gateway.dialects.messages.thinking_out import plan_thinking
from gateway.dialects.sides import Facts

_FIELD = {"openai_chat": "reasoning_effort", "anthropic_messages": "thinking"}
_THREE = {
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "high",
    "max": "high",
}
_EFFORT_BY_BUDGET = ((4096, "low"), (16_384, "medium"))


@dataclass(frozen=True, slots=True)
class Thought:
    """What a request says about thinking. `effort` is Converse's own field, `fields` are the model's.

    `max_tokens`: the limit of the answer that goes with it, None where nothing is to be said.
    """

    effort: str = ""
    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    max_tokens: int | None = None
    is_on: bool = False


def write_reasoning(prompt: Prompt, facts: Facts, family: Family, notes: Notes) -> Thought:
    """Return what to say about thinking; what a family has no words for is noted."""
    if family.is_claude:
        return _claude(prompt, facts, notes)
    asked = prompt.reasoning or Reasoning()
    is_asked = asked.enabled or asked.budget is not None or asked.effort not in {"", "none"}
    if not is_asked or asked.enabled is False:
        return Thought(max_tokens=prompt.max_tokens)
    name = word(prompt.origin, "effort")
    if not asked.effort:
        name = _FIELD.get(prompt.origin, "reasoning")
    elif asked.budget is not None:
        notes.lost("field_unsupported", "reasoning budget")
    fields: dict[str, Any] = {}
    if family.vendor == "openai":
        fields = {"reasoning_effort": _one_of_three(asked, name, notes)}
    elif family.is_nova and family.name.startswith("nova-2"):
        effort = _one_of_three(asked, name, notes)
        if effort == "high" and _has_limits(prompt):
            # At this effort Nova refuses a request that says anything of limits or sampling.
            notes.lost("value_changed", name)
            effort = "medium"
        fields = {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": effort}}
    else:
        notes.lost("field_unsupported", name)
    return Thought(fields=fields, max_tokens=prompt.max_tokens, is_on=bool(fields))


def _claude(prompt: Prompt, facts: Facts, notes: Notes) -> Thought:
    """Return what Anthropic's own format would say; Converse has no limit of its own, so none is made up."""
    traits = traits_of(facts.model)
    plan = plan_thinking(prompt, facts, traits, notes)
    thinking = plan.thinking if plan.thinks or traits.budget or traits.adaptive else None
    has_budget = thinking is not None and "budget_tokens" in thinking
    is_limited = prompt.max_tokens is not None or has_budget
    return Thought(
        effort=plan.effort,
        fields={"thinking": thinking} if thinking is not None else {},
        max_tokens=plan.max_tokens if is_limited else None,
        is_on=plan.thinks,
    )


def _one_of_three(asked: Reasoning, name: str, notes: Notes) -> str:
    effort = asked.effort
    if not effort and asked.budget is not None:
        budget = asked.budget
        effort = next((word for most, word in _EFFORT_BY_BUDGET if budget <= most), "high")
        notes.lost("value_changed", name)
    known = _THREE.get(effort or "medium", "medium")
    if effort and known != effort:
        notes.lost("value_changed", name)
    return known


def _has_limits(prompt: Prompt) -> bool:
    sampling = prompt.sampling
    said = (prompt.max_tokens, sampling.temperature, sampling.top_p, sampling.top_k)
    return any(value is not None for value in said)
