"""What is written down of a request after its last byte: metrics and one log line."""

from gateway.core import clock
from gateway.core.call import Run
from gateway.server.exchange import Exchange
from gateway.telemetry.logs import LogRecord, LogSink
from gateway.telemetry.metrics import Metrics, RequestCells
from gateway.telemetry.traces import Traces

_GONE = 499
_SERVER_FAULTS = 500


class Recorder:
    """Counts and logs requests; the cells of a tenant's model are looked up once."""

    def __init__(self, metrics: Metrics, sink: LogSink, traces: Traces) -> None:
        self._metrics = metrics
        self._in_flight = metrics.in_flight
        self._sink = sink
        self._traces = traces
        self._cells: dict[tuple[str, str, str], RequestCells] = {}

    def begin(self, run: Run) -> None:
        """Count a request as being handled, until it is recorded."""
        self._in_flight.inc()
        if self._traces.wants(run.started):
            run.trace = []

    def shed(self, reason: str) -> None:
        """Count a request that is refused before any work."""
        self._metrics.shed(reason)

    def record(self, exchange: Exchange, run: Run) -> None:
        """Write a request down; called once, on every ending."""
        self._in_flight.dec()
        if run.trace is not None:
            self._traces.take(run, run.trace)
        ended_at = clock.monotonic() if run.ended_at is None else run.ended_at
        duration_s = ended_at - run.started
        overhead_s = (
            max(0.0, duration_s - run.upstream_s)
            if run.first_chunk_at is None
            else (max(0.0, run.first_chunk_at - run.started - run.upstream_s))
        )
        first_chunk_s = None if run.first_chunk_at is None else run.first_chunk_at - run.started
        key = (run.tenant, run.model, run.endpoint)
        cells = self._cells.get(key)
        if cells is None:
            cells = self._cells[key] = self._metrics.request_cells(*key)
        usage = run.usage
        cells.finish(run.status, duration_s, overhead_s, first_chunk_s, usage)
        if run.status == _GONE:
            cells.client_gone()
        self._sink.write(
            # By position: with names the same call costs ten times as much.
            LogRecord(
                clock.now(),
                "info" if run.status < _SERVER_FAULTS else "warning",
                "request",
                run.request_id,
                run.tenant,
                run.key_id,
                run.endpoint,
                run.model,
                run.provider,
                run.target,
                run.status,
                run.code,
                run.stream,
                # Three digits; `round` costs three times as much.
                int(duration_s * 1e6 + 0.5) / 1000,
                int(overhead_s * 1e6 + 0.5) / 1000,
                None if first_chunk_s is None else int(first_chunk_s * 1e6 + 0.5) / 1000,
                run.attempts,
                exchange.content_length or 0,
                exchange.bytes_out,
                usage.input if usage is not None else None,
                usage.output if usage is not None else None,
                run.status == _GONE,
                run.warnings or (),
                run.detail,
            )
        )
