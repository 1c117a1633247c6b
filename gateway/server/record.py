"""What is written down of a request after its last byte: metrics and one log line."""

from gateway.core import clock
from gateway.core.call import Run
from gateway.server.exchange import Exchange
from gateway.telemetry.logs import LogRecord, LogSink
from gateway.telemetry.metrics import Metrics, RequestCells

_GONE = 499
_SERVER_FAULTS = 500


class Recorder:
    """Counts and logs requests; the cells of a tenant's model are looked up once."""

    def __init__(self, metrics: Metrics, sink: LogSink) -> None:
        self._metrics = metrics
        self._sink = sink
        self._cells: dict[tuple[str, str, str], RequestCells] = {}

    def record(self, exchange: Exchange, run: Run) -> None:
        """Write a request down; called once, on every ending."""
        now = clock.monotonic()
        duration_s = now - run.started
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
        cells.finish(run.status, duration_s, overhead_s, first_chunk_s)
        usage = run.usage
        if usage is not None:
            cells.tokens(usage)
        if run.status == _GONE:
            cells.client_gone()
        self._sink.write(
            LogRecord(
                ts=clock.now(),
                level="info" if run.status < _SERVER_FAULTS else "warning",
                msg="request",
                request_id=run.request_id,
                tenant=run.tenant,
                key_id=run.key_id,
                endpoint=run.endpoint,
                model=run.model,
                provider=run.provider,
                target_model=run.target_model,
                status=run.status,
                code=run.code,
                stream=run.stream,
                duration_ms=round(duration_s * 1000, 3),
                overhead_ms=round(overhead_s * 1000, 3),
                ttfc_ms=None if first_chunk_s is None else round(first_chunk_s * 1000, 3),
                attempts=run.attempts,
                bytes_in=exchange.content_length or 0,
                bytes_out=exchange.bytes_out,
                input_tokens=usage.input if usage else None,
                output_tokens=usage.output if usage else None,
                client_gone=run.status == _GONE,
                warnings=tuple(run.warnings),
                detail=run.detail,
            )
        )
