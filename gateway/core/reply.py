"""What comes back up: a whole answer, or a stream of whole events."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol

from gateway.core.usage import Usage

Headers = Sequence[tuple[bytes, bytes]]
"""Names in lower case."""
BeforeEnd = Callable[[], Awaitable[None]]
"""Called once, before the last bytes of a stream go out; what it raises takes their place."""


class Whole(NamedTuple):
    """An answer that is complete in memory."""

    status: int
    headers: Headers
    body: bytes


class Stream(Protocol):
    """An answer that is still coming.

    `next` returns bytes that may go out at once, never a part of an event; once `finished` is True nothing more
    comes. It raises UpstreamError when the answer cannot be completed. `close` must be called on every ending.
    """

    status: int
    headers: Headers
    finished: bool
    length: int | None

    @property
    def usage(self) -> Usage | None:
        """Return the tokens counted so far."""
        ...

    def before_end(self, hook: BeforeEnd) -> None:
        """Have a hook called when the answer is complete and its last bytes have not gone out.

        Hooks of inner layers come first.
        """
        ...

    async def next(self) -> bytes:
        """Return the next bytes."""
        ...

    async def close(self) -> None:
        """Give the connection back, or close it when the answer was not read to its end."""
        ...


Reply = Whole | Stream
