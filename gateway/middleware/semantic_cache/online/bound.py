"""Bounds on a share that was seen in a sample: Clopper and Pearson's, for counts that need not be whole."""

from math import exp, lgamma, log

_STEPS = 300
_TINY = 1e-300
_CLOSE = 1e-12
_HALVINGS = 40


def is_below(wrong: float, seen: float, limit: float, confidence: float) -> bool:
    """Tell whether the upper bound on the share of `wrong` in `seen` is at most `limit`."""
    if seen <= 0 or wrong >= seen:
        return limit >= 1.0
    return _beta(wrong + 1.0, seen - wrong, limit) >= confidence


def is_above(wrong: float, seen: float, limit: float, confidence: float) -> bool:
    """Tell whether the lower bound on the share of `wrong` in `seen` is more than `limit`."""
    if wrong <= 0 or seen <= 0:
        return False
    return _beta(wrong, max(seen - wrong, 0.0) + 1.0, limit) < 1.0 - confidence


def upper(wrong: float, seen: float, confidence: float) -> float:
    """Return the upper bound on the share; 1.0 when nothing was seen."""
    low, high = 0.0, 1.0
    if seen <= 0 or wrong >= seen:
        return high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if is_below(wrong, seen, middle, confidence):
            high = middle
        else:
            low = middle
    return high


def _beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function: P(share <= x) for a Beta(a, b)."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1.0 - x))
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _fraction(a, b, x) / a
    return 1.0 - front * _fraction(b, a, 1.0 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function, by Lentz's way."""
    c, d = 1.0, 1.0 / _kept(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        for term in (even, odd):
            d = 1.0 / _kept(1.0 + term * d)
            c = _kept(1.0 + term / c)
            value *= c * d
        if abs(c * d - 1.0) < _CLOSE:
            break
    return value


def _kept(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
