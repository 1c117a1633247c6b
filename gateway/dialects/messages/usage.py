"""Token counts as Messages tells them: what was read from or written to a cache stands beside the input (K16)."""

from typing import Any

from gateway.core.codec import as_object
from gateway.core.usage import Usage
from gateway.dialects.counts import plausible

_NAMES = (
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "output_tokens",
)
_THINKING = "thinking_tokens"


class Counts:
    """The counts of one answer so far. Later ones replace earlier ones, each for itself; nothing is added (K07)."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def take(self, value: object) -> None:
        """Take a `usage` object; what is missing, null or no count changes nothing."""
        usage = as_object(value)
        if usage is None:
            return
        for name in _NAMES:
            if name in usage:
                self._note(name, usage[name])
        details = as_object(usage.get("output_tokens_details"))
        if details is not None:
            self._note(_THINKING, details.get(_THINKING))

    def _note(self, name: str, value: object) -> None:
        count = plausible(value)
        if count is not None:
            self._known[name] = count

    def total(self) -> Usage | None:
        """Return the counts with totals that hold all, or None when nothing was told."""
        known = self._known
        if not known:
            return None
        inputs = [known[name] for name in _NAMES[:3] if name in known]
        return Usage(
            input=sum(inputs) if inputs else None,
            output=known.get("output_tokens"),
            cached=known.get("cache_read_input_tokens"),
            cache_write=known.get("cache_creation_input_tokens"),
            reasoning=known.get(_THINKING),
        )


def read_usage(value: object) -> Usage | None:
    """Return the counts of one `usage` object, or None when it holds none."""
    counts = Counts()
    counts.take(value)
    return counts.total()


def write_usage(usage: Usage | None) -> dict[str, Any]:
    """Return a `usage` object; the two counts that the format needs are 0 where nobody told them.

    The three counts of the input add up to all of it, also where a provider counts more cached tokens than input.
    """
    usage = usage or Usage()
    left = usage.input or 0
    cached = min(usage.cached or 0, left)
    made = min(usage.cache_write or 0, left - cached)
    written: dict[str, Any] = {"input_tokens": left - cached - made}
    if usage.cache_write is not None:
        written["cache_creation_input_tokens"] = made
    if usage.cached is not None:
        written["cache_read_input_tokens"] = cached
    written["output_tokens"] = usage.output or 0
    if usage.reasoning is not None:
        written["output_tokens_details"] = {_THINKING: usage.reasoning}
    return written
