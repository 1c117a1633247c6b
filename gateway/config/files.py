"""What a configuration is read from: files of the disk, kept as they were read, or a copy of those (K41).

A copy lets every worker load the very bytes that were checked, whatever has become of the files since.
"""

import errno
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

Stamp = tuple[int, int, int, int, int] | None
"""What changes with a file: device, inode, size and both times in nanoseconds; None: it is not there."""


class Files:
    """Reads from the disk and keeps what it read.

    `listed` are the YAML files, None before they are known; `stamps` those of all files that were asked for, from
    the moment before they were read.
    """

    def __init__(self) -> None:
        self.listed: tuple[Path, ...] | None = None
        self.held: dict[Path, bytes] = {}
        self.stamps: dict[Path, Stamp] = {}

    def read(self, path: Path, limit: int) -> bytes:
        """Return at most `limit` bytes of a file; raises OSError, and ValueError for what is no path."""
        self.note(path)
        with path.open("rb") as file:
            data = file.read(limit)
        self.held[path] = data
        return data

    def is_regular(self, path: Path) -> bool:
        """Tell whether a path leads to a regular file; raises as `read`."""
        self.note(path)
        return stat.S_ISREG(path.stat().st_mode)

    def note(self, path: Path) -> None:
        """Keep in mind that the configuration depends on a file."""
        if path not in self.stamps:
            self.stamps[path] = stamp(path)


class Copy(Files):
    """Files as another process has read them; the disk is not looked at."""

    def __init__(self, listed: Iterable[Path] | None, held: Mapping[Path, bytes]) -> None:
        super().__init__()
        self.listed = None if listed is None else tuple(listed)
        self.held.update(held)

    def read(self, path: Path, limit: int) -> bytes:
        """Return at most `limit` bytes of a file; raises OSError for one that the copy lacks."""
        data = self.held.get(path)
        if data is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return data[:limit]

    def is_regular(self, path: Path) -> bool:
        """Tell whether the copy holds a file; what was no regular one was never read."""
        return path in self.held

    def note(self, path: Path) -> None:
        """Do nothing: a copy does not change."""


def stamp(path: Path) -> Stamp:
    """Return what changes whenever a file does; links are followed, as mounted volumes swap theirs."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
