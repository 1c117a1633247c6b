"""Real processes on ports of their own, until the block ends: the gateway, and the replay upstream."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx2

from tests.support.shared import ROOT, require_shared

KEY = "sk-test-0123456789abcdefghij"
START_S = 20.0
STOP_S = 10.0
_READY = re.compile(r"^llm-gateway is ready at (\S+)\n +admin: (\S+)", re.MULTILINE)
_LISTENING = re.compile(r"^listening on (\S+)", re.MULTILINE)
_SAMPLE = re.compile(r"^([a-z_]+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')
_KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV", "SYSTEMROOT")
_T = TypeVar("_T")


def wait_for(probe: Callable[[], _T | None], within_s: float = 5.0, what: str = "") -> _T:
    """Return the first result of `probe` that is neither None nor False; fails after the time."""
    until = time.monotonic() + within_s
    while True:
        found = probe()
        if found is not None and found is not False:
            return found
        assert time.monotonic() < until, f"did not come about: {what or probe}"
        time.sleep(0.01)


def http(**options: Any) -> httpx2.Client:
    """Return a client that takes nothing from the environment."""
    return httpx2.Client(trust_env=False, verify=False, timeout=30, **options)


def bearer(key: str = KEY) -> dict[str, str]:
    """Return the headers of a caller."""
    return {"authorization": f"Bearer {key}"}


def clean_environ(home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment without anyone's keys, with a home of its own."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    measured = {name: value for name, value in os.environ.items() if name.startswith("COV")}
    own = {"HOME": str(home), "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    return {**kept, **measured, **own, **(more or {})}


@dataclass
class Process:
    """A started process whose output goes to files."""

    popen: subprocess.Popen[bytes]
    folder: Path
    name: str

    @property
    def out(self) -> str:
        """What it has printed."""
        return (self.folder / f"{self.name}.out").read_text(encoding="utf-8")

    @property
    def err(self) -> str:
        """What it has logged."""
        return (self.folder / f"{self.name}.err").read_text(encoding="utf-8")

    def search(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """Wait until it has printed what the pattern tells; fails when it ends before."""

        def probe() -> re.Match[str] | None:
            found = pattern.search(self.out)
            if found is None and self.popen.poll() is not None:
                message = f"{self.name} ended with {self.popen.returncode}: {self.out}{self.err}"
                raise AssertionError(message)
            return found

        return wait_for(probe, START_S, f"{pattern.pattern} from {self.name}")

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it and return its exit code."""
        if self.popen.poll() is None:
            self.popen.send_signal(number)
        try:
            return self.popen.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait(STOP_S)
            raise


@contextmanager
def start(
    arguments: Sequence[str],
    folder: Path,
    environ: Mapping[str, str],
    name: str,
    *,
    prefix: Sequence[str] = (),
) -> Generator[Process]:
    """Run a Python program until the block ends; `prefix` is a command that becomes it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.out").open("wb") as out, (folder / f"{name}.err").open("wb") as err:
        popen = subprocess.Popen(
            [*prefix, sys.executable, *arguments],
            stdout=out,
            stderr=err,
            cwd=folder,
            env=dict(environ),
        )
    process = Process(popen, folder, name)
    try:
        yield process
    finally:
        process.stop(signal.SIGTERM)


@dataclass
class Gateway:
    """A gateway that answers. `url` is the data listener, `admin` the other one."""

    url: str
    admin: str
    process: Process
    _reader: httpx2.Client = field(default_factory=http)

    def metrics(self, *names: str) -> list[tuple[dict[str, str], float]]:
        """Return the samples of some metrics, with their labels; an answer is reused for a while."""
        text = self._reader.get(f"{self.admin}/metrics").text
        return [
            (dict(_LABEL.findall(labels)), float(value))
            for sample, labels, value in _SAMPLE.findall(text)
            if sample in names
        ]

    def count(self, name: str, **labels: str) -> float:
        """Return the sum of a metric's samples that carry these labels."""
        wanted = labels.items()
        return sum(value for found, value in self.metrics(name) if wanted <= found.items())

    def records(self) -> list[dict[str, Any]]:
        """Return the log lines of requests so far."""
        whole, _, _ = self.process.err.rpartition("\n")
        lines = (json.loads(line) for line in whole.splitlines() if line[:1] == "{")
        return [line for line in lines if line.get("msg") == "request"]

    def close(self) -> None:
        """Let go of the connection for metrics."""
        self._reader.close()


def ports(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration with free ports and stores in memory, where it says nothing else."""
    server = {"port": 0, "admin": {"port": 0}, **config.get("server", {})}
    stores = {"database": "memory", **config.get("stores", {})}
    return {**config, "server": server, "stores": stores}


@contextmanager
def run_gateway(
    config: Mapping[str, Any] | None,
    folder: Path,
    *,
    environ: Mapping[str, str] | None = None,
    arguments: Sequence[str] = (),
    name: str = "gateway",
    prefix: Sequence[str] = (),
) -> Generator[Gateway]:
    """Serve a configuration; without one, what `gateway serve` does by itself."""
    folder.mkdir(parents=True, exist_ok=True)
    if config is not None:
        path = folder / f"{name}.yaml"
        path.write_text(json.dumps(ports(config)), encoding="utf-8")
        arguments = ("--config", str(path), *arguments)
    line = ("-m", "gateway", "serve", *arguments)
    with start(line, folder, clean_environ(folder, environ), name, prefix=prefix) as process:
        ready = process.search(_READY)
        gateway = Gateway(ready.group(1), ready.group(2), process)
        try:
            with http() as client:
                assert client.get(f"{gateway.url}/livez").status_code == 200
            yield gateway
        finally:
            gateway.close()


def run_cli(
    *arguments: str, folder: Path, environ: Mapping[str, str] | None = None, given: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run one command of the gateway to its end."""
    return subprocess.run(
        [sys.executable, "-m", "gateway", *arguments],
        check=False,
        capture_output=True,
        text=True,
        input=given,
        cwd=folder,
        env=clean_environ(folder, environ),
        timeout=START_S,
    )


@dataclass
class Replay:
    """A running replay upstream."""

    url: str
    _reader: httpx2.Client = field(default_factory=http)

    def log(self) -> list[dict[str, Any]]:
        """Return every request it has received."""
        requests: list[dict[str, Any]] = self._reader.get(f"{self.url}/__log").json()["requests"]
        return requests

    def reset(self) -> None:
        """Forget the requests so far."""
        self._reader.post(f"{self.url}/__reset")

    def close(self) -> None:
        """Let go of the connection for the log."""
        self._reader.close()


@contextmanager
def run_replay(folder: Path, *, recordings: Path | None = None) -> Generator[Replay]:
    """Serve recordings; a request whose model is `opt:<options>` is answered under these options."""
    script = require_shared() / "tools" / "replay_upstream.py"
    line = [str(ROOT / "tests" / "support" / "steered_replay.py"), str(script)]
    line += ["--port", "0", "--quiet"]
    if recordings is not None:
        line += ["--dir", str(recordings)]
    with start(line, folder, clean_environ(folder), "replay") as process:
        replay = Replay(process.search(_LISTENING).group(1))
        try:
            yield replay
        finally:
            replay.close()
