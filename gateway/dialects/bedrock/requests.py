"""Writes a prompt as a request to Converse: its own fields, the model's fields, or a note of what was lost."""

import re
from collections.abc import Mapping
from typing import Any

from gateway.core import codec
from gateway.core.message import Prompt
from gateway.dialects.bedrock.content import Content
from gateway.dialects.bedrock.models import Family, family_of
from gateway.dialects.bedrock.reasoning import Thought, write_reasoning
from gateway.dialects.bedrock.tools import one_call_at_a_time, write_tools
from gateway.dialects.fit.spoken import word
from gateway.dialects.losses import Notes, refuse
from gateway.dialects.messages.schema_out import closed
from gateway.dialects.sides import Facts

_MODEL_FIELDS = "additionalModelRequestFields"
_OWN = frozenset(
    {
        _MODEL_FIELDS,
        "additionalModelResponseFieldPaths",
        "guardrailConfig",
        "performanceConfig",
        "projectIdentifier",
        "promptVariables",
        "requestMetadata",
        "serviceTier",
    }
)
"""Fields of Converse that no caller's format has; sent on as they came."""
_CLAUDE_FIELDS = frozenset({"anthropic_beta", "context_management"})
_TIERS = {
    "default": "default",
    "standard_only": "default",
    "flex": "flex",
    "priority": "priority",
    "reserved": "reserved",
}
_METADATA = re.compile(r"[a-zA-Z0-9\s:_@$#=/+,.-]{0,256}")
_MOST_METADATA = 16
_TOP_K = {"anthropic": "top_k", "mistral": "top_k", "cohere": "k"}
_BOTH_SAMPLINGS = (4, 1)
"""From this version on, Claude takes temperature or top_p, not both."""


def write_request(prompt: Prompt, facts: Facts, notes: Notes) -> codec.Fields:
    """Return the top-level fields of the body; the model and the stream are said by the path."""
    family = family_of(facts.model)
    content = Content(family, notes)
    thought = write_reasoning(prompt, facts, family, notes)
    body: dict[str, Any] = {"messages": content.messages(prompt.messages)}
    system = content.system(prompt.messages)
    if system:
        body["system"] = system
    _note_unsupported(prompt, notes)
    model_fields = dict(thought.fields)
    inference = _inference(prompt, family, thought, notes)
    _add_top_k(prompt, family, thought, model_fields, notes)
    if inference:
        body["inferenceConfig"] = inference
    tools = write_tools(prompt, family, content, notes)
    if tools:
        body["toolConfig"] = tools
        model_fields.update(one_call_at_a_time(prompt, family, notes))
    output = _output(prompt, thought.effort, notes)
    if output:
        body["outputConfig"] = output
    _add_account(prompt, body, notes)
    if family.is_claude and prompt.sampling.stop:
        body["additionalModelResponseFieldPaths"] = ["/stop_sequence"]
    _add_extra(prompt.extra, family, body, model_fields, notes)
    if model_fields:
        body[_MODEL_FIELDS] = model_fields
    return {name: codec.raw(value) for name, value in body.items()}


def _note_unsupported(prompt: Prompt, notes: Notes) -> None:
    sampling = prompt.sampling
    if sampling.n is not None and sampling.n > 1:
        raise refuse("choices_unsupported", "n", param="n")
    said: dict[str, object] = {
        "seed": sampling.seed,
        "presence_penalty": sampling.presence_penalty or None,
        "frequency_penalty": sampling.frequency_penalty or None,
        "logit_bias": sampling.logit_bias or None,
        "logprobs": sampling.logprobs or None,
        "verbosity": prompt.verbosity or None,
        "user": prompt.user or None,
        "store": prompt.store or None,
        "prompt_cache_key": prompt.cache_key or None,
    }
    for name, value in said.items():
        if value is not None:
            notes.lost("field_unsupported", name)


def _inference(prompt: Prompt, family: Family, thought: Thought, notes: Notes) -> dict[str, Any]:
    sampling = prompt.sampling
    found: dict[str, Any] = {}
    if thought.max_tokens is not None:
        found["maxTokens"] = thought.max_tokens
    temperature, top_p = sampling.temperature, sampling.top_p
    if temperature is not None and not family.takes_sampling:
        notes.lost("field_unsupported", "temperature")
    elif temperature not in {None, 1} and thought.is_on and family.is_claude:
        notes.lost("field_unsupported", "temperature")  # thinking is drawn at 1 alone
    elif temperature is not None:
        found["temperature"] = min(temperature, 1)
        if temperature > 1:
            notes.lost("value_changed", "temperature")
    if top_p is not None:
        one_only = family.is_claude and family.version >= _BOTH_SAMPLINGS
        if not family.takes_sampling or (one_only and "temperature" in found):
            notes.lost("field_unsupported", "top_p")
        else:
            found["topP"] = top_p
    if sampling.stop:
        found["stopSequences"] = list(sampling.stop)
    return found


def _add_top_k(
    prompt: Prompt,
    family: Family,
    thought: Thought,
    model_fields: dict[str, Any],
    notes: Notes,
) -> None:
    top_k = prompt.sampling.top_k
    if top_k is None:
        return
    name = _TOP_K.get(family.vendor)
    if family.is_nova:
        model_fields["inferenceConfig"] = {"topK": top_k}
    elif name and family.takes_sampling and not (thought.is_on and family.is_claude):
        model_fields[name] = top_k
    else:
        notes.lost("field_unsupported", "top_k")


def _output(prompt: Prompt, effort: str, notes: Notes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    form = prompt.format
    if form is not None and form.kind == "schema":
        closed_schema, changed = closed(form.schema or {}, word(prompt.origin, "schema"))
        if changed:
            notes.lost("schema_changed", "response_format")
        schema: dict[str, Any] = {"schema": codec.encode(closed_schema).decode()}
        if form.name:
            schema["name"] = form.name
        if form.description:
            schema["description"] = form.description
        found["textFormat"] = {"type": "json_schema", "structure": {"jsonSchema": schema}}
    elif form is not None and form.kind == "json":
        name = word(prompt.origin, "form")
        raise refuse("form_unsupported", name, param=name)
    if effort:
        found["effort"] = effort
    return found


def _add_account(prompt: Prompt, body: dict[str, Any], notes: Notes) -> None:
    """Add what concerns the account: the tier of service, and words for its log of calls."""
    tier = prompt.service_tier
    if tier and tier != "auto":
        known = _TIERS.get(tier)
        if known is None or known != tier:
            notes.lost("value_changed", "service_tier")
        if known is not None:
            body["serviceTier"] = {"type": known}
    kept: dict[str, str] = {}
    for name, value in (prompt.metadata or {}).items():
        fits = isinstance(value, str) and name and _METADATA.fullmatch(name)
        if fits and _METADATA.fullmatch(value) and len(kept) < _MOST_METADATA:
            kept[name] = value
        else:
            notes.lost("field_unsupported", f"metadata.{name}")
    if kept:
        body["requestMetadata"] = kept


def _add_extra(
    extra: Mapping[str, Any],
    family: Family,
    body: dict[str, Any],
    model_fields: dict[str, Any],
    notes: Notes,
) -> None:
    """Add the fields that are Converse's own, whoever sent them; what they say goes before what was made here."""
    for name, value in extra.items():
        given = codec.as_object(value)
        if name == _MODEL_FIELDS and given is not None:
            model_fields.update(given)
        elif name in _OWN:
            body[name] = value
        elif name in _CLAUDE_FIELDS and family.is_claude:
            model_fields[name] = value
        else:
            notes.lost("field_unknown", name)
