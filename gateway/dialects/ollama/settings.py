"""Writes how an answer is to be drawn, formed and thought about as Ollama takes it."""

from typing import Any

from gateway.core.message import Format, Prompt, Reasoning, Sampling
from gateway.dialects.fit.spoken import word
from gateway.dialects.losses import Notes
from gateway.dialects.plain import note_unsaid, require_one

_WITH_LEVELS = ("gpt-oss", "gptoss")
"""Families of models whose thinking has levels; others answer a level with an error."""
_LEVELS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high"}


def settings(prompt: Prompt, model: str, notes: Notes) -> dict[str, Any]:
    """Return the fields besides messages and tools; what Ollama has no field for is noted."""
    body: dict[str, Any] = {}
    options = _options(prompt.sampling, notes)
    if prompt.max_tokens is not None:
        options["num_predict"] = prompt.max_tokens
    if options:
        body["options"] = options
    if prompt.sampling.logprobs:
        body["logprobs"] = True
        if prompt.sampling.top_logprobs is not None:
            body["top_logprobs"] = prompt.sampling.top_logprobs
    if prompt.format is not None and prompt.format.kind != "text":
        body["format"] = _format(prompt.format, prompt.origin, notes)
    if prompt.reasoning is not None:
        think = _think(prompt.reasoning, model, notes)
        if think is not None:
            body["think"] = think
    note_unsaid(prompt, notes)
    return body


def _options(asked: Sampling, notes: Notes) -> dict[str, Any]:
    require_one(asked, notes)
    options = {
        "temperature": asked.temperature,
        "top_p": asked.top_p,
        "top_k": asked.top_k,
        "seed": asked.seed,
        "presence_penalty": asked.presence_penalty,
        "frequency_penalty": asked.frequency_penalty,
        "stop": list(asked.stop) or None,
    }
    return {name: value for name, value in options.items() if value is not None}


def _format(asked: Format, origin: str, notes: Notes) -> object:
    if asked.description:
        notes.lost("field_unsupported", f"{word(origin, 'format')}.description")
    return "json" if asked.schema is None else asked.schema


def _think(asked: Reasoning, model: str, notes: Notes) -> bool | str | None:
    """Return whether to think, or how much where the model knows levels."""
    if asked.enabled is False or asked.effort == "none":
        return False
    if asked.budget is not None:
        notes.lost("value_changed", "reasoning budget")
        return True
    if not asked.effort:
        return asked.enabled
    has_levels = any(family in model.lower() for family in _WITH_LEVELS)
    if not has_levels or asked.effort not in _LEVELS or asked.effort == "minimal":
        notes.lost("value_changed", "reasoning_effort")
    return _LEVELS.get(asked.effort, "high") if has_levels else True
