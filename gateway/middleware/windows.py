"""Windows follow from the clock of the store alone (K17): no job opens or closes them."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from gateway.core import clock
from gateway.core.counting import Window

_LENGTHS = {"second": 1, "minute": 60, "hour": 3600}
ENDLESS = Window()
_DAY = timedelta(days=1)
_DAYS = frozenset({"day", "week", "month"})


class Calendar:
    """The windows of one time zone; days, weeks and months are those of its calendar, weeks begin on Monday."""

    __slots__ = ("_known", "_zone")

    def __init__(self, zone: str = "UTC") -> None:
        """Open a time zone; raises ZoneInfoNotFoundError or ValueError for an unknown name."""
        self._zone = UTC if zone == "UTC" else ZoneInfo(zone)
        self._known: dict[str, Window] = {}

    def window(self, per: str, now_s: float) -> Window:
        """Return the window that holds a moment, in seconds since the epoch; without end for anything else."""
        known = self._known.get(per)
        if known is None or not known.start <= now_s < known.end:
            known = self._known[per] = self._find(per, now_s)
        return known

    def _find(self, per: str, now_s: float) -> Window:
        length = _LENGTHS.get(per)
        here = datetime.fromtimestamp(now_s, self._zone)
        if length is not None:
            offset = here.utcoffset()
            shift = int(offset.total_seconds()) if offset is not None else 0
            start = (int(now_s) + shift) // length * length - shift
            return Window(start, start + length)
        if per not in _DAYS:
            return ENDLESS
        first = _first(per, here.date())
        window = self._between(first, _next(per, first))
        while now_s >= window.end:  # a day that its clocks made longer or shorter at midnight
            first = _next(per, first)
            window = self._between(first, _next(per, first))
        while now_s < window.start:
            first = _first(per, first - _DAY)
            window = self._between(first, _next(per, first))
        return window

    def _between(self, first: date, last: date) -> Window:
        return Window(self._midnight(first), self._midnight(last))

    def _midnight(self, day: date) -> int:
        return int(datetime.combine(day, time(), self._zone).timestamp())


def _first(per: str, day: date) -> date:
    if per == "month":
        return day.replace(day=1)
    return day - timedelta(days=day.weekday()) if per == "week" else day


def _next(per: str, first: date) -> date:
    if per == "month":
        return (first + timedelta(days=32)).replace(day=1)
    return first + (timedelta(days=7) if per == "week" else _DAY)


class StoreClock:
    """The clock of the store, kept by its answers; between them it goes on with a clock that nobody sets."""

    __slots__ = ("_ahead_s",)

    def __init__(self) -> None:
        self._ahead_s = clock.wall() - clock.monotonic()

    def now_s(self) -> float:
        """Return the store's time in seconds since the epoch, as far as is known."""
        return clock.monotonic() + self._ahead_s

    def learn(self, now_ms: int) -> None:
        """Take the time from an answer of the store."""
        self._ahead_s = now_ms / 1000 - clock.monotonic()
