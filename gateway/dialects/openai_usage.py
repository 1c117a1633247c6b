"""Reads token counts as OpenAI and those like it write them; refuses nothing, ignores what is no number."""

from collections.abc import Mapping
from typing import Any, cast

from gateway.core.codec import as_object
from gateway.core.usage import Usage

_MOST = 1 << 40
_CACHED_BESIDE = ("prompt_cache_hit_tokens", "cached_tokens", "num_cached_tokens")


def usage_of(value: object) -> Usage | None:
    """Return the counts of a `usage` value, or None when it holds none."""
    usage = as_object(value)
    if not usage:
        return None
    prompt = _part(usage, "prompt_tokens_details", "input_tokens_details")
    answer = _part(usage, "completion_tokens_details", "output_tokens_details")
    counts = Usage(
        input=_first(usage, "prompt_tokens", "input_tokens"),
        output=_first(usage, "completion_tokens", "output_tokens"),
        cached=_either(_first(prompt, "cached_tokens"), _first(usage, *_CACHED_BESIDE)),
        cache_write=_first(prompt, "cache_write_tokens", "cache_creation_tokens"),
        reasoning=_either(_first(answer, "reasoning_tokens"), _first(usage, "reasoning_tokens")),
    )
    return None if counts == _NOTHING else counts


def newest(old: Usage | None, new: Usage | None) -> Usage | None:
    """Return the later counts, completed by earlier ones where the later say nothing; never a sum."""
    if old is None or new is None:
        return new or old
    return Usage(
        input=_either(new.input, old.input),
        output=_either(new.output, old.output),
        cached=_either(new.cached, old.cached),
        cache_write=_either(new.cache_write, old.cache_write),
        reasoning=_either(new.reasoning, old.reasoning),
    )


_NOTHING = Usage()


def _part(usage: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    for name in names:
        part = as_object(usage.get(name))
        if part is not None:
            return part
    return {}


def _first(values: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        count = _count(values.get(name))
        if count is not None:
            return count
    return None


def _either(first: int | None, second: int | None) -> int | None:
    return second if first is None else first


def _count(value: object) -> int | None:
    """Return a whole number within bounds; a float without fraction counts, a truth value does not."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    number = cast("int | float", value)
    if isinstance(number, float):
        if not number.is_integer():
            return None
        number = int(number)
    return min(max(number, 0), _MOST)
