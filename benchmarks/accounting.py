"""CPU time and memory of a process and its descendants, read from /proc."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec

_TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")
_PAGE_MB: Final = os.sysconf("SC_PAGE_SIZE") / 1e6
_PROC: Final = Path("/proc")


class Stat(msgspec.Struct, frozen=True):
    """What /proc/<pid>/stat says about one process."""

    pid: int
    parent: int
    group: int
    cpu_s: float
    start_ticks: int
    state: str


def read_stat(pid: int) -> Stat | None:
    """Read one process; None when it is gone."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    # The name may hold spaces and brackets, so the fields are counted from its end.
    fields = text[text.rindex(")") + 2 :].split()
    ticks = sum(int(fields[at]) for at in (11, 12, 13, 14))
    return Stat(pid, int(fields[1]), int(fields[2]), ticks * _TICK_S, int(fields[19]), fields[0])


def all_stats() -> list[Stat]:
    """Read every process."""
    pids = [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]
    return [stat for stat in map(read_stat, pids) if stat is not None]


def tree(root: int) -> list[int]:
    """Return the pids of a process and all its descendants."""
    children: dict[int, list[int]] = {}
    for stat in all_stats():
        children.setdefault(stat.parent, []).append(stat.pid)
    found: list[int] = []
    todo = [root]
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo.extend(children.get(pid, ()))
    return found


def cpu_s(pids: list[int]) -> float:
    """Return user and system seconds of some processes, their waited-for children included."""
    stats = map(read_stat, pids)
    return sum(stat.cpu_s for stat in stats if stat is not None)


def rss_mb(pids: list[int]) -> float:
    """Return the resident memory of some processes now, in MB."""
    total = 0.0
    for pid in pids:
        try:
            pages = (_PROC / str(pid) / "statm").read_text().split()[1]
        except (OSError, IndexError):
            continue
        total += int(pages) * _PAGE_MB
    return total


def peak_rss_mb(pids: list[int]) -> float:
    """Return the most memory that some processes have had resident, in MB."""
    total = 0.0
    for pid in pids:
        try:
            text = (_PROC / str(pid) / "status").read_text()
        except OSError:
            continue
        total += sum(
            int(line.split()[1]) * 1.024e-3
            for line in text.splitlines()
            if line.startswith("VmHWM:")
        )
    return total


def listen_drops() -> int:
    """Return how many connection attempts the kernel has dropped at full accept queues."""
    names: list[str] = []
    for line in (_PROC / "net" / "netstat").read_text().splitlines():
        if not line.startswith("TcpExt:"):
            continue
        if not names:
            names = line.split()
        else:
            return int(line.split()[names.index("ListenDrops")])
    return 0
