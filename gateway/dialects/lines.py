"""JSON lines framing on bytes: one value a line, any cut. Knows nothing of what the values mean."""

from gateway.core.errors import UpstreamError


class LineBuffer:
    """Holds the line that has not ended yet; at most `limit` bytes of it."""

    __slots__ = ("_held", "_limit")

    def __init__(self, limit: int) -> None:
        self._held = bytearray()
        self._limit = limit

    def take(self, data: bytes) -> list[bytes]:
        """Add bytes and return the lines that are complete, blank ones left out.

        Raises UpstreamError `upstream_invalid_response` when the open line is too large.
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
        if len(held) > self._limit:
            held.clear()
            raise UpstreamError(
                "upstream_invalid_response", phase="body", detail="a line is larger than allowed"
            )
        return [line for part in block.split(b"\n") if (line := part.strip())]

    def rest(self) -> bytes:
        """Return the open line and forget it."""
        rest = bytes(self._held).strip()
        self._held.clear()
        return rest
