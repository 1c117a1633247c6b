"""What the engine hands to the server: a whole answer, or a stream of whole events."""

from typing import NamedTuple, Protocol

from gateway.upstream.client import Headers


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

    async def next(self) -> bytes:
        """Return the next bytes."""
        ...

    async def close(self) -> None:
        """Give the connection back, or close it when the answer was not read to its end."""
        ...


Reply = Whole | Stream
