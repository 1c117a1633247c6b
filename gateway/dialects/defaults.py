"""Defaults and limits of a target in common names, whatever the caller's format calls them."""

from collections.abc import Mapping
from typing import Any

from gateway.core import codec
from gateway.core.message import Prompt, Reasoning, Sampling
from gateway.dialects.losses import Notes

_LIMITS = ("max_completion_tokens", "max_tokens", "max_output_tokens")
_SAMPLING = frozenset(Sampling.__struct_fields__) - {"stop"}
_KNOWN = _SAMPLING | {*_LIMITS, "stop", "reasoning_effort"}


def split_params(params: codec.Fields) -> tuple[Mapping[str, Any], codec.Fields]:
    """Return what has a common name, decoded, and what is the target's own and goes into its body as it is."""
    common = {name: codec.value_of(raw) for name, raw in params.items() if name in _KNOWN}
    return common, {name: raw for name, raw in params.items() if name not in common}


def with_defaults(prompt: Prompt, common: Mapping[str, Any]) -> Prompt:
    """Return a prompt with these values where its caller said nothing."""
    if not common:
        return prompt
    sampling, changes = prompt.sampling, dict[str, Any]()
    missing = {
        name: common[name] for name in _SAMPLING & common.keys() if getattr(sampling, name) is None
    }
    stop = common.get("stop")
    if stop and not sampling.stop:
        missing["stop"] = (stop,) if isinstance(stop, str) else tuple(stop)
    if missing:
        changes["sampling"] = codec.replace(sampling, **missing)
    limit = next((common[name] for name in _LIMITS if isinstance(common.get(name), int)), None)
    if limit is not None and prompt.max_tokens is None:
        changes["max_tokens"] = limit
    effort = common.get("reasoning_effort")
    if isinstance(effort, str) and prompt.reasoning is None:
        changes["reasoning"] = Reasoning(effort=effort)
    return codec.replace(prompt, **changes) if changes else prompt


def within(prompt: Prompt, most: int | None, notes: Notes) -> Prompt:
    """Return a prompt that asks for no longer answer than its target can give; None: not known (K33)."""
    if most is None or prompt.max_tokens is None or prompt.max_tokens <= most:
        return prompt
    notes.lost("value_changed", "max_tokens")
    return codec.replace(prompt, max_tokens=most)
