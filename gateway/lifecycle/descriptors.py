"""How many files and sockets this process may hold, and how many of them clients may take (L-10)."""

import contextlib
import resource

_RESERVED = 48
"""For log, metrics, stores, the loop itself and the operators' connections."""
_PLENTY = 1 << 20
_LEAST = 8


def raise_descriptor_limit() -> int:
    """Raise the limit of open descriptors as far as this process may; return what it is then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _PLENTY if hard == resource.RLIM_INFINITY else min(hard, _PLENTY)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return _PLENTY if soft == resource.RLIM_INFINITY else soft


def most_connections(descriptors: int) -> int:
    """Return how many clients may be connected: each may need another descriptor to reach its provider."""
    return max(_LEAST, (descriptors - _RESERVED) // 2)
