"""Writes a request for a provider that speaks chat completions; what its kind does not know is noted (K34)."""

from collections.abc import Mapping
from typing import Any

from gateway.core import codec
from gateway.core.message import Prompt, Reasoning, Sampling, ServerTool, Tool, ToolChoice
from gateway.dialects.chat.efforts import effort_for
from gateway.dialects.chat.families import (
    is_shared,
    limit_name,
    reasoning_for,
    refused_settings,
    tier_of,
)
from gateway.dialects.chat.manners import Fields, Manner, manner_of
from gateway.dialects.chat.messages_out import marker, messages_out
from gateway.dialects.losses import Notes, refuse
from gateway.dialects.sides import Facts

ORIGIN = "openai_chat"
PLAIN_INPUT: Mapping[str, Any] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}
"""What a custom tool takes where only functions are known."""
_NO_CHANGE = frozenset({"temperature", "top_p"})
"""At 1, these say what holds anyway, and every model takes them."""


def write_request(prompt: Prompt, facts: Facts, notes: Notes) -> codec.Fields:
    """Write the fields of a request, those of model and stream left out.

    Raises InputError for what must not be lost: tools that another provider runs.
    """
    manner = manner_of(facts.kind)
    reasoning = _settled(prompt, facts, manner, notes)
    is_on = reasoning is None or reasoning.enabled is not False  # some think where nobody says so
    thinks = is_on and facts.model not in manner.quiet
    body: dict[str, Any] = {"messages": messages_out(prompt.messages, manner, notes, thinks=thinks)}
    tools, choice = _allowed(prompt, manner)
    if tools:
        body["tools"] = [_tool(tool, at, manner) for at, tool in enumerate(tools)]
        if choice is not None:
            body["tool_choice"] = _choice(choice, manner)
    if prompt.max_tokens is not None:
        body[limit_name(facts)] = prompt.max_tokens
    if prompt.format is not None:
        body["response_format"] = _format(prompt)
    if reasoning is not None:
        body.update(_reasoning(reasoning, manner, facts, notes))
    known = manner.fields - refused_settings(facts, reasoning)
    tier = tier_of(prompt, facts, notes)
    _add_settings(body, codec.replace(prompt, service_tier=tier or ""), known, manner, notes)
    for name, value in prompt.extra.items():
        if prompt.origin == ORIGIN or is_shared(name, facts):
            body[name] = value
        else:
            notes.lost("field_unknown", name)
    return {name: codec.raw(value) for name, value in body.items()}


def _settled(prompt: Prompt, facts: Facts, manner: Manner, notes: Notes) -> Reasoning | None:
    """Return how much to think: a forced call goes before it where both are not taken together (DeepSeek)."""
    reasoning, choice = _known(prompt, facts, notes), prompt.choice
    forced = prompt.tools and choice is not None and choice.mode in {"required", "named"}
    if reasoning is None or reasoning.enabled is False or not forced or not manner.wants_thinking:
        return reasoning
    notes.lost("value_changed", "reasoning")
    return Reasoning(enabled=False)


def _known(prompt: Prompt, facts: Facts, notes: Notes) -> Reasoning | None:
    """Return how much to think, without the members that only another format knows."""
    reasoning = reasoning_for(prompt, facts, notes)
    if reasoning is None or not reasoning.extra or prompt.origin == ORIGIN:
        return reasoning
    known = codec.replace(reasoning, extra={})
    return None if known == Reasoning() else known


def _add_settings(
    body: dict[str, Any], prompt: Prompt, known: Fields, manner: Manner, notes: Notes
) -> None:
    """Add the settings that this kind knows; what was asked beyond them is noted."""
    settings: dict[str, Any] = {
        **_sampling(prompt.sampling),
        "parallel_tool_calls": prompt.parallel if prompt.tools else None,
        "verbosity": prompt.verbosity or None,
        "user": prompt.user or None,
        "metadata": prompt.metadata,
        "service_tier": prompt.service_tier or None,
        "store": prompt.store,
        "prompt_cache_key": prompt.cache_key or None,
    }
    for name, value in settings.items():
        if value is None:
            continue
        if name not in known and not (value == 1 and name in _NO_CHANGE):
            if value is not False:
                notes.lost("field_unsupported", name)
        elif name == "metadata" and manner.openai and not prompt.store:
            # OpenAI keeps them with stored answers and refuses them otherwise.
            notes.lost("field_unsupported", name)
        else:
            body[name] = value


def _sampling(sampling: Sampling) -> dict[str, Any]:
    return {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "seed": sampling.seed,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "logit_bias": sampling.logit_bias,
        "logprobs": sampling.logprobs,
        "top_logprobs": sampling.top_logprobs,
        "n": sampling.n,
        "stop": list(sampling.stop) or None,
    }


def _allowed(
    prompt: Prompt, manner: Manner
) -> tuple[tuple[Tool | ServerTool, ...], ToolChoice | None]:
    """Return tools and choice; where choices among some tools are not known, the others are not offered."""
    tools, choice = prompt.tools, prompt.choice
    if choice is None or manner.openai or not choice.names or choice.mode == "named":
        return tools, choice
    kept = tuple(tool for tool in tools if not isinstance(tool, Tool) or tool.name in choice.names)
    return kept, ToolChoice(choice.mode)


def _tool(tool: Tool | ServerTool, at: int, manner: Manner) -> Mapping[str, Any]:
    if isinstance(tool, ServerTool):
        if tool.origin != ORIGIN:
            raise refuse("tool_unsupported", f"tools[{at}] ({tool.kind})", param=f"tools[{at}]")
        return tool.value
    inner: dict[str, Any] = {"name": tool.name}
    if tool.description:
        inner["description"] = tool.description
    written: dict[str, Any] = {"type": "function", "function": inner}
    if tool.custom and manner.openai:
        written = {"type": "custom", "custom": inner}
        if tool.format is not None:
            inner["format"] = tool.format
    elif tool.custom:
        inner["parameters"] = PLAIN_INPUT
    else:
        if tool.parameters is not None:
            inner["parameters"] = tool.parameters
        if tool.strict is not None:
            inner["strict"] = tool.strict
    if tool.cache is not None:
        written["cache_control"] = marker(tool.cache.ttl)
    return written


def _choice(choice: ToolChoice, manner: Manner) -> Any:  # noqa: ANN401  a word or an object
    if choice.mode == "named" and choice.names:
        kind = "custom" if choice.custom and manner.openai else "function"
        return {"type": kind, kind: {"name": choice.names[0]}}
    if choice.names:
        tools = [{"type": "function", "function": {"name": name}} for name in choice.names]
        return {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode, "tools": tools}}
    return choice.mode


def _format(prompt: Prompt) -> dict[str, Any]:
    form = prompt.format
    if form is None or form.kind == "text":
        return {"type": "text"}
    if form.kind == "json":
        return {"type": "json_object"}
    inner: dict[str, Any] = {"name": form.name or "answer"}
    if form.description:
        inner["description"] = form.description
    if form.schema is not None:
        inner["schema"] = form.schema
    if form.strict is not None:
        inner["strict"] = form.strict
    return {"type": "json_schema", "json_schema": inner}


def _reasoning(reasoning: Reasoning, manner: Manner, facts: Facts, notes: Notes) -> dict[str, Any]:
    """Write how much to think, in the way of this kind."""
    off = reasoning.enabled is False
    effort = "none" if off else reasoning.effort
    match manner.reasoning:
        case "object":
            if reasoning.budget is not None and effort:
                notes.lost("value_changed", "reasoning effort")
            return {"reasoning": _reasoning_object(reasoning)} if reasoning != Reasoning() else {}
        case "switch" | "either":
            if reasoning.budget is not None:
                notes.lost("value_changed", "reasoning budget")
            on = not off and (reasoning.enabled or (effort and manner.reasoning == "switch"))
            switch = {"type": "disabled" if off else "enabled"} if off or on else None
            more = {"reasoning_effort": effort} if effort and not off else {}
            return {"thinking": switch, **more} if switch else more
        case "flags":
            flags: dict[str, Any] = {"enable_thinking": not off}
            if reasoning.budget is not None:
                flags["thinking_budget"] = reasoning.budget
            if effort and not off:
                notes.lost("value_changed", "reasoning effort")
            return flags
        case _:
            if reasoning.budget is not None:
                notes.lost("value_changed", "reasoning budget")
            effort = effort_for(reasoning, facts, notes)
            if reasoning.summary and manner.openai:
                notes.lost("field_unsupported", "reasoning.summary")
            return {"reasoning_effort": effort} if effort else {}


def _reasoning_object(reasoning: Reasoning) -> dict[str, Any]:
    written: dict[str, Any] = dict(reasoning.extra)
    if reasoning.budget is not None:
        written["max_tokens"] = reasoning.budget
    elif reasoning.effort:
        written["effort"] = reasoning.effort
    elif reasoning.enabled is not None:
        written["enabled"] = reasoning.enabled
    if reasoning.summary:
        written["summary"] = reasoning.summary
    return written
