"""The one place that turns an exception into an answer, in the caller's dialect."""

import math

from gateway.core.call import Run
from gateway.core.errors import GatewayError
from gateway.dialects.base import Dialect
from gateway.engine.refusal import Refusal
from gateway.server.exchange import Exchange
from gateway.server.routes import MESSAGES

_JSON = (b"content-type", b"application/json")
_OWN = frozenset({"overloaded", "draining", "state_unavailable", "upstream_unavailable"})
"""Refusals of this gateway's own, each of which says when to come back (K09)."""


def render_error(exchange: Exchange, dialect: Dialect, error: GatewayError, run: Run) -> None:
    """Answer with an error; inside a stream, end it with the dialect's error frames and no terminator.

    Bytes of another kind that have begun are cut: there an error could only pass for content.
    """
    if exchange.gone or exchange.ended:
        return
    if exchange.started and not run.stream:
        exchange.abort()
        return
    if exchange.started:
        exchange.end(_frames(dialect, error, run.request_id))
        return
    body = _body(dialect, error, run.request_id)
    exchange.start(error.http, error_headers(dialect, error, run), length=len(body))
    exchange.end(b"" if exchange.method == "HEAD" else body)


def _body(dialect: Dialect, error: GatewayError, request_id: str) -> bytes:
    if isinstance(error, Refusal) and not error.is_credential:
        return dialect.render_provider_error(error.said, error, request_id)
    return dialect.render_error(error, request_id)


def _frames(dialect: Dialect, error: GatewayError, request_id: str) -> bytes:
    if isinstance(error, Refusal) and not error.is_credential:
        return dialect.render_provider_stream_error(error.said, error, request_id)
    return dialect.render_stream_error(error, request_id)


def error_headers(dialect: Dialect, error: GatewayError, run: Run) -> list[tuple[bytes, bytes]]:
    """Build the headers of an error answer: retry advice included."""
    headers = [_JSON, (b"x-request-id", run.request_id.encode())]
    if dialect.name == MESSAGES:  # its clients read the id from a header of another name
        headers.append((b"request-id", run.request_id.encode()))
    if error.should_retry is not None:
        headers.append((b"x-should-retry", b"true" if error.should_retry else b"false"))
    wait_s = error.retry_after_s
    if wait_s is None and error.code in _OWN and not isinstance(error, Refusal):
        wait_s = 1.0
    if wait_s is not None:
        headers.append((b"retry-after", b"%d" % math.ceil(wait_s)))
        headers.append((b"retry-after-ms", b"%d" % round(wait_s * 1000)))
    if error.code == "method_not_allowed":
        headers.append((b"allow", error.detail.encode()))
    if error.code == "draining":
        headers.append((b"connection", b"close"))
    if run.attempts:
        headers.append((b"x-gateway-attempts", b"%d" % run.attempts))
    headers.extend(run.headers)
    return headers
