"""Visits every subject in turn, round after round, and collects the figures."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from benchmarks import accounting, process
from benchmarks.measure import Result, Scenario, Spec
from benchmarks.process import Process, StartError
from benchmarks.rows import Step, Values
from benchmarks.subjects.base import AbsentError, Launch, Subject
from benchmarks.summary import Run

_SETTLE_S: Final = 0.3
_LOAD_TIMEOUT_S: Final = 150.0
_MAX_ERROR_SHARE: Final = 0.01


class LoadError(Exception):
    """The load generator failed; the text says why."""


class Running:
    """A subject that serves, ready to take load."""

    def __init__(self, child: Process | None, port: int, launch: Launch, start_s: float) -> None:
        self.child = child
        self.port = port
        self.launch = launch
        self.start_s = start_s

    @property
    def pid(self) -> int:
        return self.child.pid if self.child is not None else 0

    def load(self, spec: Spec) -> Result:
        """Apply one load; the subject must outlive it."""
        result = apply_load(
            msgspec.structs.replace(
                spec,
                port=self.port,
                path=self.launch.path,
                headers=self.launch.headers,
                pid=self.pid,
            )
        )
        if self.child is not None:
            self.child.check()
        return result


def apply_load(spec: Spec) -> Result:
    """Run the load generator in a process of its own; it inherits this process's core."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.load"],
        input=msgspec.json.encode(spec),
        capture_output=True,
        cwd=process.REPOSITORY,
        timeout=_LOAD_TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise LoadError(f"load {spec.scenario} failed: {' '.join(lines[-1:])}")
    return msgspec.json.decode(done.stdout, type=Result)


class Bench:
    """The mock upstream, the cores, and one visit after the other."""

    def __init__(self, folder: Path, gateway_core: int, load_core: int) -> None:
        self.folder = folder
        self.gateway_core = gateway_core
        self.load_core = load_core
        self.upstream_port = process.free_port()
        self.mock = Process(
            "mock",
            [sys.executable, "-m", "benchmarks.mock", "--port", str(self.upstream_port)],
            load_core,
        )
        self.mock.wait_for_status(self.upstream_port, "/whoami", 10.0)
        self.check_mock()

    def check_mock(self) -> None:
        """Make sure that the port is served by the mock of this run and no other."""
        self.mock.check()
        answer = process.get(self.upstream_port, "/whoami")[1]
        if msgspec.json.decode(answer or b"{}", type=dict[str, int]).get("pid") != self.mock.pid:
            raise StartError("another process answers at the mock's port")

    @contextmanager
    def started(self, subject: Subject) -> Generator[Running]:
        """Start a subject on the gateway's core; end it afterwards, whatever happens."""
        self.check_mock()
        port = process.free_port()
        with TemporaryDirectory(prefix="bench-", dir=self.folder) as folder:
            launch = subject.launch(Path(folder), port, self.upstream_port)
            if launch is None:
                yield Running(None, self.upstream_port, Launch([]), 0.0)
                return
            beside = [Process("beside", command, self.load_core) for command in launch.beside]
            child = Process(
                subject.name,
                launch.command,
                self.gateway_core,
                launch.environment,
                launch.folder or process.REPOSITORY,
            )
            try:
                start_s = child.wait_for_status(port, launch.ready_path, launch.ready_timeout_s)
                yield Running(child, port, launch, start_s)
            finally:
                child.end()
                for other in beside:
                    other.end()

    def visit(self, subject: Subject, steps: list[Step]) -> tuple[Values, dict[str, int]]:
        """Measure every step on one subject; return the figures and the failed requests."""
        values: Values = {}
        errors: dict[str, int] = {}
        shared = [step for step in steps if not step.fresh]
        batches = [shared] if shared else []
        batches += [[step] for step in steps if step.fresh]
        for batch in batches:
            with self.started(subject) as running:
                verify(running, subject)
                time.sleep(_SETTLE_S)
                if running.pid:
                    values.setdefault("start_s", running.start_s)
                    values.setdefault("idle_mb", accounting.rss_mb(accounting.tree(running.pid)))
                for step in batch:
                    measured, failed = measure(running, step)
                    values |= measured
                    if failed:
                        errors[step.key] = failed
                if running.pid and batch is shared:
                    values["peak_mb"] = accounting.peak_rss_mb(accounting.tree(running.pid))
        return values, errors

    def end(self) -> None:
        self.mock.end()


def verify(running: Running, subject: Subject) -> None:
    """Refuse to measure a subject that does not pass whole answers and streams on."""
    scenario: Scenario = "verify"
    result = running.load(Spec(scenario=scenario, port=0))
    if result.errors:
        words = running.child.words() if running.child is not None else ""
        raise StartError(f"{subject.name} does not relay whole answers:\n    {words}")


def measure(running: Running, step: Step) -> tuple[Values, int]:
    """Apply one step; its figures count only when hardly a request failed."""
    result = running.load(step.spec)
    values = {key: value for key, value in step.read(result).items() if value is not None}
    if not running.pid:
        values = {key: value for key, value in values.items() if not key.endswith(("_us", "_mb"))}
    if result.errors > _MAX_ERROR_SHARE * (result.requests + result.errors):
        values = {}
    return values, result.errors


@contextmanager
def bench() -> Generator[Bench]:
    """Own the machine's benchmark lock, a folder and a mock upstream for a while."""
    process.allow_many_files()
    with (
        process.exclusive(),
        process.preferred() as cores,
        TemporaryDirectory(prefix="bench-") as folder,
    ):
        running = Bench(Path(folder), *cores)
        try:
            yield running
        finally:
            running.end()


def run(subjects: list[Subject], steps: list[Step], rounds: int) -> Run:
    """Measure all subjects in turn for several rounds."""
    kept = Run(
        machine=machine(),
        subjects=[subject.name for subject in subjects],
        rounds=[],
        skipped={},
        errors={},
    )
    with bench() as running:
        for number in range(rounds):
            values: dict[str, Values] = {}
            todo = [step for step in steps if not step.once or number == 0]
            for subject in subjects:
                if subject.name in kept.skipped:
                    continue
                begun = time.monotonic()
                try:
                    values[subject.name], errors = running.visit(subject, todo)
                except (AbsentError, StartError, LoadError, subprocess.TimeoutExpired) as error:
                    kept.skipped[subject.name] = str(error)
                    print(f"{subject.name} left out: {error}", flush=True)
                    continue
                known = kept.errors.setdefault(subject.name, {}) if errors else {}
                for step, count in errors.items():
                    known[step] = known.get(step, 0) + count
                took = time.monotonic() - begun
                print(f"round {number + 1}/{rounds}  {subject.name:8} {took:5.1f} s", flush=True)
            kept.rounds.append(values)
    kept.subjects = [name for name in kept.subjects if any(name in one for one in kept.rounds)]
    return kept


def machine() -> dict[str, str]:
    """Describe what the figures were taken on."""
    about = {
        "date": datetime.now(UTC).date().isoformat(),
        "Python": platform.python_version(),
        "Linux": platform.release().split("-")[0],
        "cores": str(os.cpu_count()),
        "load average before": f"{os.getloadavg()[0]:.1f}",
    }
    nginx = shutil.which("nginx", path="/usr/bin:/usr/sbin:/usr/local/sbin")
    if nginx:
        words = subprocess.run([nginx, "-v"], capture_output=True, text=True, check=False).stderr
        about["nginx"] = words.strip().rpartition("/")[2]
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            about["CPU"] = line.partition(":")[2].strip()
            break
    return about
