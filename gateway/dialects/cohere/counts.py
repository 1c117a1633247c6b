"""Token counts as Cohere writes them."""

from collections.abc import Mapping
from typing import Any

from gateway.core import codec
from gateway.core.usage import Usage
from gateway.dialects.counts import plausible


def usage_of(value: object) -> Usage | None:
    """Return the counts of a `usage` (version 2) or `meta` (version 1) object.

    `tokens` is what the model read and wrote, the prompt that Cohere adds included; `billed_units`, less than it,
    stands in where there is no other. Reasoning is inside the output.
    """
    said = codec.as_object(value)
    if said is None:
        return None
    tokens = codec.as_object(said.get("tokens")) or {}
    billed = codec.as_object(said.get("billed_units")) or {}
    usage = Usage(
        input=_first(tokens, billed, "input_tokens"),
        output=_first(tokens, billed, "output_tokens"),
        cached=plausible(said.get("cached_tokens")),
        reasoning=plausible(tokens.get("reasoning_tokens")),
    )
    return None if usage == Usage() else usage


def _first(tokens: Mapping[str, Any], billed: Mapping[str, Any], name: str) -> int | None:
    number = plausible(tokens.get(name))
    return plausible(billed.get(name)) if number is None else number
