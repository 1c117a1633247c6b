"""The response object: the settings of its request repeated, what was counted, and how it stands."""

from typing import Any

from gateway.core import clock, codec
from gateway.core.answer import Began
from gateway.core.usage import Usage
from gateway.dialects.losses import Notes
from gateway.dialects.responses.ids import response_id
from gateway.dialects.responses.settings import (
    write_choice,
    write_reasoning,
    write_text,
    write_tools,
)
from gateway.dialects.responses.states import ORIGIN
from gateway.dialects.responses.target import leading_instructions
from gateway.dialects.sides import Told

Json = dict[str, Any]
TIERS = frozenset({"auto", "default", "fast", "flex", "priority", "scale", "ultrafast"})
"""The words that the format has for how a request was served; others' words would fail its clients."""


def head_of(base: str, began: Began, told: Told) -> Json:
    """Return the response without status, output and counts. What may be large is encoded once."""
    prompt = told.prompt
    own = prompt.origin == ORIGIN
    choice = write_choice(prompt.choice, prompt) if prompt.choice is not None else "auto"
    if own and "tool_choice" in prompt.extra:
        choice = prompt.extra["tool_choice"]
    instructions = leading_instructions(prompt)
    return {
        "id": response_id(base),
        "object": "response",
        "created_at": began.created or told.created,
        "status": "in_progress",
        "background": False,
        "completed_at": None,
        "error": None,
        "incomplete_details": None,
        "instructions": None if instructions is None else codec.raw(instructions),
        "max_output_tokens": prompt.max_tokens,
        "max_tool_calls": prompt.extra.get("max_tool_calls") if own else None,
        "model": began.model or told.model,
        "output": [],
        "parallel_tool_calls": prompt.parallel is not False,
        "previous_response_id": None,
        "prompt_cache_key": prompt.cache_key or None,
        "reasoning": {"effort": None, "summary": None} | write_reasoning(prompt.reasoning, own=own),
        "safety_identifier": prompt.user or None,
        "service_tier": prompt.service_tier or "auto",
        "store": False,
        "temperature": prompt.sampling.temperature,
        "text": {"format": {"type": "text"}} | write_text(prompt.format, prompt.verbosity),
        "tool_choice": codec.raw(choice),
        "tools": codec.raw(write_tools(prompt, Notes())),
        "top_logprobs": prompt.sampling.top_logprobs or 0,
        "top_p": prompt.sampling.top_p,
        "truncation": prompt.extra.get("truncation", "disabled") if own else "disabled",
        "usage": None,
        "user": prompt.user or None,
        "metadata": dict(prompt.metadata or {}),
    }


def counts_of(usage: Usage | None) -> Json | None:
    """Return the `usage` object; a count that nobody told is 0 where the format needs one."""
    if usage is None:
        return None
    asked, said = usage.input or 0, usage.output or 0
    return {
        "input_tokens": asked,
        "input_tokens_details": {
            "cached_tokens": usage.cached or 0,
            "cache_write_tokens": usage.cache_write or 0,
        },
        "output_tokens": said,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
        "total_tokens": asked + said,
    }


def ending(status: str, reason: str, usage: Usage | None) -> Json:
    """Return the fields of a response that are known at its end."""
    done = int(clock.wall()) if status == "completed" else None
    return {
        "completed_at": done,
        "incomplete_details": {"reason": reason} if reason else None,
        "usage": counts_of(usage),
    }
