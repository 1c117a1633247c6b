"""What a caller asks of the cache, by `gateway.cache`, `x-gateway-cache` and `Cache-Control` (W-CACHE-15)."""

from math import inf
from typing import NamedTuple

from gateway.core.call import Run

_NOTHING = frozenset[str]()


class Wish(NamedTuple):
    """Whether answers may be read and kept, and within which bounds; callers can only make it stricter.

    `only`: an answer from the cache or none at all. `oldest_s`: what the caller itself asks of an answer's age;
    none that is older is served, not even where the operator lets old answers serve a while longer.
    """

    reads: bool
    writes: bool
    only: bool
    ttl_s: float
    max_age_s: float
    threshold: float
    oldest_s: float = inf


def usual(ttl_s: float) -> Wish:
    """Return the wish of who asks nothing special: only such requests share one that is in flight."""
    return Wish(reads=True, writes=True, only=False, ttl_s=ttl_s, max_age_s=ttl_s, threshold=0.0)


def read_wish(run: Run, ttl_s: float) -> Wish:
    """Read what this caller asks; `ttl_s` is what the operator allows."""
    header = run.header(b"cache-control")
    asked = run.cache_wish
    if header is None and asked is None:
        return usual(ttl_s)
    words = _words(header) if header is not None else _NOTHING
    mode = asked.mode if asked is not None else ""
    own_ttl_s = asked.ttl_s if asked is not None and asked.ttl_s is not None else inf
    ttl_s = min(ttl_s, own_ttl_s)
    oldest_s = min(own_ttl_s, _max_age(words))
    is_off = mode == "off" or "no-store" in words
    is_fresh = mode == "refresh" or "no-cache" in words
    return Wish(
        reads=not (is_off or is_fresh),
        writes=not is_off,
        only="only-if-cached" in words and not is_off,
        ttl_s=ttl_s,
        max_age_s=min(ttl_s, oldest_s),
        threshold=(asked.threshold or 0.0) if asked is not None else 0.0,
        oldest_s=oldest_s,
    )


def _words(header: bytes) -> frozenset[str]:
    text = header.decode("latin-1").lower()
    return frozenset(word.strip() for word in text.split(","))


def _max_age(words: frozenset[str]) -> float:
    for word in words:
        name, _, value = word.partition("=")
        if name.strip() == "max-age" and value.strip().isdigit():
            return float(value)
    return inf
