"""Liveness and readiness of the data listener; neither calls anything outside."""

from gateway.server.exchange import Exchange

_ALIVE = frozenset({b"/livez", b"/healthz", b"/health/liveliness", b"/api/hello"})
"""`/api/hello` is what coding assistants ask before their first call."""
_READY = frozenset({b"/readyz", b"/health/readiness"})
PATHS = _ALIVE | _READY
_METHODS = frozenset({"GET", "HEAD"})


def answer(exchange: Exchange, *, ready: bool) -> None:
    """Answer a health check: 200, or 503 while this process is leaving."""
    if exchange.method not in _METHODS:
        status, body = 405, b'{"error":"method not allowed"}'
    elif ready or exchange.raw_path in _ALIVE:
        status, body = 200, b'{"status":"ok"}'
    else:
        status, body = 503, b'{"status":"leaving"}'
    headers = (
        (b"content-type", b"application/json"),
        (b"x-request-id", exchange.request_id.encode()),
        (b"cache-control", b"no-store"),
    )
    exchange.start(status, headers, length=len(body))
    exchange.end(b"" if exchange.method == "HEAD" else body)
