"""JSON lines framing on bytes: one value a line, any cut. Knows nothing of what the values mean."""

from gateway.dialects.room import Room, Share


class LineBuffer:
    """Holds the line that has not ended yet; at most `limit` bytes of it, where there is room."""

    __slots__ = ("_held", "_share")

    def __init__(self, limit: int, room: Room | None = None) -> None:
        self._held = bytearray()
        self._share = Share(limit, room)

    def take(self, data: bytes) -> list[bytes]:
        """Add bytes and return the lines that are complete, blank ones left out.

        Raises UpstreamError when the open line is too large; see `room.Share`.
        """
        held = self._held
        end = data.rfind(b"\n") + 1
        if not end:
            held += data
            block = b""
        else:
            held += data[:end]
            block = bytes(held)
            held[:] = data[end:]
        self._share.weigh(held)
        return [line for part in block.split(b"\n") if (line := part.strip())]

    def rest(self) -> bytes:
        """Return the open line and forget it."""
        rest = bytes(self._held).strip()
        self._held.clear()
        self._share.release()
        return rest
