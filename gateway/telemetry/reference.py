"""Writes docs/metrics.md from the catalogue: `python -m gateway.telemetry.reference > docs/metrics.md`."""

import sys

from gateway.telemetry.catalogue import METRICS, Metric
from gateway.telemetry.cells import Kind

_TYPES = {Kind.COUNTER: "counter", Kind.HISTOGRAM: "histogram"}
_WORKERS = {
    Kind.COUNTER: "sum, ended workers included",
    Kind.HISTOGRAM: "sum, ended workers included",
    Kind.GAUGE_SUM: "sum of the living",
    Kind.GAUGE_MAX: "highest of the living",
    Kind.GAUGE_MIN: "lowest of the living",
}
_HEAD = """# Metrics

`GET /metrics` on the admin listener answers in the Prometheus text format, or in OpenMetrics when the
`Accept` header asks for it. One scrape covers all workers of a process tree; an answer is reused for
50 ms, a long one for ten times as long as it took to write.

The values of labels come from the configuration and from closed sets. What a client sends never
becomes a label: an unknown model or tenant counts under `other`. A metric has at most 10,000 series in
a worker; what would be more counts under `other` too. A label without a value is left out.

Durations are seconds, the values of `status` HTTP statuses (499: the client left), those of `outcome`
`ok` or a machine code, those of `type` `input`, `output`, and the parts of these that a provider names:
`cached`, `cache_write`, `reasoning`. Tokens are counted as the provider reported them.

`gen_ai_*` are the metrics of the OpenTelemetry conventions for generative AI; dots are underscores.

This page is generated: `python -m gateway.telemetry.reference > docs/metrics.md`.

| Name | Type | Labels | Several workers | Meaning |
|---|---|---|---|---|
"""
_TAIL = """
Beside these stand the usual figures of the process: `process_cpu_seconds_total`, `process_open_fds`,
`process_max_fds`, `process_resident_memory_bytes`, `process_virtual_memory_bytes` and
`process_start_time_seconds`, with several workers once for each, under the label `worker`.

## Buckets

| Name | Upper bounds |
|---|---|
"""


def markdown() -> str:
    """Return the whole page."""
    rows = METRICS.values()
    buckets = (_buckets(row) for row in rows if row.buckets)
    return _HEAD + "".join(map(_row, rows)) + _TAIL + "".join(buckets)


def _row(row: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in row.labels)
    kind, workers = _TYPES.get(row.kind, "gauge"), _WORKERS[row.kind]
    return f"| `{row.name}` | {kind} | {labels} | {workers} | {row.help} |\n"


def _buckets(row: Metric) -> str:
    return f"| `{row.name}` | {', '.join(str(bound) for bound in row.buckets)} |\n"


if __name__ == "__main__":
    sys.stdout.write(markdown())
