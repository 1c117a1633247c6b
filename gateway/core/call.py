"""What travels with one request: slotted records, made once per request."""

from gateway.core.usage import Usage


class Run:
    """One request of a caller, from its head to its last byte.

    Times are seconds of the monotonic clock. `model` is the configured name that metrics and logs may show;
    `asked` is what the caller wrote. `code` is the machine code of the failure; while the request runs it is
    only set by who cuts it. `ended_at`: when the answer was complete.
    """

    __slots__ = (
        "asked",
        "attempts",
        "code",
        "deadline",
        "detail",
        "ended_at",
        "endpoint",
        "first_chunk_at",
        "key_id",
        "model",
        "provider",
        "request_id",
        "session",
        "started",
        "status",
        "stream",
        "target",
        "target_model",
        "tenant",
        "upstream_s",
        "usage",
        "warnings",
    )

    def __init__(self, request_id: str, endpoint: str, started: float, deadline: float) -> None:
        self.request_id = request_id
        self.endpoint = endpoint
        self.started = started
        self.deadline = deadline
        self.tenant = ""
        self.key_id = ""
        self.model = "other"
        self.asked = ""
        self.session = ""
        self.stream = False
        self.provider = ""
        self.target = ""
        self.target_model = ""
        self.attempts = 0
        self.upstream_s = 0.0
        self.first_chunk_at: float | None = None
        self.ended_at: float | None = None
        self.usage: Usage | None = None
        self.status = 0
        self.code = ""
        self.detail = ""
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        """Note something that was dropped or changed; the caller reads it in `x-gateway-warnings`."""
        self.warnings.append(text)
