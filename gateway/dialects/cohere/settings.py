"""Writes how an answer is to be drawn, formed and thought about as Cohere takes it."""

from typing import Any

from gateway.core.message import Format, Prompt, Reasoning, Sampling
from gateway.dialects.fit.spoken import word
from gateway.dialects.losses import Notes
from gateway.dialects.plain import note_unsaid, require_one

_LEAST_P, _MOST_P = 0.01, 0.99
_MOST_K = 500


def settings(prompt: Prompt, notes: Notes) -> dict[str, Any]:
    """Return the fields besides messages and tools; what Cohere has no field for is noted."""
    body = _sampling(prompt.sampling, notes)
    if prompt.max_tokens is not None:
        body["max_tokens"] = prompt.max_tokens
    if prompt.format is not None and prompt.format.kind != "text":
        body["response_format"] = _format(prompt.format, prompt.origin, notes)
    if prompt.reasoning is not None:
        thinking = _thinking(prompt.reasoning, notes)
        if thinking:
            body["thinking"] = thinking
    note_unsaid(prompt, notes)
    return body


def _sampling(asked: Sampling, notes: Notes) -> dict[str, Any]:
    require_one(asked, notes)
    if asked.top_logprobs:
        notes.lost("field_unsupported", "top_logprobs")
    body = {
        "temperature": asked.temperature,
        "p": _within(asked.top_p, _LEAST_P, _MOST_P, "top_p", notes),
        "k": _within(asked.top_k, 0, _MOST_K, "top_k", notes),
        "seed": asked.seed,
        "frequency_penalty": _within(asked.frequency_penalty, 0.0, 1.0, "frequency_penalty", notes),
        "presence_penalty": _within(asked.presence_penalty, 0.0, 1.0, "presence_penalty", notes),
        "stop_sequences": list(asked.stop) or None,
        "logprobs": asked.logprobs or None,
    }
    return {name: value for name, value in body.items() if value is not None}


def _within(
    value: float | None, least: float, most: float, name: str, notes: Notes
) -> float | None:
    if value is None or least <= value <= most:
        return value
    notes.lost("value_changed", name)
    return min(max(value, least), most)


def _format(asked: Format, origin: str, notes: Notes) -> dict[str, Any]:
    if asked.description:
        notes.lost("field_unsupported", f"{word(origin, 'format')}.description")
    form: dict[str, Any] = {"type": "json_object"}
    if asked.kind == "schema" and asked.schema is not None:
        form["json_schema"] = asked.schema
    return form


def _thinking(asked: Reasoning, notes: Notes) -> dict[str, Any]:
    """Return how to think; Cohere knows a budget, and no effort but none."""
    if asked.enabled is False or asked.effort == "none":
        return {"type": "disabled"}
    if asked.budget is not None:
        if asked.effort:
            notes.lost("value_changed", "reasoning effort")
        return {"type": "enabled", "token_budget": asked.budget}
    if asked.effort:
        notes.lost("value_changed", "reasoning_effort")
        return {"type": "enabled"}
    return {"type": "enabled"} if asked.enabled else {}
