"""All metric names, and the cells that the hot path bumps. A new metric is one row of `METRICS`.

Label values come from the configuration and closed sets: never a path, a client's text or a user.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.core.usage import Usage
from gateway.telemetry.cells import Counter, Gauge, Histogram, Kind, Registry

OK = "ok"
"""The outcome of an attempt that did not fail; every other outcome is a machine code."""

_OPERATION_S = tuple(0.01 * 2**power for power in range(14))
_REQUEST_S = (0.0025, 0.005, *_OPERATION_S, 163.84, 327.68, 655.36)
_SHORT_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
_LAG_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_TOKENS = tuple(4**power for power in range(14))

_C, _H = Kind.COUNTER, Kind.HISTOGRAM
_SUM, _MAX, _MIN = Kind.GAUGE_SUM, Kind.GAUGE_MAX, Kind.GAUGE_MIN


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    `hidden` labels are stored beside `labels` and added up where they are not shown. A row with
    `of` stores nothing: it shows that row's series under its own labels (a counter: how many
    observations they hold).
    `rename` gives the stored label behind a shown one where the names differ.
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    hidden: tuple[str, ...] = ()
    of: str = ""
    rename: Mapping[str, str] = field(default_factory=dict[str, str])


_REQUEST = ("tenant", "model", "endpoint")
_DURATION = "gateway_request_duration_seconds"
_UPSTREAM = "gateway_upstream_duration_seconds"
_TOTAL = "gateway_tokens_total"
_GENAI = {
    "gen_ai_operation_name": "operation",
    "gen_ai_provider_name": "system",
    "gen_ai_request_model": "model",
    "gen_ai_token_type": "type",
    "error_type": "error",
}

_ROWS = (
    Metric(
        "gateway_requests_total",
        _C,
        "Requests that were answered or given up, by HTTP status (499: the client left).",
        (*_REQUEST, "status"),
        of=_DURATION,
    ),
    Metric(
        _DURATION,
        _H,
        "Time from the request's first byte to the last byte of its answer, in seconds.",
        _REQUEST,
        _REQUEST_S,
        hidden=("status",),
    ),
    Metric(
        "gateway_overhead_seconds",
        _H,
        "The part of a request's time that was not spent waiting for a provider, in seconds.",
        ("endpoint",),
        _SHORT_S,
    ),
    Metric(
        "gateway_time_to_first_chunk_seconds",
        _H,
        "Time from a streamed request's first byte to the first chunk of its answer, in seconds.",
        ("model", "endpoint"),
        _REQUEST_S,
    ),
    Metric("gateway_in_flight_requests", _SUM, "Requests that are being handled now."),
    Metric(
        "gateway_shed_requests_total",
        _C,
        "Requests that were refused before any work, by reason.",
        ("reason",),
    ),
    Metric(
        "gateway_client_disconnects_total",
        _C,
        "Requests whose client left before the answer was complete.",
        ("endpoint",),
    ),
    Metric(
        "gateway_upstream_attempts_total",
        _C,
        "Calls to providers by outcome: `ok` or the machine code of the failure.",
        ("provider", "model", "outcome"),
        of=_UPSTREAM,
    ),
    Metric(
        _UPSTREAM,
        _H,
        "Time of one call to a provider, from sending to the last byte, in seconds.",
        ("provider", "model"),
        _OPERATION_S,
        hidden=("system", "operation", "outcome", "error"),
    ),
    Metric(
        "gateway_stream_parse_failures_total",
        _C,
        "Broken events in providers' streams.",
        ("provider",),
    ),
    Metric(
        _TOTAL,
        _C,
        "Tokens as providers counted them, by type; their parts are told apart where named.",
        ("tenant", "model", "type"),
    ),
    Metric(
        "gen_ai_client_token_usage",
        _H,
        "Input and output tokens of one call to a provider (gen_ai.client.token.usage).",
        (
            "gen_ai_operation_name",
            "gen_ai_provider_name",
            "gen_ai_request_model",
            "gen_ai_token_type",
        ),
        _TOKENS,
    ),
    Metric(
        "gen_ai_client_operation_duration",
        _H,
        "Time of one call to a provider in seconds (gen_ai.client.operation.duration).",
        ("gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "error_type"),
        _OPERATION_S,
        of=_UPSTREAM,
        rename=_GENAI,
    ),
    Metric(
        "gateway_config_generation",
        _MIN,
        "Number of the configuration in use; with several workers that of the last to follow.",
    ),
    Metric(
        "gateway_config_stale",
        _MAX,
        "1 while the configuration on disk is not in use because it has mistakes, else 0.",
    ),
    Metric(
        "gateway_loop_lag_seconds",
        _H,
        "How late the event loop ran a timer, in seconds.",
        (),
        _LAG_S,
    ),
    Metric(
        "gateway_loop_lag_max_seconds",
        _MAX,
        "The worst lag of the event loop in the last 15 seconds.",
    ),
    Metric(
        "gateway_log_lines_lost_total",
        _C,
        "Log lines that could not be written: the disk was full or the reader too slow.",
    ),
    Metric("gateway_info", _MAX, "Always 1; the version of the gateway is a label.", ("version",)),
)

METRICS: dict[str, Metric] = {row.name: row for row in _ROWS}
"""Every metric of the gateway itself, in the order of /metrics."""


class Metrics:
    """The metrics of one process over its registry."""

    __slots__ = ("_registry", "config_generation", "config_stale", "in_flight", "log_lines_lost")

    def __init__(self, registry: Registry, version: str) -> None:
        self._registry = registry
        self.in_flight = self.gauge("gateway_in_flight_requests")
        self.config_generation = self.gauge("gateway_config_generation")
        self.config_stale = self.gauge("gateway_config_stale")
        self.log_lines_lost = self.counter("gateway_log_lines_lost_total")
        self.gauge("gateway_info", version).set(1.0)

    def counter(self, name: str, *labels: str) -> Counter:
        """Return a counter of the table, by its label values in the table's order."""
        return self._registry.counter(_row(name, labels).name, labels)

    def gauge(self, name: str, *labels: str) -> Gauge:
        """Return a gauge of the table, by its label values in the table's order."""
        return self._registry.gauge(name, labels, _row(name, labels).kind)

    def histogram(self, name: str, *labels: str) -> Histogram:
        """Return a histogram of the table, by its label values (hidden ones last)."""
        return self._registry.histogram(name, labels, _row(name, labels).buckets)

    def request_cells(self, tenant: str, model: str, endpoint: str) -> "RequestCells":
        """Find the cells of a tenant's model once, for its plan; an unknown name is `other`."""
        return RequestCells(self, tenant, model, endpoint)

    def attempt_cells(
        self, provider: str, model: str, operation: str = "chat", system: str = ""
    ) -> "AttemptCells":
        """Find the cells of a target once.

        `operation` and `system` are gen_ai.operation.name and gen_ai.provider.name (the provider).
        """
        return AttemptCells(self, provider, model, operation, system or provider)

    def shed(self, reason: str) -> None:
        """Count a request that was refused before any work."""
        self.counter("gateway_shed_requests_total", reason).inc()

    def stream_parse_failure(self, provider: str) -> None:
        """Count a broken event in a provider's stream."""
        self.counter("gateway_stream_parse_failures_total", provider).inc()


def _row(name: str, labels: tuple[str, ...]) -> Metric:
    row = METRICS[name]
    if row.of or len(labels) != len(row.labels) + len(row.hidden):
        message = f"{name} is not stored under {len(labels)} labels"
        raise ValueError(message)
    return row


class RequestCells:
    """What a request of one tenant, model and endpoint bumps."""

    __slots__ = (
        "_by_status",
        "_first_chunk",
        "_gone",
        "_labels",
        "_metrics",
        "_overhead",
        "_tokens",
    )

    def __init__(self, metrics: Metrics, tenant: str, model: str, endpoint: str) -> None:
        self._metrics = metrics
        self._labels = (tenant, model, endpoint)
        self._by_status: dict[int, Histogram] = {}
        self._overhead = metrics.histogram("gateway_overhead_seconds", endpoint)
        self._first_chunk = metrics.histogram(
            "gateway_time_to_first_chunk_seconds", model, endpoint
        )
        self._gone = metrics.counter("gateway_client_disconnects_total", endpoint)
        self._tokens = _TokenCells(metrics, tenant, model)

    def finish(
        self, status: int, duration_s: float, overhead_s: float, first_chunk_s: float | None = None
    ) -> None:
        """Count a request once, after its last byte; `first_chunk_s` of a stream that began."""
        duration = self._by_status.get(status)
        if duration is None:
            duration = self._of_status(status)
        duration.observe(duration_s)
        self._overhead.observe(overhead_s)
        if first_chunk_s is not None:
            self._first_chunk.observe(first_chunk_s)

    def tokens(self, usage: Usage) -> None:
        """Add what the provider counted for the answer; what it did not say is not counted."""
        self._tokens.add(usage)

    def client_gone(self) -> None:
        """Count a client that left before its answer was complete."""
        self._gone.inc()

    def _of_status(self, status: int) -> Histogram:
        label = str(status) if 100 <= status <= 599 else "other"
        cell = self._metrics.histogram(_DURATION, *self._labels, label)
        if label != "other":
            self._by_status[status] = cell
        return cell


class _TokenCells:
    __slots__ = ("_cached", "_input", "_metrics", "_output", "_rest", "_tenant_model")

    def __init__(self, metrics: Metrics, tenant: str, model: str) -> None:
        self._metrics = metrics
        self._tenant_model = (tenant, model)
        self._input = metrics.counter(_TOTAL, tenant, model, "input")
        self._output = metrics.counter(_TOTAL, tenant, model, "output")
        self._rest: dict[str, Counter] = {}

    def add(self, usage: Usage) -> None:
        if usage.input:
            self._input.inc(usage.input)
        if usage.output:
            self._output.inc(usage.output)
        if usage.cached:
            self._of("cached").inc(usage.cached)
        if usage.cache_write:
            self._of("cache_write").inc(usage.cache_write)
        if usage.reasoning:
            self._of("reasoning").inc(usage.reasoning)

    def _of(self, kind: str) -> Counter:
        cell = self._rest.get(kind)
        if cell is None:
            cell = self._rest[kind] = self._metrics.counter(_TOTAL, *self._tenant_model, kind)
        return cell


class AttemptCells:
    """What a call to one target bumps."""

    __slots__ = ("_by_outcome", "_input", "_labels", "_metrics", "_output")

    def __init__(
        self, metrics: Metrics, provider: str, model: str, operation: str, system: str
    ) -> None:
        self._metrics = metrics
        self._labels = (provider, model, system, operation)
        self._by_outcome: dict[str, Histogram] = {}
        name, labels = "gen_ai_client_token_usage", (operation, system, model)
        self._input = metrics.histogram(name, *labels, "input")
        self._output = metrics.histogram(name, *labels, "output")

    def done(self, outcome: str, duration_s: float) -> None:
        """Count a call once it ended; `outcome` is `OK` or a machine code."""
        cell = self._by_outcome.get(outcome)
        if cell is None:
            error = "" if outcome == OK else outcome
            cell = self._metrics.histogram(_UPSTREAM, *self._labels, outcome, error)
            self._by_outcome[outcome] = cell
        cell.observe(duration_s)

    def tokens(self, usage: Usage) -> None:
        """Observe the tokens of one answered call."""
        if usage.input is not None:
            self._input.observe(usage.input)
        if usage.output is not None:
            self._output.observe(usage.output)
