"""Answers /metrics through prometheus_client, over the cells of one or of several processes.

Rendering holds the interpreter lock, so it pauses often, and an answer is reused for a moment: scrapes
must not slow requests down (L-17).
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from threading import Lock

from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector, CollectorRegistry
from prometheus_client.samples import Sample

from gateway.core import clock
from gateway.telemetry.catalogue import METRICS, Metric
from gateway.telemetry.cells import Families, Kind, Labels, paced

_FRESH_S = 0.05
_MAX_SHARE = 10
_LINES_PER_TURN = 50
_SERIES_PER_TURN = 200
_OPEN_TYPE = "application/openmetrics-text"
_OPEN = f"{_OPEN_TYPE}; version=1.0.0"
_TYPES = {Kind.COUNTER: "counter", Kind.HISTOGRAM: "histogram"}

Processes = Callable[[], Mapping[str, int]]
"""Returns the process id of each worker, by the worker's name."""


class Exposition:
    """The answers to scrapes. `read` adds up the cells; `processes` names the workers of a supervisor."""

    def __init__(
        self,
        read: Callable[[], Families],
        processes: Processes | None = None,
        *,
        fresh_s: float = _FRESH_S,
    ) -> None:
        self._fresh_s = fresh_s
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_Cells(read))
        self._registry.register(_Processes(processes))
        self._lock = Lock()
        self._kept: dict[str, tuple[float, bytes]] = {}

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """Return the exposition and its content type, as the Accept header asks. Call it in a thread.

        An answer is reused for 50 ms, or for ten times as long as it took, and while the next one
        is being written.
        """
        # The library trips over odd versions in the header; our names need no newer format.
        encode, content_type = choose_encoder(_OPEN if _OPEN_TYPE in accept.lower() else "")
        until, body = self._kept.get(content_type, (0.0, b""))
        if clock.monotonic() < until or not self._lock.acquire(blocking=not body):
            return body, content_type
        try:
            began = clock.monotonic()
            until, body = self._kept.get(content_type, (0.0, b""))
            if began >= until:
                body = encode(self._registry)
                done = clock.monotonic()
                self._kept[content_type] = (
                    done + max(self._fresh_s, _MAX_SHARE * (done - began)),
                    body,
                )
        finally:
            self._lock.release()
        return body, content_type


class _Cells(Collector):
    def __init__(self, read: Callable[[], Families]) -> None:
        self._read = read

    def collect(self) -> Iterator[Family]:
        stored = self._read()
        for row in METRICS.values():
            source = METRICS[row.of] if row.of else row
            series = stored.get(source.name)
            if series:
                yield _family(row, _shown(row, source, series))


class _Processes(Collector):
    """What the operating system says of this process, or of each worker."""

    def __init__(self, processes: Processes | None) -> None:
        self._processes = processes
        self._own = ProcessCollector(registry=None)

    def collect(self) -> Iterator[Family]:
        if self._processes is None:
            yield from self._own.collect()
            return
        merged: dict[str, Family] = {}
        for worker, pid in self._processes().items():
            for family in ProcessCollector(registry=None, pid=lambda pid=pid: pid).collect():
                into = merged.setdefault(
                    family.name, Family(family.name, family.documentation, family.type)
                )
                for sample in family.samples:
                    into.add_sample(sample.name, {"worker": worker}, sample.value)
        yield from merged.values()


def _shown(
    row: Metric, source: Metric, series: Mapping[Labels, list[float]]
) -> dict[Labels, list[float]]:
    """Bring stored series under the labels that a metric shows, adding up what becomes equal."""
    names = source.labels + source.hidden
    places = [names.index(row.rename.get(label, label)) for label in row.labels]
    if places == list(range(len(names))):
        return dict(series)
    shown: dict[Labels, list[float]] = {}
    for labels, values in paced(series.items(), _SERIES_PER_TURN):
        key = tuple(labels[place] for place in places)
        before = shown.get(key)
        if before is None:
            shown[key] = values
        else:
            shown[key] = [a + b for a, b in zip(before, values, strict=True)]
    return shown


def _family(row: Metric, series: Mapping[Labels, list[float]]) -> Family:
    # The library adds the suffix of a counter again where its format wants it.
    family = Family(row.name.removesuffix("_total"), row.help, _TYPES.get(row.kind, "gauge"))
    family.samples = _Paced(_samples(row, series))
    return family


def _samples(row: Metric, series: Mapping[Labels, list[float]]) -> Iterator[Sample]:
    bounds = [*(str(float(bound)) for bound in row.buckets), "+Inf"]
    for key in sorted(series):
        values = series[key]
        # An empty label is the same as none; a label that says nothing is left out.
        labels = {name: value for name, value in zip(row.labels, key, strict=True) if value}
        if row.kind == Kind.HISTOGRAM:
            total = 0.0
            for bound, total in zip(bounds, accumulate(values[1:]), strict=True):
                yield Sample(f"{row.name}_bucket", {**labels, "le": bound}, total)
            yield Sample(f"{row.name}_count", labels, total)
            yield Sample(f"{row.name}_sum", labels, values[0])
        else:
            yield Sample(row.name, labels, sum(values[1:]) if row.of else values[0])


class _Paced(list[Sample]):
    """Samples that let other threads run between them."""

    def __iter__(self) -> Iterator[Sample]:
        return paced(super().__iter__(), _LINES_PER_TURN)
