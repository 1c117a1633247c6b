"""When a provider wants to be asked again, read from whatever it says: headers, fields of the body, words (K09).

Nothing here is trusted: what is no sound time is ignored, and none is longer than an hour (U-3).
"""

import re
from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime

from gateway.core import clock

_MOST_S = 3600.0
_TOO_MANY = 429
_NUMBER = re.compile(rb"[0-9]+(\.[0-9]+)?\Z")
_PART = re.compile(rb"([0-9]+(?:\.[0-9]+)?)(ms|us|[dhms])")
_DURATION = re.compile(rb"(?:[0-9]+(?:\.[0-9]+)?(?:ms|us|[dhms]))+\Z")
_UNITS_S = {b"d": 86_400.0, b"h": 3600.0, b"m": 60.0, b"s": 1.0, b"ms": 0.001, b"us": 0.000001}
_EPOCH_MS, _EPOCH_S = 1e11, 1e9
_DELAY = re.compile(rb'"retryDelay"\s{0,9}:\s{0,9}"([0-9]+(?:\.[0-9]+)?)s"')
_MEMBER = re.compile(rb'"retry_after(?:_seconds)?"\s{0,9}:\s{0,9}"?([0-9]+(?:\.[0-9]+)?)[",}\s]')
_WORDS = re.compile(
    rb"(?:try|retry)(?: again)? (?:in|after) "
    rb"((?:[0-9]+(?:\.[0-9]+)?(?:ms|us|[dhms]))+|[0-9]+(?:\.[0-9]+)?)"
    rb"( ?(?:ms|milliseconds?|minutes?|hours?|days?))?",
    re.IGNORECASE,
)
_LONG_UNITS_S = {b"m": 60.0, b"h": 3600.0, b"d": 86_400.0}
_LIMITS = (b"requests", b"tokens")

Header = Callable[[bytes], bytes | None]
"""Returns a header of an answer by its lower-case name."""


def wanted_wait(http: int, header: Header, body: bytes) -> float | None:
    """Return the seconds that an error answer asks to wait, the longest of all it says; None when it says none.

    A limit that is nowhere near its end says nothing: its reset counts only when nothing of it remains.
    """
    waits = list(_headers(header))
    if http == _TOO_MANY:
        waits.extend(_body(body))
        if not waits:
            waits.extend(_resets(header))
    return min(max(waits), _MOST_S) if waits else None


def read_wait(milliseconds: bytes | None, seconds: bytes | None) -> float | None:
    """Return the longer of `retry-after-ms` and `retry-after` in seconds; None when there is no sound one."""
    said = {b"retry-after-ms": milliseconds, b"retry-after": seconds}
    return wanted_wait(0, said.get, b"")


def wait_in_words(text: bytes) -> float | None:
    """Return the seconds that a message asks to wait ("try again in 1.2s"); None when it does not."""
    found = _WORDS.search(text)
    if found is None:
        return None
    number, unit = found.group(1), (found.group(2) or b"").strip().lower()
    if _DURATION.match(number.lower()):
        return min(_duration_s(number.lower()), _MOST_S)
    if unit.startswith((b"ms", b"milli")):
        return min(float(number) / 1000, _MOST_S)
    return min(float(number) * _LONG_UNITS_S.get(unit[:1], 1.0), _MOST_S)


def _headers(header: Header) -> Iterator[float]:
    milliseconds = header(b"retry-after-ms")
    if milliseconds is not None and _NUMBER.match(milliseconds):
        yield float(milliseconds) / 1000.0
    wait_s = _time(header(b"retry-after"))
    if wait_s is not None:
        yield wait_s


def _body(body: bytes) -> Iterator[float]:
    for form in (_DELAY, _MEMBER):
        found = form.search(body)
        if found is not None:
            yield float(found.group(1))
    wait_s = wait_in_words(body)
    if wait_s is not None:
        yield wait_s


def _resets(header: Header) -> Iterator[float]:
    for limit in (b"", *_LIMITS):
        tail = b"-" + limit if limit else b""
        remaining = header(b"x-ratelimit-remaining" + tail)
        if remaining is not None and remaining.strip(b"0. "):
            continue
        wait_s = _time(header(b"x-ratelimit-reset" + tail))
        if wait_s is not None:
            yield wait_s


def _time(value: bytes | None) -> float | None:
    """Read seconds, a duration (6m0s), seconds or milliseconds since the epoch, or a date; else None."""
    if value is None:
        return None
    if _NUMBER.match(value):
        number = float(value)
        if number >= _EPOCH_MS:
            number /= 1000
        return max(0.0, number - clock.wall()) if number >= _EPOCH_S else number
    if _DURATION.match(value):
        return _duration_s(value)
    try:
        date = parsedate_to_datetime(value.decode("ascii"))
    except (ValueError, OverflowError):
        return None
    return max(0.0, date.timestamp() - clock.wall()) if date.tzinfo is not None else None


def _duration_s(value: bytes) -> float:
    return sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(value))
