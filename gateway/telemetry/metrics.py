"""The cells that the hot path bumps, found once per tenant's model and once per target."""

from bisect import bisect_left

from gateway.core.usage import Usage
from gateway.telemetry.catalogue import (
    DURATION,
    METRICS,
    OK,
    TOKENS,
    TOKENS_TOTAL,
    UPSTREAM,
    Metric,
)
from gateway.telemetry.cells import OTHER, Counter, Gauge, Histogram, Registry


class Metrics:
    """The metrics of one process over its registry."""

    __slots__ = (
        "_registry",
        "config_generation",
        "config_replaced",
        "config_stale",
        "in_flight",
        "log_lines_lost",
    )

    def __init__(self, registry: Registry, version: str) -> None:
        self._registry = registry
        self.in_flight = self.gauge("gateway_in_flight_requests")
        self.config_generation = self.gauge("gateway_config_generation")
        self.config_replaced = self.gauge("gateway_config_replaced")
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
        return RequestCells(self, tenant or OTHER, model or OTHER, endpoint or OTHER)

    def attempt_cells(
        self, provider: str, model: str, operation: str = "chat", system: str = ""
    ) -> "AttemptCells":
        """Find the cells of a target once.

        `operation` and `system` are gen_ai.operation.name and gen_ai.provider.name (the provider).
        """
        return AttemptCells(self, provider, model, operation, system or provider)

    def target_health(self, provider: str, model: str, state: int, limit: float) -> None:
        """Show the state of a target's breaker (0 closed, 1 half-open, 2 open) and its limit of calls at once."""
        self.gauge("gateway_breaker_state", provider, model).set(state)
        self.gauge("gateway_target_concurrency_limit", provider, model).set(limit)

    def state(self) -> "StateCells":
        """Find the cells of the shared state."""
        return StateCells(self)

    def shed(self, reason: str) -> None:
        """Count a request that was refused before any work."""
        self.counter("gateway_shed_requests_total", reason).inc()

    def stream_parse_failure(self, provider: str, events: int = 1) -> None:
        """Count broken events in a provider's stream."""
        self.counter("gateway_stream_parse_failures_total", provider).inc(events)


def _row(name: str, labels: tuple[str, ...]) -> Metric:
    row = METRICS[name]
    if row.of or len(labels) != len(row.labels) + len(row.hidden):
        message = f"{name} is not stored under {len(labels)} labels"
        raise ValueError(message)
    return row


class StateCells:
    """How the shared state fares."""

    __slots__ = ("_down", "_metrics")

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._down = metrics.gauge("gateway_state_down")

    def down(self, *, is_down: bool) -> None:
        """Show whether calls fail at once because a server does not answer."""
        self._down.set(float(is_down))

    def failed(self, reason: str) -> None:
        """Count a call that failed."""
        self._metrics.counter("gateway_state_failures_total", reason).inc()


class RequestCells:
    """What a request of one tenant, model and endpoint bumps."""

    __slots__ = (
        "_by_status",
        "_first_chunk",
        "_gone",
        "_input",
        "_labels",
        "_metrics",
        "_output",
        "_overhead",
        "_parts",
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
        self._input = self._of_type("input")
        self._output = self._of_type("output")
        self._parts: dict[str, Counter] = {}

    def finish(
        self,
        status: int,
        duration_s: float,
        overhead_s: float,
        first_chunk_s: float | None = None,
        usage: Usage | None = None,
    ) -> None:
        """Count a request once, after its last byte; `first_chunk_s` of a stream that began.

        Seconds, zero or more. `observe` is written out: its call would cost a fifth of the whole.
        """
        cell = self._by_status.get(status) or self._of_status(status)
        values, at = cell.values, cell.at
        values[at + 1 + bisect_left(cell.bounds, duration_s)] += 1.0
        values[at] += duration_s
        cell = self._overhead
        values, at = cell.values, cell.at
        values[at + 1 + bisect_left(cell.bounds, overhead_s)] += 1.0
        values[at] += overhead_s
        if first_chunk_s is not None:
            self._first_chunk.observe(first_chunk_s)
        if usage is not None:
            self.tokens(usage)

    def tokens(self, usage: Usage) -> None:
        """Add what the provider counted for the answer; what it did not say is not counted."""
        if usage.input:
            self._input.inc(usage.input)
        if usage.output:
            self._output.inc(usage.output)
        if usage.cached:
            self._part("cached").inc(usage.cached)
        if usage.cache_write:
            self._part("cache_write").inc(usage.cache_write)
        if usage.reasoning:
            self._part("reasoning").inc(usage.reasoning)

    def client_gone(self) -> None:
        """Count a client that left before its answer was complete."""
        self._gone.inc()

    def _part(self, kind: str) -> Counter:
        cell = self._parts.get(kind)
        if cell is None:
            cell = self._parts[kind] = self._of_type(kind)
        return cell

    def _of_type(self, kind: str) -> Counter:
        tenant, model, _ = self._labels
        return self._metrics.counter(TOKENS_TOTAL, tenant, model, kind)

    def _of_status(self, status: int) -> Histogram:
        label = str(status) if 100 <= status <= 599 else OTHER
        cell = self._metrics.histogram(DURATION, *self._labels, label)
        if label != OTHER:
            self._by_status[status] = cell
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

    def done(self, outcome: str, duration_s: float, usage: Usage | None = None) -> None:
        """Count a call once it ended, and the tokens that it told; `outcome` is `OK` or a machine code."""
        cell = self._by_outcome.get(outcome) or self._of_outcome(outcome)
        values, at = cell.values, cell.at
        values[at + 1 + bisect_left(cell.bounds, duration_s)] += 1.0
        values[at] += duration_s
        if usage is not None:
            self.tokens(usage)

    def broken(self, events: int) -> None:
        """Count broken events of a stream."""
        self._metrics.stream_parse_failure(self._labels[0], events)

    def tokens(self, usage: Usage) -> None:
        """Observe the tokens of one answered call."""
        count = usage.input
        if count is not None and count >= 0:
            cell = self._input
            values, at = cell.values, cell.at
            values[at + 1 + bisect_left(TOKENS, count)] += 1.0
            values[at] += count
        count = usage.output
        if count is not None and count >= 0:
            cell = self._output
            values, at = cell.values, cell.at
            values[at + 1 + bisect_left(TOKENS, count)] += 1.0
            values[at] += count

    def _of_outcome(self, outcome: str) -> Histogram:
        error = "" if outcome == OK else outcome
        cell = self._metrics.histogram(UPSTREAM, *self._labels, outcome, error)
        self._by_outcome[outcome] = cell
        return cell
