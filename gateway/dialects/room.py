"""Room for large events: what the open events of one provider's streams may hold together, pictures above all."""

from typing import Final

from gateway.core.errors import UpstreamError

SMALL: Final = 1 << 20
"""Bytes of an event that each stream may hold without asking."""
_ALL: Final = 128 << 20


class Room:
    """What all streams of one provider may hold of events that are not small; `left` in bytes."""

    __slots__ = ("left",)

    def __init__(self, size: int = _ALL) -> None:
        self.left = size


class Share:
    """What one stream holds of it; given back when the event ends, or the stream is let go."""

    __slots__ = ("_room", "_taken", "limit", "small")

    def __init__(self, limit: int, room: Room | None) -> None:
        self.limit = limit
        self.small = min(limit, SMALL)
        self._room = room
        self._taken = 0

    def weigh(self, held: bytearray) -> None:
        """Take note of what is held by now, and forget it where that is too much; see `hold`."""
        if len(held) > self.small or self._taken:
            try:
                self.hold(len(held))
            except UpstreamError:
                held.clear()
                raise

    def hold(self, size: int) -> None:
        """Hold an event of `size` bytes so far.

        Raises UpstreamError `upstream_invalid_response` above the limit of one event, `overloaded` where the others
        have left no room.
        """
        if size > self.limit:
            self.release()
            detail = "an event is larger than allowed"
            raise UpstreamError("upstream_invalid_response", phase="body", detail=detail)
        if self._room is None:
            return
        wanted = size - self._taken if size > self.small else -self._taken
        if wanted > self._room.left:
            self.release()
            detail = "the large events of this provider take all room"
            raise UpstreamError("overloaded", phase="body", detail=detail)
        self._room.left -= wanted
        self._taken += wanted

    def release(self) -> None:
        """Give everything back."""
        if self._room is not None:
            self._room.left += self._taken
            self._taken = 0

    def __del__(self) -> None:
        """Give back what a stream held that ended anywhere."""
        self.release()
