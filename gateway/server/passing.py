"""Headers of a caller that go on to a provider of the same format as they came: an open list."""

from gateway.server.exchange import Exchange

_VERSION = b"anthropic-version"
_USUAL = (_VERSION, b"2023-06-01")
_PREFIXES = (b"anthropic-", b"x-claude-code-")
_NEVER = frozenset({b"anthropic-dangerous-direct-browser-access"})
_MOST = 32
_MAX_BYTES = 4096


def passed_headers(exchange: Exchange) -> tuple[tuple[bytes, bytes], ...]:
    """Return what a client of Messages tells its provider: version, betas, and what Claude Code says of itself."""
    found = [
        (name, value)
        for name, value in exchange.headers
        if name.startswith(_PREFIXES) and name not in _NEVER and len(value) <= _MAX_BYTES
    ][:_MOST]
    if not any(name == _VERSION for name, _ in found):
        found.append(_USUAL)
    return tuple(found)
