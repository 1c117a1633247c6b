"""No gateway: the load talks to the mock upstream. The base line of all latencies."""

from __future__ import annotations

from pathlib import Path

from benchmarks.subjects.base import Launch


class Direct:
    name = "direct"
    label = "no gateway"

    def launch(self, folder: Path, port: int, upstream_port: int) -> Launch | None:
        return None

    def install(self) -> None:
        return
