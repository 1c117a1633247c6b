"""What the layers of a chain must see of an answer; the engine does no more than that."""

from typing import NamedTuple


class Needs(NamedTuple):
    """What one layer needs, or all layers of a chain together.

    `whole`: the answer in one piece, so that a stream is asked for plainly and made again at the end.
    `hold`: a stream counts as begun with its first content; what comes before is held back (K10).
    `complete`: a stream counts as begun when it is complete.
    `text`: the size of streamed text is counted as it goes by.
    """

    whole: bool = False
    hold: bool = False
    complete: bool = False
    text: bool = False

    def __or__(self, other: "Needs") -> "Needs":
        """Return what both need."""
        return Needs(*(mine or theirs for mine, theirs in zip(self, other, strict=True)))


NOTHING = Needs()
