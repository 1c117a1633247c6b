"""Which settings OpenAI's families of models know: those that reason have another limit and fixed sampling."""

import re

from gateway.core.message import Reasoning
from gateway.dialects.sides import Facts

_HOSTS = frozenset({"openai", "azure"})
_REASONING = re.compile(r"(?:^|[/._-])(?:o[1-9]|gpt-(?:[5-9]|[1-9][0-9]))(?![0-9])")
_ALWAYS = re.compile(r"(?:^|[/._-])(?:o[1-9]|gpt-5)(?![.0-9])")
FIXED = frozenset(
    {
        "frequency_penalty",
        "logit_bias",
        "logprobs",
        "presence_penalty",
        "temperature",
        "top_logprobs",
        "top_p",
    }
)
"""Settings that are refused while a model of these families reasons."""


def limit_name(facts: Facts) -> str:
    """Return the name of the limit: the families that reason refuse the old one, others do not know the new."""
    reasons = facts.kind in _HOSTS and _REASONING.search(facts.model.lower())
    return "max_completion_tokens" if reasons else "max_tokens"


def continues(facts: Facts) -> bool:
    """Tell whether an answer that the history begins may be gone on with: models that reason begin anew."""
    model = facts.model.lower()
    return facts.kind not in _HOSTS or "chat" in model or not _REASONING.search(model)


def has_fixed_sampling(facts: Facts, reasoning: Reasoning | None) -> bool:
    """Tell whether settings of `FIXED` are refused.

    The first families always reason; later ones do only where they are asked to.
    """
    model = facts.model.lower()
    if facts.kind not in _HOSTS or "chat" in model or not _REASONING.search(model):
        return False
    if _ALWAYS.search(model):
        return True
    return reasoning is not None and reasoning.enabled is not False and reasoning != Reasoning()
