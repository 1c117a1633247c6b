"""How much thinking families of models can be asked for: what they do not know becomes the nearest that they do."""

import re
from collections.abc import Sequence

from gateway.core.message import Reasoning
from gateway.dialects.losses import Notes
from gateway.dialects.sides import Facts

_ORDER = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_EFFORTS = ((2048, "low"), (8192, "medium"))
_MOST_EFFORT = "high"
_Levels = Sequence[tuple[re.Pattern[str], Sequence[str]]]
_START = r"(?:^|[/._-])"


def _rule(
    name: str, first: str, last: str, *left_out: str
) -> tuple[re.Pattern[str], Sequence[str]]:
    levels = _ORDER[_ORDER.index(first) : _ORDER.index(last) + 1]
    return re.compile(_START + name), [each for each in levels if each not in left_out]


_OPENAI: _Levels = (
    _rule(r"gpt-5-pro", "high", "high"),
    _rule(r"gpt-5\.[0-9]+-pro", "medium", "xhigh"),
    _rule(r"gpt-5(?:\.1)?-codex(?!-max)", "low", "high"),
    _rule(r"gpt-5\.[0-9]+-codex", "low", "xhigh"),
    _rule(r"gpt-5(?![.0-9])", "minimal", "high"),
    _rule(r"gpt-5\.1(?![0-9])", "none", "high", "minimal"),
    _rule(r"gpt-5\.[2-5](?![0-9])", "none", "xhigh", "minimal"),
    _rule(r"gpt-[5-9]", "none", "max", "minimal"),
    _rule(r"o[1-9](?![0-9])", "low", "high"),
)
_XAI: _Levels = (
    (re.compile("grok-3-mini"), ("low", "high")),
    _rule(r"grok-4\.20-multi-agent", "low", "xhigh"),
    _rule(r"grok-4\.[6-9](?![0-9])", "low", "xhigh"),
    _rule(r"grok-[4-9]", "low", "high"),
)
_OPEN: _Levels = (_rule(r"gpt-oss", "low", "high"),)
"""Models that anyone may serve."""
_BY_KIND: dict[str, _Levels] = {
    "openai": _OPENAI,
    "azure": _OPENAI,
    "xai": _XAI,
    # They bring the words of all models into those of each.
    "openrouter": (),
    "vercel": (),
}


def effort_for(reasoning: Reasoning, facts: Facts, notes: Notes) -> str:
    """Return the effort to ask a model for, "" for none; the first rule that speaks of the model counts."""
    effort, model = effort_of(reasoning), facts.model.lower()
    rules = _BY_KIND.get(facts.kind, _OPEN)
    levels = next((levels for names, levels in rules if names.search(model)), None)
    if levels is None or effort in levels:
        return effort
    if not effort:
        # A model that can do without does, unless it is told otherwise.
        return "medium" if reasoning.enabled and levels[0] == "none" else ""
    if effort not in _ORDER:
        return effort
    notes.lost("value_changed", "reasoning effort")
    return _nearest(effort, levels)


def _nearest(effort: str, levels: Sequence[str]) -> str:
    """Return the level that is nearest, of two the higher: who asks for a little asks for some."""
    at = _ORDER.index(effort)
    return min(levels, key=lambda each: (abs(_ORDER.index(each) - at), -_ORDER.index(each)))


def effort_of(reasoning: Reasoning) -> str:
    """Return the effort that was asked for; of a budget of tokens, the one that comes near it."""
    if reasoning.effort:
        return reasoning.effort
    if reasoning.enabled is False or reasoning.budget == 0:
        return "none"
    if reasoning.budget is None:
        return ""
    return next((name for most, name in _EFFORTS if reasoning.budget <= most), _MOST_EFFORT)
