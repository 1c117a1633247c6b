"""Memory that one process writes and any process may read, also after the writer was killed.

A region is a file (or anonymous memory) of segments of `SEGMENT` bytes, native byte order:

    segment = magic (8 bytes) | used (u64: bytes in use, these 16 included) | records
    record  = size (u32, a multiple of 8) | kind (u16) | count (u16) | count doubles | name

The name is a JSON array of strings, padded with spaces. Records are only ever appended, and `used`
is written last, so a reader that stops at `used` sees whole records. Values are aligned doubles:
each is read whole. The writer holds an exclusive `flock` on the file as long as it lives; the
kernel drops it with the process.
"""

import fcntl
import mmap
import os
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

SEGMENT = 1 << 20
_MAGIC = b"GWCELLS1"
_START = 16
_RECORD = struct.Struct("=IHH")
_LOCK_TRIES = 40
_LOCK_PAUSE_S = 0.005

Values: TypeAlias = "memoryview[float]"
"""Doubles of a segment, to be written in place."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record: `at` is the index of its first double in the segment, `end` the byte after it."""

    kind: int
    at: int
    count: int
    name: bytes
    end: int


class Segment:
    """One mapped segment: append records, then write their values in place."""

    __slots__ = ("_used", "memory", "values")

    def __init__(self, memory: mmap.mmap) -> None:
        self.memory = memory
        self.values: Values = memoryview(memory).cast("d")
        self._used = memoryview(memory).cast("Q")
        if memory[:8] != _MAGIC:
            self._used[1] = _START
            memory[:8] = _MAGIC

    def append(self, kind: int, count: int, name: bytes) -> int | None:
        """Add a record of zeros; return the index of its first double, None when full."""
        start = self._used[1]
        size = _RECORD.size + 8 * count + len(name) + (-len(name) % 8)
        if start + size > SEGMENT:
            return None
        zeros = bytes(8 * count)  # the last writer may have died here, in the middle of a record
        body = start + _RECORD.size
        self.memory[body : start + size] = zeros + name.ljust(size - _RECORD.size - len(zeros))
        _RECORD.pack_into(self.memory, start, size, kind, count)
        self._used[1] = start + size
        return (start + _RECORD.size) // 8

    def snapshot(self) -> bytes:
        """Copy what is in use."""
        return self.memory[: self._used[1]]


def records(data: bytes) -> Iterator[Record]:
    """Walk the records of one copied segment; stop at the first that is not whole."""
    if len(data) < _START or data[:8] != _MAGIC:
        return
    (used,) = struct.unpack_from("=Q", data, 8)
    at, end = _START, min(used, len(data))
    while at + _RECORD.size <= end:
        size, kind, count = _RECORD.unpack_from(data, at)
        values = at + _RECORD.size
        if size % 8 or size < _RECORD.size + 8 * count or at + size > end:
            return
        yield Record(kind, values // 8, count, data[values + 8 * count : at + size], at + size)
        at += size


class Region:
    """The segments of one writer. A file that its writer left is taken over with its counts."""

    __slots__ = ("_fd", "path", "segments", "spilled")

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.segments: list[Segment] = []
        self.spilled = False
        self._fd = -1 if path is None else _open_locked(path)
        if self._fd >= 0:
            for offset in range(0, _whole_segments(self._fd), SEGMENT):
                self.segments.append(Segment(mmap.mmap(self._fd, SEGMENT, offset=offset)))

    def grow(self) -> Segment:
        """Add a segment; private memory when the disk is full, so that serving goes on (L-9)."""
        segment = Segment(self._map_next())
        self.segments.append(segment)
        return segment

    def _map_next(self) -> mmap.mmap:
        if self._fd >= 0 and not self.spilled:
            offset = SEGMENT * len(self.segments)
            try:
                # Without the blocks in hand a write into the mapping could end in SIGBUS.
                _allocate(self._fd, offset)
                return mmap.mmap(self._fd, SEGMENT, offset=offset)
            except OSError:
                self.spilled = True
        return mmap.mmap(-1, SEGMENT)

    def close(self, *, remove: bool) -> None:
        """Give up the lock, and the file when asked. Cells stay writable for late requests."""
        if self._fd < 0 or self.path is None:
            return
        # Mappings hold duplicates of the descriptor, which would keep the lock.
        fcntl.flock(self._fd, fcntl.LOCK_UN)
        os.close(self._fd)
        self._fd = -1
        if remove:
            self.path.unlink(missing_ok=True)


def _open_locked(path: Path) -> int:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    for _ in range(_LOCK_TRIES):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_LOCK_PAUSE_S)  # a reader holds it for microseconds while it looks
        else:
            return fd
    os.close(fd)
    message = f"{path} belongs to a process that is alive"
    raise BlockingIOError(message)


def _whole_segments(fd: int) -> int:
    """Return the bytes that are whole, valid segments; empty the file when it is something else."""
    size = os.fstat(fd).st_size
    whole = size - size % SEGMENT
    if not all(_is_sound(os.pread(fd, SEGMENT, offset)) for offset in range(0, whole, SEGMENT)):
        whole = 0
    os.ftruncate(fd, whole)
    return whole


def _is_sound(data: bytes) -> bool:
    """Tell whether a segment's records fill what it says is used."""
    end = _START
    for record in records(data):
        end = record.end
    return data[:8] == _MAGIC and struct.unpack_from("=Q", data, 8) == (end,)


def _allocate(fd: int, offset: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(fd, offset, SEGMENT)
    else:
        os.pwrite(fd, bytes(SEGMENT), offset)


def read_file(path: Path) -> tuple[list[bytes], bool]:
    """Copy every segment of a region's file, and tell whether its writer lives."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return [], False
    try:
        alive = _is_locked(fd)
        copies: list[bytes] = []
        for offset in range(0, os.fstat(fd).st_size, SEGMENT):
            head = os.pread(fd, _START, offset)
            if len(head) < _START:
                break
            (used,) = struct.unpack_from("=Q", head, 8)
            copies.append(os.pread(fd, min(used, SEGMENT), offset))
        return copies, alive
    finally:
        os.close(fd)


def _is_locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(fd, fcntl.LOCK_UN)
    return False
