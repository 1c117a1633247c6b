"""Which token counts can be true; any other is as if the provider had said nothing."""

MOST = 1 << 28
"""No answer has more tokens; one that says so must not ruin the counters, nor keep a run out of the ledger."""


def plausible(value: object) -> int | None:
    """Return a plausible whole number, else None; a float without fraction counts, a truth value does not."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float):
        if not value.is_integer():
            return None
        value = int(value)
    return value if 0 <= value <= MOST else None


def together(*counts: float | None) -> int | None:
    """Return the sum of counts of which an absent one is zero; None where one of them cannot be true."""
    told = [plausible(count or 0) for count in counts]
    known = [count for count in told if count is not None]
    return sum(known) if len(known) == len(told) else None
