"""How much to think, as each generation of models takes it."""

from typing import Any

from gateway.core.message import Reasoning
from gateway.dialects.gemini.families import Family
from gateway.dialects.losses import Notes

_OFF = "none"
_AUTOMATIC = -1
_BUDGETS = {"minimal": 1024, "low": 1024, "medium": 8192, "high": 24_576}
_MOST = frozenset({"xhigh", "max"})
_STEPS = ((0, "minimal"), (1024, "low"), (8192, "medium"))


def thinking_config(reasoning: Reasoning, family: Family, notes: Notes) -> dict[str, Any] | None:
    """Return the settings of thinking, None for none; thoughts are asked for wherever thinking is."""
    if family.thinking == "none":
        if not _is_off(reasoning):
            notes.lost("field_unsupported", "reasoning")
        return None
    config = (
        _budget(reasoning, family, notes)
        if family.thinking == "budget"
        else _level(reasoning, family, notes)
    )
    if not _is_off(reasoning) and reasoning.summary != _OFF:
        config["includeThoughts"] = True
    return config or None


def _is_off(reasoning: Reasoning) -> bool:
    """Tell whether no thinking is asked for; a caller who says nothing of it asks for nothing either."""
    return (
        reasoning.enabled is False
        or reasoning.budget == 0
        or reasoning.effort == _OFF
        or reasoning == Reasoning(extra=reasoning.extra)
    )


def _budget(reasoning: Reasoning, family: Family, notes: Notes) -> dict[str, Any]:
    effort = reasoning.effort
    if reasoning.enabled is False or reasoning.budget == 0 or effort == _OFF:
        if family.can_rest:
            return {"thinkingBudget": 0}
        notes.lost("value_changed", "reasoning")
        return {"thinkingBudget": family.least}
    if reasoning.budget is not None:
        if effort:
            notes.lost("value_changed", "reasoning effort")
        budget = min(max(reasoning.budget, family.least), family.most)
        if reasoning.budget == _AUTOMATIC:
            return {"thinkingBudget": _AUTOMATIC}
        if budget != reasoning.budget:
            notes.lost("value_changed", "reasoning")
        return {"thinkingBudget": budget}
    if effort in _BUDGETS:
        return {"thinkingBudget": min(max(_BUDGETS[effort], family.least), family.most)}
    if effort in _MOST:
        return {"thinkingBudget": family.most}
    if effort:
        notes.lost("value_changed", "reasoning")
    return {"thinkingBudget": _AUTOMATIC} if effort or reasoning.enabled else {}


def _level(reasoning: Reasoning, family: Family, notes: Notes) -> dict[str, Any]:
    wanted = reasoning.effort
    if reasoning.enabled is False:
        wanted = _OFF
    elif wanted and reasoning.budget is not None:
        notes.lost("value_changed", "reasoning budget")
    elif reasoning.budget is not None and reasoning.budget != _AUTOMATIC:
        notes.lost("value_changed", "reasoning")
        wanted = next((level for most, level in _STEPS if reasoning.budget <= most), "high")
    if not wanted:
        return {}
    if wanted in family.levels:
        return {"thinkingLevel": wanted}
    # No level switches it off for good; the lowest comes nearest.
    level = family.levels[0] if wanted in {_OFF, "minimal", "low"} else family.levels[-1]
    notes.lost("value_changed", "reasoning")
    return {"thinkingLevel": level}
