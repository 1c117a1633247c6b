"""Counters, gauges and histograms as doubles in a region of `segment.py`: one writer, no locks.

A series is found once, then bumped by index. How many a metric may have is bounded here (T-45).
"""

import struct
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Self, TypeVar, cast

from gateway.core.codec import JSONError, decode, encode
from gateway.telemetry.segment import Region, Values, read_file, records

OTHER = "other"
_MAX_LABEL_CHARS = 256
_LIMIT = 10_000
_RECORDS_PER_TURN = 50
_PAUSE_S = 0.0001

_Item = TypeVar("_Item")


class Kind(IntEnum):
    """What a record's doubles mean, and how those of several workers become one value."""

    COUNTER = 1
    HISTOGRAM = 2
    GAUGE_SUM = 3
    GAUGE_MAX = 4
    GAUGE_MIN = 5


_KINDS = frozenset(Kind)
Labels = tuple[str, ...]
Families = dict[str, dict[Labels, list[float]]]
"""Metric name to label values to doubles: one; of a histogram its sum, then its bucket counts."""


class Counter:
    """A number that only grows."""

    __slots__ = ("_at", "_values")

    def __init__(self, values: Values, at: int) -> None:
        self._values = values
        self._at = at

    def inc(self, amount: float = 1.0) -> None:
        """Add an amount, zero or more."""
        self._values[self._at] += amount


class Gauge:
    """A number that follows something alive; it ends with its process."""

    __slots__ = ("_at", "_values")

    def __init__(self, values: Values, at: int) -> None:
        self._values = values
        self._at = at

    def inc(self, amount: float = 1.0) -> None:
        """Add an amount."""
        self._values[self._at] += amount

    def dec(self, amount: float = 1.0) -> None:
        """Take an amount off."""
        self._values[self._at] -= amount

    def set(self, value: float) -> None:
        """Replace the value."""
        self._values[self._at] = value


class Histogram:
    """Observations in buckets; a bound belongs to the bucket below it."""

    __slots__ = ("at", "bounds", "values")

    def __init__(self, values: Values, at: int, bounds: Sequence[float]) -> None:
        self.values = values
        self.at = at
        self.bounds = bounds

    def observe(self, value: float) -> None:
        """Count one; a negative number or none at all counts as zero, so that sums never fall."""
        if not value >= 0.0:
            value = 0.0
        values = self.values
        at = self.at
        values[at + 1 + bisect_left(self.bounds, value)] += 1.0
        values[at] += value


class Registry:
    """The series of one process."""

    __slots__ = ("_counts", "_found", "_limit", "_region")

    def __init__(self, region: Region, limit: int) -> None:
        self._region = region
        self._limit = limit
        self._counts: dict[str, int] = {}
        self._found: dict[tuple[str, ...], tuple[Kind, Values, int, int]] = {}
        for segment in region.segments:
            for record in records(segment.snapshot()):
                name = _name_of(record.name)
                if not name or record.kind not in _KINDS:
                    continue
                kind = Kind(record.kind)
                self._counts[name[0]] = self._counts.get(name[0], 0) + 1
                self._found[name] = (kind, segment.values, record.at, record.count)
                if kind >= Kind.GAUGE_SUM:
                    segment.values[record.at] = 0.0

    @classmethod
    def create(cls, path: Path | None = None, *, limit: int = _LIMIT) -> Self:
        """Start over a file that others read, or over private memory; `limit` series per metric.

        A file left by a dead worker is continued: its counts stay, its gauges start at zero (L-6).
        Raises BlockingIOError when the file's writer is alive, OSError when it cannot be made.
        """
        return cls(Region(path), limit)

    def counter(self, name: str, labels: Labels = ()) -> Counter:
        """Return the counter with these label values."""
        return Counter(*self._find(name, labels, Kind.COUNTER, 1))

    def gauge(self, name: str, labels: Labels = (), kind: Kind = Kind.GAUGE_SUM) -> Gauge:
        """Return the gauge with these label values."""
        return Gauge(*self._find(name, labels, kind, 1))

    def histogram(self, name: str, labels: Labels, bounds: Sequence[float]) -> Histogram:
        """Return the histogram with these label values; `bounds` are upper bounds, rising."""
        values, at = self._find(name, labels, Kind.HISTOGRAM, len(bounds) + 2)
        return Histogram(values, at, bounds)

    def read(self) -> Families:
        """Copy all values of this process."""
        families: Families = {}
        for segment in list(self._region.segments):
            _merge(families, segment.snapshot(), alive=True)
        return families

    @property
    def spilled(self) -> bool:
        """Tell whether series had to go where no other process sees them: the disk was full."""
        return self._region.spilled

    def close(self, *, remove: bool = False) -> None:
        """Let the file go: its gauges end, its counts stay unless it is removed."""
        self._region.close(remove=remove)

    def _find(self, name: str, labels: Labels, kind: Kind, count: int) -> tuple[Values, int]:
        key = (name, *labels)
        found = self._found.get(key)
        if found is None:
            full = self._counts.get(name, 0) >= self._limit
            if full or any(len(label) > _MAX_LABEL_CHARS for label in labels):
                key = (name, *(OTHER for _ in labels))
            found = self._found.get(key) or self._add(key, kind, count)
        if (found[0], found[3]) != (kind, count):
            message = f"{name} already exists as another kind of metric"
            raise ValueError(message)
        return found[1], found[2]

    def _add(self, key: tuple[str, ...], kind: Kind, count: int) -> tuple[Kind, Values, int, int]:
        segments = self._region.segments
        segment = segments[-1] if segments else self._region.grow()
        name = encode(key)
        at = segment.append(kind, count, name)
        if at is None:
            segment = self._region.grow()
            at = segment.append(kind, count, name)
        if at is None:
            message = f"{key[0]} has more buckets or labels than a segment holds"
            raise ValueError(message)
        self._counts[key[0]] = self._counts.get(key[0], 0) + 1
        self._found[key] = (kind, segment.values, at, count)
        return self._found[key]


def read(paths: Iterable[Path]) -> Families:
    """Add up several processes' regions: counts of dead ones stay, their gauges do not (K40)."""
    families: Families = {}
    for path in paths:
        copies, alive = read_file(path)
        for data in copies:
            _merge(families, data, alive=alive)
    return families


def paced(items: Iterable[_Item], turn: int) -> Iterator[_Item]:
    """Yield items, and every `turn` of them let other threads run, long before they would by force."""
    for number, item in enumerate(items, 1):
        yield item
        if number % turn == 0:
            time.sleep(_PAUSE_S)


def _name_of(name: bytes) -> tuple[str, ...]:
    """Return the parts of a record's name; none when it is not a name."""
    try:
        parts: object = decode(name)
    except JSONError:
        return ()
    return tuple(map(str, cast("list[object]", parts))) if isinstance(parts, list) else ()


def _merge(families: Families, data: bytes, *, alive: bool) -> None:
    for record in paced(records(data), _RECORDS_PER_TURN):
        kind = record.kind
        if kind >= Kind.GAUGE_SUM and not alive:
            continue
        metric, *labels = _name_of(record.name) or ("",)
        values = list(struct.unpack_from(f"={record.count}d", data, 8 * record.at))
        series = families.setdefault(metric, {})
        before = series.get(tuple(labels))
        if before is None:
            series[tuple(labels)] = values
        elif kind == Kind.GAUGE_MAX:
            before[0] = max(before[0], values[0])
        elif kind == Kind.GAUGE_MIN:
            before[0] = min(before[0], values[0])
        else:
            series[tuple(labels)] = [a + b for a, b in zip(before, values, strict=False)]
