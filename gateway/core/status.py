"""The status names (G-STAT): one classification for every failure."""

from enum import StrEnum


class Status(StrEnum):
    """A status name; `http_of` and the dialects say what it looks like to a client. No error is OK (G-STAT-6)."""

    OK = "OK"
    CANCELLED = "CANCELLED"
    UNKNOWN = "UNKNOWN"
    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    NOT_FOUND = "NOT_FOUND"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    FAILED_PRECONDITION = "FAILED_PRECONDITION"
    ABORTED = "ABORTED"
    OUT_OF_RANGE = "OUT_OF_RANGE"
    UNIMPLEMENTED = "UNIMPLEMENTED"
    INTERNAL = "INTERNAL"
    UNAVAILABLE = "UNAVAILABLE"
    DATA_LOSS = "DATA_LOSS"


TRANSIENT = (
    Status.UNAVAILABLE,
    Status.DEADLINE_EXCEEDED,
    Status.RESOURCE_EXHAUSTED,
    Status.ABORTED,
    Status.INTERNAL,
)
"""What may be gone at the next try."""

_FROM_UPSTREAM = {
    400: Status.INVALID_ARGUMENT,
    401: Status.UNAUTHENTICATED,
    402: Status.PERMISSION_DENIED,
    403: Status.PERMISSION_DENIED,
    404: Status.NOT_FOUND,
    408: Status.DEADLINE_EXCEEDED,
    409: Status.ABORTED,
    413: Status.INVALID_ARGUMENT,
    415: Status.INVALID_ARGUMENT,
    422: Status.INVALID_ARGUMENT,
    429: Status.RESOURCE_EXHAUSTED,
    499: Status.CANCELLED,
    501: Status.UNIMPLEMENTED,
    502: Status.UNAVAILABLE,
    503: Status.UNAVAILABLE,
    504: Status.DEADLINE_EXCEEDED,
    529: Status.UNAVAILABLE,
}
_SEVERAL_HUNDREDS = 500


def classify_http(http: int) -> Status:
    """Classify a provider's HTTP error status (the table in docs/contracts.md, G-STAT-1, 2)."""
    known = _FROM_UPSTREAM.get(http)
    if known is not None:
        return known
    return Status.INTERNAL if http >= _SEVERAL_HUNDREDS else Status.UNKNOWN
