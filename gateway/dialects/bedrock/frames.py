"""Frames of AWS's event streams on bytes: any cut, checksums checked, bounded. Knows nothing of what they mean."""

import struct
import zlib
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from gateway.core.errors import UpstreamError
from gateway.dialects.room import Room, Share

CONTENT_TYPE = b"application/vnd.amazon.eventstream"
_PRELUDE = struct.Struct(">III")
_TAIL = struct.Struct(">I")
_SHORT = struct.Struct(">H")
_SMALLEST = _PRELUDE.size + _TAIL.size
_MAX_HEADERS = 131_072
_TEXT = 7
_BYTES = 6
_USUAL_HEAD = 256
_FIXED = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Sizes of the values of the header types that have one: booleans, integers, a time, a UUID."""


class Frame(NamedTuple):
    """One message. `headers` holds those whose value is a text, by their full name (`:event-type`)."""

    headers: Mapping[str, str]
    payload: bytes

    def header(self, name: str) -> str:
        """Return a header, "" when it is absent."""
        return self.headers.get(name, "")


class FrameBuffer:
    """Cuts a body into frames, and holds the open one: at most `limit` bytes of it, where there is room."""

    __slots__ = ("_fault", "_held", "_limit", "_share", "_size")

    def __init__(self, limit: int, room: Room | None = None) -> None:
        self._held = bytearray()
        self._limit = limit + _SMALLEST
        self._share = Share(self._limit + _MAX_HEADERS, room)
        self._size = 0
        self._fault: UpstreamError | None = None

    @property
    def is_open(self) -> bool:
        """Whether a frame has begun and not ended."""
        return bool(self._held)

    def take(self, data: bytes) -> list[Frame]:
        """Add bytes and return the frames that are complete.

        Raises UpstreamError `upstream_invalid_response` for a broken frame or one that is too large. The frames
        before it are returned first, so that the cut of the bytes makes no difference: what is broken is told by
        the next call, or by `check`.
        """
        self.check()
        held = self._held
        held += data
        frames: list[Frame] = []
        start = 0
        try:
            while True:
                size = self._size or self._read_size(held, start)
                if not size or len(held) - start < size:
                    self._size = size
                    break
                frames.append(_read(bytes(held[start : start + size])))
                start += size
                self._size = 0
        except UpstreamError as fault:
            self._fault = fault
            start = len(held)
            if not frames:
                raise
        del held[:start]
        try:
            self._share.weigh(held)
        except UpstreamError as fault:
            self._fault = fault
            if not frames:
                raise
        return frames

    def check(self) -> None:
        """Raise the fault that was found behind the last frames, if any."""
        if self._fault is not None:
            raise self._fault

    def _read_size(self, held: bytearray, start: int) -> int:
        """Return the size of the frame that begins at `start`, or 0 while its prelude is not complete."""
        if len(held) - start < _PRELUDE.size:
            return 0
        size, headers, checksum = _PRELUDE.unpack_from(held, start)
        if zlib.crc32(held[start : start + 8]) != checksum:
            raise _broken("the prelude of a frame does not match its checksum")
        if size < _SMALLEST or headers > size - _SMALLEST or headers > _MAX_HEADERS:
            raise _broken("the lengths of a frame do not agree")
        if size - headers > self._limit:
            raise _broken("an event is larger than allowed")
        return size


def _read(frame: bytes) -> Frame:
    if zlib.crc32(frame[:-4]) != _TAIL.unpack_from(frame, len(frame) - 4)[0]:
        raise _broken("a frame does not match its checksum")
    end = _PRELUDE.size + _PRELUDE.unpack_from(frame)[1]
    try:
        head = frame[_PRELUDE.size : end]
        # The heads of one kind of event are the same bytes each time.
        headers = _usual_headers(head) if len(head) <= _USUAL_HEAD else _read_headers(head)
    except (struct.error, IndexError, KeyError, UnicodeDecodeError):
        raise _broken("the headers of a frame cannot be read") from None
    return Frame(headers, frame[end:-4])


def _read_headers(data: bytes) -> Mapping[str, str]:
    headers: dict[str, str] = {}
    at = 0
    while at < len(data):
        name_end = at + 1 + data[at]
        name = data[at + 1 : name_end].decode()
        kind = data[name_end]
        at = name_end + 1
        if kind not in {_TEXT, _BYTES}:
            at += _FIXED[kind]
            continue
        start = at + _SHORT.size
        at = start + _SHORT.unpack_from(data, at)[0]
        if at > len(data):
            raise IndexError
        if kind == _TEXT:
            headers[name] = data[start:at].decode()
    if at != len(data):
        raise IndexError
    return headers


_usual_headers = lru_cache(64)(_read_headers)


def _broken(detail: str) -> UpstreamError:
    return UpstreamError("upstream_invalid_response", phase="body", detail=detail)
