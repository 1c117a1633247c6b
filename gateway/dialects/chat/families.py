"""Which settings families of models know: those of OpenAI that reason have another limit and fixed sampling."""

import re

from gateway.core import codec
from gateway.core.message import Prompt, Reasoning
from gateway.dialects.losses import Notes
from gateway.dialects.sides import Facts

_STANDARD = "standard_only"
"""What callers of Messages say for no tier that costs more."""
_HOSTS = frozenset({"openai", "azure"})
_SHARED = frozenset({"prompt_cache_retention", "safety_identifier"})
_REASONING = re.compile(r"(?:^|[/._-])(?:o[1-9]|gpt-(?:[5-9]|[1-9][0-9]))(?![0-9])")
_ALWAYS = re.compile(r"(?:^|[/._-])(?:o[1-9]|gpt-5)(?![.0-9])")
_NO_STOP = re.compile(r"(?:^|[/._-])(?:o[1-9]|gpt-5(?:\.[0-4])?)(?![.0-9])")
_OLD = re.compile(r"(?:^|[/._:-])(?:gpt-[34]|chatgpt|gpt-[5-9][0-9.]*-chat)")
_GROK = re.compile(r"(?:^|[/._-])grok-(?!2(?![0-9]))(?!.*non-reasoning)")
"""xAI's models that reason: nearly all that it has."""
_NEVER = {
    "openai": _OLD,
    "azure": _OLD,
    "xai": re.compile(
        r"grok-(?:2|3(?!-mini)|4-[0-9f]|4\.20(?!-multi-agent)|code|build|composer)(?![0-9]{5})"
    ),
    "groq": re.compile(r"(?:^|/)(?:llama|gemma|mixtral|kimi-k2-instruct)"),
    "cohere": re.compile(r"command-(?:r|a-(?:03|vision|translate)|light|nightly)|aya"),
    "ollama_native": re.compile(
        r"(?:^|/)(?:llama|codellama|gemma[23]?(?:n|:|$)|mistral|mixtral|phi[34](?!.*reasoning)|qwen2|qwen3-coder|command-r)"
    ),
}
"""By kind: models that refuse to be asked how much to think, for they do not, or by their own lights."""
_NO_THINKING = (Reasoning(), Reasoning(effort="none"))
_NOTHING: frozenset[str] = frozenset()
_FIXED = frozenset(
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
"""Settings that OpenAI's models refuse while they reason."""
_REFUSED = {
    "xai": (_GROK, frozenset({"frequency_penalty", "presence_penalty"})),
    "deepseek": (re.compile("reasoner"), frozenset({"logprobs", "top_logprobs"})),
}
"""By kind: models that always reason, and what they refuse."""


def is_shared(name: str, facts: Facts) -> bool:
    """Tell whether a setting that is read by no one here means the same in both of OpenAI's formats."""
    return name in _SHARED and facts.kind in _HOSTS


def limit_name(facts: Facts) -> str:
    """Return the name of the limit: the families that reason refuse the old one, others do not know the new."""
    reasons = facts.kind in _HOSTS and _REASONING.search(facts.model.lower())
    return "max_completion_tokens" if reasons else "max_tokens"


def continues(facts: Facts) -> bool:
    """Tell whether an answer that the history begins may be gone on with: models that reason begin anew."""
    model = facts.model.lower()
    return facts.kind not in _HOSTS or "chat" in model or not _REASONING.search(model)


def takes_stop(facts: Facts) -> bool:
    """Tell whether stop sequences are taken: not by OpenAI's first families that reason, nor by those of xAI."""
    model = facts.model.lower()
    if facts.kind == "xai":
        return not _GROK.search(model)
    return facts.kind not in _HOSTS or "chat" in model or not _NO_STOP.search(model)


def reasoning_for(prompt: Prompt, facts: Facts, notes: Notes) -> Reasoning | None:
    """Return how much a model is asked to think: nothing of one that is known not to reason, which refuses it."""
    asked, never = prompt.reasoning, _NEVER.get(facts.kind)
    if asked is None or never is None or not never.search(facts.model.lower()):
        return asked
    rest = codec.replace(asked, extra={})
    if rest not in _NO_THINKING and asked.enabled is not False:
        notes.lost("field_unsupported", "reasoning")
        if asked.effort and asked.budget is not None:
            notes.lost("field_unsupported", "reasoning budget")
    return None


def without_thought(prompt: Prompt, facts: Facts, notes: Notes) -> Prompt:
    """Return a prompt that asks no model to think that is known not to; to be told not to think harms none."""
    if prompt.reasoning is None or prompt.reasoning.enabled is False:
        return prompt
    asked = reasoning_for(prompt, facts, notes)
    return prompt if asked is prompt.reasoning else codec.replace(prompt, reasoning=asked)


def tier_of(prompt: Prompt, facts: Facts, notes: Notes) -> str | None:
    """Return the tier of service in OpenAI's words; one of another maker's is what holds without a word."""
    tier = prompt.service_tier
    if tier != _STANDARD:
        return tier or None
    if facts.kind in _HOSTS:
        return "default"
    notes.lost("field_unsupported", "service_tier")
    return None


def refused_settings(facts: Facts, reasoning: Reasoning | None) -> frozenset[str]:
    """Return the settings that are refused.

    OpenAI's first families always reason; later ones do only where they are asked to.
    """
    model = facts.model.lower()
    if facts.kind in _REFUSED:
        models, refused = _REFUSED[facts.kind]
        return refused if models.search(model) else _NOTHING
    if facts.kind not in _HOSTS or "chat" in model or not _REASONING.search(model):
        return _NOTHING
    asked = reasoning is not None and reasoning.enabled is not False and reasoning != Reasoning()
    return _FIXED if asked or _ALWAYS.search(model) else _NOTHING
