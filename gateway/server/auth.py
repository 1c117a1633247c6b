"""Who is calling: the credential's full SHA-256 is looked up in the snapshot. No network, no I/O (T-7, T-30)."""

from hashlib import sha256
from typing import TYPE_CHECKING

from gateway.core import clock
from gateway.core.errors import AuthError, StoreError

if TYPE_CHECKING:
    from gateway.chain.snapshot import Principal, Snapshot
    from gateway.server.exchange import Exchange

_MAX_KEY_BYTES = 512
_BARE = (b"x-api-key", b"api-key")


def authenticate(exchange: "Exchange", snapshot: "Snapshot") -> "Principal":
    """Return the caller of an exchange; raises AuthError `invalid_api_key`, StoreError while keys are missing.

    Read in this order: `Authorization: Bearer`, `x-api-key`, `api-key`. Two that disagree are refused, so that
    nobody behind a proxy is taken for somebody else.
    """
    key = _credential(exchange)
    principal = snapshot.principals.get(sha256(key).digest()) if key else None
    if principal is None and key and not snapshot.has_all_keys:
        # A refusal would be final for a client whose key is a good one (P-1).
        raise StoreError("state_unavailable", detail="the key store has not answered yet")
    if principal is None or (principal.expires is not None and principal.expires <= clock.wall()):
        raise AuthError("invalid_api_key")
    return principal


def _credential(exchange: "Exchange") -> bytes:
    found = b""
    bearer = exchange.header(b"authorization")
    if bearer is not None:
        scheme, _, key = bearer.partition(b" ")
        if scheme.lower() != b"bearer":
            raise AuthError("invalid_api_key", "Use `Authorization: Bearer <key>`.")
        found = key.strip()
    for name in _BARE:
        key = exchange.header(name)
        if key is None:
            continue
        if found and key != found:
            raise AuthError("invalid_api_key")
        found = key
    return found if len(found) <= _MAX_KEY_BYTES else b""
