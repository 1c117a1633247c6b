"""Shows where the gateway spends its time in the plain row, by sampling it from outside."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.process import Process
from benchmarks.rows import STEPS, Step
from benchmarks.runner import bench, verify
from benchmarks.subjects.base import Subject

_SAMPLES_PER_S: Final = 500
_SECONDS: Final = 6.0
_TOP: Final = 10


class ProfileError(Exception):
    """The profiler is missing or failed."""


def _sampler() -> str:
    beside = Path(sys.executable).parent / "py-spy"
    found = str(beside) if beside.exists() else shutil.which("py-spy")
    if found is None:
        raise ProfileError("py-spy is not installed (pip install py-spy)")
    return found


def own_time(raw: str) -> list[tuple[str, float]]:
    """Read folded stacks; return functions with their share of own time, most first."""
    counts: Counter[str] = Counter()
    for line in raw.splitlines():
        stack, _, count = line.rpartition(" ")
        if stack and count.isdigit():
            counts[stack.rsplit(";", 1)[-1]] += int(count)
    total = counts.total() or 1
    return [(name, count / total) for name, count in counts.most_common()]


def profile(subject: Subject, row: str = "plain", top: int = _TOP) -> list[tuple[str, float]]:
    """Sample one subject while it serves one row."""
    step: Step = next(step for step in STEPS if step.key == row)
    spec = msgspec.structs.replace(step.spec, seconds=_SECONDS + 2.0)
    sampler = _sampler()
    with bench() as running, running.started(subject) as serving:
        verify(serving, subject)
        raw = running.folder / "profile.raw"
        command = [sampler, "record", "--function", "--subprocesses", "--format", "raw"]
        command += ["--rate", str(_SAMPLES_PER_S), "--duration", str(int(_SECONDS))]
        command += ["--nonblocking", "--pid", str(serving.pid), "--output", str(raw)]
        watcher = Process("py-spy", command, max(running.gateway_core, 1))
        try:
            serving.load(spec)
            watcher.popen.wait(_SECONDS + 10)
        except subprocess.TimeoutExpired as error:
            raise ProfileError(f"py-spy did not end:\n    {watcher.words()}") from error
        finally:
            watcher.end()
        if not raw.exists():
            raise ProfileError(f"py-spy wrote nothing:\n    {watcher.words()}")
        return own_time(raw.read_text(errors="replace"))[:top]
