"""Token counts of one answer, as the provider reported them."""

from typing import NamedTuple


class Usage(NamedTuple):
    """Tokens by kind. `cached`, `cache_write` and `reasoning` are parts that the provider names beside the totals.

    None means that the provider did not say; an explicit zero is not the same (K07).
    """

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
