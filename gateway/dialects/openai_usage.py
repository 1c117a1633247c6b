"""Reads token counts as OpenAI and those like it write them; ignores what is no number or cannot be true."""

from collections.abc import Mapping
from typing import Annotated, Any

from gateway.core.codec import Meta, Struct, as_object
from gateway.core.usage import Usage
from gateway.dialects.counts import MOST, plausible

_Count = Annotated[int, Meta(ge=0, le=MOST)] | None


class Details(Struct, gc=False):
    """The parts of a total."""

    cached_tokens: _Count = None
    cache_write_tokens: _Count = None
    reasoning_tokens: _Count = None
    audio_tokens: _Count = None


_NO_DETAILS = Details()
_NOTHING = Usage()


class Counts(Struct, gc=False):
    """A `usage` object as it should be; `usage_of` reads those that are not."""

    prompt_tokens: _Count = None
    completion_tokens: _Count = None
    input_tokens: _Count = None
    output_tokens: _Count = None
    total_tokens: _Count = None
    prompt_tokens_details: Details | None = None
    completion_tokens_details: Details | None = None
    input_tokens_details: Details | None = None
    output_tokens_details: Details | None = None
    prompt_cache_hit_tokens: _Count = None
    cached_tokens: _Count = None
    num_cached_tokens: _Count = None
    reasoning_tokens: _Count = None

    @property
    def plain(self) -> bool:
        """Whether nothing but OpenAI's own names is used."""
        return (
            self.prompt_cache_hit_tokens is None
            and self.cached_tokens is None
            and self.num_cached_tokens is None
            and self.reasoning_tokens is None
            and self.input_tokens_details is None
            and self.output_tokens_details is None
        )


_CACHED_BESIDE = ("prompt_cache_hit_tokens", "cached_tokens", "num_cached_tokens")
_PROMPT = ("prompt_tokens_details", "input_tokens_details")
_ANSWER = ("completion_tokens_details", "output_tokens_details")


def usage_from(counts: Counts | None, *, outside: bool = False) -> Usage | None:
    """Return the counts of a well-formed usage object, or None when it holds none.

    `outside`: this provider counts reasoning beside the output; either way a total tells (K16).
    """
    if counts is None:
        return None
    input_, output = counts.prompt_tokens, counts.completion_tokens
    if input_ is not None and output is not None and counts.plain:
        prompt, answer = counts.prompt_tokens_details, counts.completion_tokens_details
        if prompt is None and answer is None:
            usage = Usage(input_, output)
        else:
            prompt, answer = prompt or _NO_DETAILS, answer or _NO_DETAILS
            usage = Usage(
                input_,
                output,
                prompt.cached_tokens,
                prompt.cache_write_tokens,
                answer.reasoning_tokens,
                prompt.audio_tokens or None,
                answer.audio_tokens or None,
            )
        total = counts.total_tokens
        return usage if total == input_ + output else _whole(usage, total, outside=outside)
    prompt = counts.prompt_tokens_details or counts.input_tokens_details or _NO_DETAILS
    answer = counts.completion_tokens_details or counts.output_tokens_details or _NO_DETAILS
    cached = prompt.cached_tokens
    if cached is None:
        cached = _either(
            counts.prompt_cache_hit_tokens, _either(counts.cached_tokens, counts.num_cached_tokens)
        )
    usage = Usage(
        _either(counts.prompt_tokens, counts.input_tokens),
        _either(counts.completion_tokens, counts.output_tokens),
        cached,
        prompt.cache_write_tokens,
        _either(answer.reasoning_tokens, counts.reasoning_tokens),
        prompt.audio_tokens or None,
        answer.audio_tokens or None,
    )
    return None if usage == _NOTHING else _whole(usage, counts.total_tokens, outside=outside)


def usage_of(value: object, *, outside: bool = False) -> Usage | None:
    """Return the counts of any `usage` value, or None when it holds none."""
    usage = as_object(value)
    if not usage:
        return None
    prompt, answer = _part(usage, _PROMPT), _part(usage, _ANSWER)
    counts = Usage(
        _first(usage, "prompt_tokens", "input_tokens"),
        _first(usage, "completion_tokens", "output_tokens"),
        _either(_first(prompt, "cached_tokens"), _first(usage, *_CACHED_BESIDE)),
        _first(prompt, "cache_write_tokens"),
        _either(_first(answer, "reasoning_tokens"), _first(usage, "reasoning_tokens")),
        _first(prompt, "audio_tokens") or None,
        _first(answer, "audio_tokens") or None,
    )
    if counts == _NOTHING:
        return None
    return _whole(counts, _first(usage, "total_tokens"), outside=outside)


def _whole(usage: Usage, total: int | None, *, outside: bool) -> Usage:
    """Return counts whose output holds all that was made: what the total has beyond both is reasoning (K16)."""
    if usage.output is None:
        return usage
    if total is None:
        beside = (usage.reasoning or 0) if outside else 0
    else:
        beside = total - (usage.input or 0) - usage.output
    if beside <= 0 or (total is not None and usage.input is None):
        return usage
    return usage._replace(output=usage.output + beside, reasoning=max(usage.reasoning or 0, beside))


def newest(old: Usage | None, new: Usage | None) -> Usage | None:
    """Return the later counts, completed by earlier ones where they say nothing; never a sum."""
    if old is None or new is None:
        return new or old
    return Usage(
        input=_either(new.input, old.input),
        output=_either(new.output, old.output),
        cached=_either(new.cached, old.cached),
        cache_write=_either(new.cache_write, old.cache_write),
        reasoning=_either(new.reasoning, old.reasoning),
        audio_input=_either(new.audio_input, old.audio_input),
        audio_output=_either(new.audio_output, old.audio_output),
    )


def _part(usage: Mapping[str, Any], names: tuple[str, ...]) -> Mapping[str, Any]:
    for name in names:
        part = as_object(usage.get(name))
        if part is not None:
            return part
    return {}


def _first(values: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        count = plausible(values.get(name))
        if count is not None:
            return count
    return None


def _either(first: int | None, second: int | None) -> int | None:
    return second if first is None else first
