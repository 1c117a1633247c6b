"""Money: whole micro-dollars, and the only arithmetic on it."""

from typing import NamedTuple


class Price(NamedTuple):
    """What a model costs, in micro-dollars per million tokens."""

    input: int
    output: int
