"""Event stream framing on bytes: LF, CRLF, CR and mixed line ends, any cut. Knows nothing of what events mean."""

import re

from gateway.dialects.room import Room, Share

BOM = b"\xef\xbb\xbf"
_BLANK = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_LONGEST_BLANK = 4
_NAME = re.compile(rb"[A-Za-z_-]+").fullmatch
_FIELDS = (b"data", b"event", b"id", b"retry")
"""What may stand before the colon of a line, beside names that nobody knows; nothing does in a comment."""


def frame(data: bytes, event: bytes = b"") -> bytes:
    """Return one event with one data line."""
    head = b"event: " + event + b"\n" if event else b""
    return b"%sdata: %s\n\n" % (head, data)


def split_events(block: bytes) -> list[bytes]:
    """Cut whole events apart, each with its blank line; further blank lines go before the next event."""
    if b"\r" not in block:
        parts = block.split(b"\n\n")
        rest = parts.pop()
        events = [part + b"\n\n" for part in parts]
    else:
        events: list[bytes] = []
        start = 0
        for blank in _BLANK.finditer(block):
            events.append(block[start : blank.end()])
            start = blank.end()
        rest = block[start:]
    if rest:
        events.append(rest)
    return events


def parse_event(event: bytes) -> tuple[bytes, bytes | None]:
    """Return an event's name and data; data is None when it has no data line (a comment, a bare `id`)."""
    name = b""
    data: list[bytes] = []
    for line in event.splitlines():
        field, _, value = line.partition(b":")
        if field == b"data":
            data.append(value[1:] if value[:1] == b" " else value)
        elif field == b"event":
            name = value.strip()
    return name, b"\n".join(data) if data else None


def holds_field(event: bytes) -> bool:
    """Tell whether an event is one: it holds a comment or a field, be it cut off, or nothing at all."""
    lines = [line for line in event.splitlines() if line]
    return not lines or any(_is_field(line) for line in lines)


def _is_field(line: bytes) -> bool:
    name, colon, _ = line.partition(b":")
    if colon:
        return not name or _NAME(name) is not None
    return any(field.startswith(line) for field in _FIELDS)


class EventBuffer:
    """Holds the event that has not ended yet; at most `limit` bytes of it, where there is room."""

    __slots__ = ("_share", "held")

    def __init__(self, limit: int, room: Room | None = None) -> None:
        self.held = bytearray()
        self._share = Share(limit, room)

    def take(self, data: bytes) -> bytes:
        """Add bytes and return everything up to the last blank line.

        A carriage return at the very end waits for its line feed, so that no cut makes a difference.
        Raises UpstreamError when the open event is too large; see `room.Share`.
        """
        held = self.held
        known = max(0, len(held) - _LONGEST_BLANK + 1)
        held += data
        end = _last_blank(held, known)
        block = bytes(held[:end])
        del held[:end]
        self._share.weigh(held)
        return block

    def rest(self) -> bytes:
        """Return the open event and forget it."""
        rest = bytes(self.held)
        self.held.clear()
        self._share.release()
        return rest


def _last_blank(data: bytearray, start: int) -> int:
    """Return the offset behind the last blank line at or after `start`, or 0."""
    if data.find(b"\r", start) < 0:
        at = data.rfind(b"\n\n", start)
        return at + 2 if at >= 0 else 0
    stop = len(data) - 1 if data.endswith(b"\r") else len(data)
    end = 0
    for blank in _BLANK.finditer(data, start, stop):
        end = blank.end()
    return end
