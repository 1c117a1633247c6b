"""How a call to Redis fails, and who is told."""

from typing import Literal, Protocol

from gateway.core.errors import StoreError

Reason = Literal["down", "late", "lost", "full", "refused"]
"""`down`: not even tried; `late`: no reply in time; `lost`: the connection ended; `full`: no memory left there."""


class Refused(StoreError):
    """A call that came to nothing: `state_unavailable`. `detail` names hosts, never a password or a value."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__("state_unavailable", detail=detail)
        self.reason = reason


class Watcher(Protocol):
    """Who is told how Redis fares."""

    def down(self, *, is_down: bool) -> None:
        """Note whether calls fail at once because a server does not answer."""
        ...

    def failed(self, reason: str) -> None:
        """Note a call that failed, by its `Reason`."""
        ...


class Unwatched:
    """Tells nobody."""

    def down(self, *, is_down: bool) -> None:
        """Say nothing."""

    def failed(self, reason: str) -> None:
        """Say nothing."""
