"""The headers of good answers: a closed list, made anew for each (K39)."""

from collections.abc import Sequence
from functools import lru_cache

from gateway.core import clock
from gateway.core.call import Run
from gateway.core.money import dollars
from gateway.server.exchange import Block
from gateway.server.head import checked_lines
from gateway.upstream.client import Headers

JSON: Headers = ((b"content-type", b"application/json"),)
STREAM: Headers = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)
_MAX_WARNINGS = 2048
_NAMED_TWICE = frozenset({"/v1/messages", "/v1/messages/count_tokens"})
"""Where clients read the request's id from a header of another name."""
_MAX_KNOWN = 4096
_known: dict[tuple[object, ...], bytes] = {}


def reply_headers(run: Run, own: Headers) -> Block:
    """Build the headers of an answer around those of its content; request ids are harmless by then."""
    block = _fixed(run, own)
    if run.headers:
        block += checked_lines(run.headers)
    if run.charges and not run.stream:
        costs = [charge.cost_micro for charge in run.charges if charge.priced]
        if costs:
            block += _cost_line(costs[0] if len(costs) == 1 else sum(costs))
    if run.path in _NAMED_TWICE:
        block += b"request-id: %b\r\n" % run.request_id.encode()
    if run.warnings:
        block += checked_lines(((b"x-gateway-warnings", told(run.warnings)),))
    request_id = run.request_id.encode()
    if not run.attempts:
        return Block(b"%bx-request-id: %b\r\n" % (block, request_id))
    overhead_ms = (clock.monotonic() - run.started - run.upstream_s) * 1000.0
    more = (block, request_id, run.attempts, overhead_ms)
    return Block(
        b"%bx-request-id: %b\r\nx-gateway-attempts: %d\r\nx-gateway-overhead-ms: %.3f\r\n" % more
    )


def told(warnings: Sequence[str]) -> bytes:
    """Return warnings as one line of visible characters; those that do not fit are counted at its end."""
    said = b""
    for number, warning in enumerate(warnings):
        text = warning.encode("unicode_escape")
        more = b"; and %d more" % (len(warnings) - number)
        if len(said) + len(text) + len(more) > _MAX_WARNINGS:
            return said + more if said else text[: _MAX_WARNINGS - len(more)] + more
        said = said + b"; " + text if said else text
    return said


@lru_cache(4096)
def _cost_line(cost_micro: int) -> bytes:
    return b"x-gateway-cost-usd: %b\r\n" % dollars(cost_micro).encode()


def _fixed(run: Run, own: Headers) -> bytes:
    """Return the lines that are the same for every answer of a target; kept, in bounded number."""
    # One header is known by its pair: to hash a tuple of them costs more than all else that is done here.
    content = own[0] if len(own) == 1 else tuple(own)
    key = (run.provider, run.target_model, run.cache, content)
    block = _known.get(key)
    if block is None:
        names = (run.provider, run.target_model) if run.target_model else (run.provider,)
        label = "/".join(names).encode("ascii", "replace")
        named = ((b"x-gateway-model", label),) if run.provider else ()
        cache = (b"x-gateway-cache", run.cache.encode())
        block = checked_lines((*own, cache, *named))
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        _known[key] = block
    return block
