"""Starts, pins, watches and ends the processes of a benchmark; none may outlive it."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from benchmarks import accounting

REPOSITORY: Final = Path(__file__).resolve().parent.parent
_LOCK: Final = Path(tempfile.gettempdir()) / "bench.lock"
_PR_SET_PDEATHSIG: Final = 1
_NICE: Final = -15
_GRACE_S: Final = 5.0
_POLL_S: Final = 0.005
_OPEN_FILES: Final = 16_384


class StartError(Exception):
    """A process did not come up; the text says why."""


class _Started(msgspec.Struct, frozen=True):
    pid: int
    start_ticks: int


def home() -> Path:
    """Return the folder outside the repository that holds peers, logs and the list of processes."""
    given = os.environ.get("BENCH_HOME")
    folder = Path(given) if given else Path.home() / ".cache" / "llm-gateway-bench"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def cores() -> tuple[int, int]:
    """Return the core of the gateway and the core of load and mock (the same on one core)."""
    mine = sorted(os.sched_getaffinity(0))
    return mine[0], mine[-1]


@contextmanager
def exclusive() -> Generator[None]:
    """Let one benchmark run at a time on a machine, and end what a killed one left behind."""
    with _LOCK.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another benchmark to finish ...", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        end_stale()
        try:
            yield
        finally:
            end_stale()


@contextmanager
def preferred() -> Generator[tuple[int, int]]:
    """Take precedence over other work where that is allowed; give the core of each side.

    The first is the gateway's, the second that of load and mock, which this process moves to.
    """
    chosen = cores()
    cores_before = os.sched_getaffinity(0)
    nice_before = os.getpriority(os.PRIO_PROCESS, 0)
    session_before = _session_nice()
    os.sched_setaffinity(0, {chosen[1]})
    _prefer_session(_NICE)
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, _NICE)
    try:
        yield chosen
    finally:
        os.sched_setaffinity(0, cores_before)
        _prefer_session(session_before)
        with suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, nice_before)


def _prefer_session(nice: int) -> None:
    # Where sessions are scheduled as groups, niceness counts inside the group only.
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(nice))


def _session_nice() -> int:
    try:
        return int(Path("/proc/self/autogroup").read_text().rpartition("nice ")[2])
    except (OSError, ValueError):
        return 0


def _registry() -> Path:
    return home() / "running.json"


def _read_registry() -> list[_Started]:
    try:
        return msgspec.json.decode(_registry().read_bytes(), type=list[_Started])
    except (OSError, msgspec.DecodeError):
        return []


def _register(pid: int) -> None:
    stat = accounting.read_stat(pid)
    if stat is not None:
        known = [*_read_registry(), _Started(pid, stat.start_ticks)]
        _registry().write_bytes(msgspec.json.encode(known))


def end_stale() -> None:
    """Kill the process groups started here, by this run or by one that was killed."""
    for known in _read_registry():
        members = [stat for stat in accounting.all_stats() if stat.group == known.pid]
        leader = accounting.read_stat(known.pid)
        reused = leader is not None and leader.start_ticks != known.start_ticks
        if members and not reused:
            with suppress(ProcessLookupError):
                os.killpg(known.pid, signal.SIGKILL)
    _registry().unlink(missing_ok=True)


def free_port() -> int:
    """Return a port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Process:
    """A child in a process group of its own, pinned to one core, its output in a log file."""

    def __init__(
        self,
        name: str,
        command: list[str],
        core: int,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        self.name = name
        self.log = home() / "logs" / f"{name}.log"
        self.log.parent.mkdir(exist_ok=True)
        self.begun = time.monotonic()
        libc = ctypes.CDLL(None)

        def prepare() -> None:
            os.sched_setaffinity(0, {core})
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            _prefer_session(_NICE)

        with self.log.open("wb") as log:
            self.popen = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                cwd=folder or REPOSITORY,
                preexec_fn=prepare,  # noqa: PLW1509 - one thread here, and a core is fixed before exec
                start_new_session=True,
            )
        _register(self.popen.pid)

    @property
    def pid(self) -> int:
        return self.popen.pid

    def words(self) -> str:
        """Return the last lines of the output, for an error message."""
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return "\n    ".join(line[:200] for line in lines[-8:]) or "(no output)"

    def check(self) -> None:
        """Raise when the process has ended."""
        if self.popen.poll() is not None:
            raise StartError(
                f"{self.name} ended with code {self.popen.returncode}:\n    {self.words()}"
            )

    def wait_for_status(self, port: int, path: str, timeout_s: float) -> float:
        """Wait until a GET is answered with 200; return the seconds since the start."""
        deadline = self.begun + timeout_s
        while time.monotonic() < deadline:
            self.check()
            if get(port, path, body=False)[0] == 200:
                return time.monotonic() - self.begun
            time.sleep(_POLL_S)
        raise StartError(f"{self.name} was not ready in {timeout_s:.0f} s:\n    {self.words()}")

    def end(self) -> None:
        """End the whole group: politely, then for good."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.popen.wait(_GRACE_S)
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.popen.wait()


def get(port: int, path: str, *, body: bool = True, timeout_s: float = 1.0) -> tuple[int, bytes]:
    """GET from loopback on a fresh connection; status 0 when nothing answers."""
    received = b""
    ask = f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\r\n"
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=timeout_s) as connection:
            connection.sendall(ask.encode())
            while piece := connection.recv(65536):
                received += piece
                text = received.partition(b"\r\n\r\n")[2]
                if b"\r\n" in received and (not body or b"}" in text):
                    break
    except OSError:
        pass
    if not received.startswith(b"HTTP/1."):
        return 0, b""
    return int(received[9:12]), received.partition(b"\r\n\r\n")[2]


def allow_many_files() -> None:
    """Raise the limit of open files to what 1,000 connections on both sides need."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
