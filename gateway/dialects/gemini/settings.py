"""The settings of an answer: sampling, limits, form and thinking."""

from typing import Any

from gateway.core.message import Format, Prompt
from gateway.dialects.fit.spoken import word
from gateway.dialects.gemini.families import Family
from gateway.dialects.gemini.thinking import thinking_config
from gateway.dialects.losses import Notes

_JSON = "application/json"


def generation_config(prompt: Prompt, family: Family, notes: Notes) -> dict[str, Any]:
    """Return `generationConfig`; empty when the caller set nothing."""
    sampling = prompt.sampling
    config: dict[str, Any] = {
        "temperature": sampling.temperature,
        "topP": sampling.top_p,
        "topK": sampling.top_k,
        "seed": sampling.seed,
        "presencePenalty": sampling.presence_penalty,
        "frequencyPenalty": sampling.frequency_penalty,
        "candidateCount": sampling.n if sampling.n != 1 else None,
        "maxOutputTokens": prompt.max_tokens,
        "stopSequences": list(sampling.stop) or None,
        "responseLogprobs": sampling.logprobs or None,
        "logprobs": sampling.top_logprobs if sampling.logprobs else None,
        **(_form(prompt.format) if prompt.format is not None else {}),
    }
    if prompt.format is not None and prompt.format.description:
        notes.lost("field_unsupported", f"{word(prompt.origin, 'format')}.description")
    if sampling.logit_bias:
        notes.lost("field_unsupported", "logit_bias")
    if prompt.reasoning is not None:
        config["thinkingConfig"] = thinking_config(prompt.reasoning, family, notes)
    return {name: value for name, value in config.items() if value is not None}


def _form(form: Format) -> dict[str, Any]:
    """Return the form of the answer. JSON Schema keeps the order of properties, which the small form loses."""
    if form.kind == "text":
        return {}
    if form.kind == "json" or not form.schema:
        return {"responseMimeType": _JSON}
    return {"responseMimeType": _JSON, "responseJsonSchema": form.schema}
