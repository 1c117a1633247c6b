"""Token counts of one answer, as the provider reported them."""

from typing import NamedTuple


class Usage(NamedTuple):
    """Tokens by kind. `input` and `output` are totals, the others parts of them: `cached`, `cache_write` and
    `audio_input` of `input`, `reasoning` and `audio_output` of `output`.

    None means that the provider did not say; an explicit zero is not the same (K07).
    """

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    audio_input: int | None = None
    audio_output: int | None = None
