"""The headers of good answers: a closed list, made anew for each (K39)."""

from gateway.core import clock
from gateway.core.call import Run
from gateway.upstream.client import Headers

JSON: Headers = ((b"content-type", b"application/json"),)
STREAM: Headers = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)
_CACHE_OFF = (b"x-gateway-cache", b"off")
_MAX_WARNINGS = 2048


def reply_headers(run: Run, own: Headers) -> list[tuple[bytes, bytes]]:
    """Build the headers of an answer around those of its content."""
    headers = [*own, (b"x-request-id", run.request_id.encode()), _CACHE_OFF]
    if run.attempts:
        overhead_ms = (clock.monotonic() - run.started - run.upstream_s) * 1000.0
        label = f"{run.provider}/{run.target_model}".encode("ascii", "replace")
        headers.append((b"x-gateway-model", label))
        headers.append((b"x-gateway-attempts", b"%d" % run.attempts))
        headers.append((b"x-gateway-overhead-ms", b"%.3f" % overhead_ms))
    if run.warnings:
        text = "; ".join(run.warnings).encode("ascii", "replace")[:_MAX_WARNINGS]
        headers.append((b"x-gateway-warnings", text))
    return headers
