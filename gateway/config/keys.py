"""Keys of this gateway: made here, stored only as a hash."""

import hashlib
import secrets

PREFIX = "gw-"
_RANDOM_BYTES = 32


def new_key() -> str:
    """Return a fresh key: `gw-` and 43 random URL-safe characters."""
    return PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)


def hash_key(key: str) -> str:
    """Return `sha256:` and the hex digest; enough, since keys are random and not chosen."""
    return "sha256:" + hashlib.sha256(key.encode()).hexdigest()


def last_four(key: str) -> str:
    """Return what a list may show of a key."""
    return key[-4:]
