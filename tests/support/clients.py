"""Official clients of several versions, each in a folder of its own below `.cache/clients`, installed once.

Absent when there is no registry or no Node: those tests skip and say so. Under CI absence fails.
"""

import hashlib
import json
import os
import shutil
import ssl
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.shared import ROOT, absent, lacking

_CACHE = ROOT / ".cache" / "clients"
_SCRIPTS = ROOT / "tests" / "system" / "clients"
_INSTALL_S = 180
_RUN_S = 150


@dataclass(frozen=True, slots=True)
class Client:
    """One client: the packages that make it, and the script with its cases; no packages: as installed."""

    name: str
    script: str
    packages: tuple[str, ...] = ()

    @property
    def is_node(self) -> bool:
        return self.script.endswith(".mjs")


def cases_of(client: Client) -> list[str]:
    """Return the names of a script's cases, in order."""
    text = (_SCRIPTS / client.script).read_text(encoding="utf-8")
    mark = "export async function " if client.is_node else "def case_"
    told = (line.partition(mark)[2].partition("(")[0] for line in text.splitlines())
    return [name.strip() for name in told if name]


def run_cases(client: Client, url: str, key: str) -> dict[str, dict[str, Any]]:
    """Run all cases of a client in one process; returns what each reported."""
    script = _script(client)
    command = _interpreter(client)
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    environ = {**kept, "HOME": str(_CACHE), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    done = subprocess.run(
        [*command, str(script), url, key],
        check=False,
        capture_output=True,
        text=True,
        env=environ,
        timeout=_RUN_S,
    )
    found: dict[str, dict[str, Any]] = {}
    for line in done.stdout.splitlines():
        if line.startswith("CASE "):
            told = json.loads(line.removeprefix("CASE "))
            found[told["case"]] = told
    assert found, done.stdout + done.stderr
    return found


def _interpreter(client: Client) -> list[str]:
    if not client.packages:
        return [sys.executable]
    folder = _folder(client)
    if client.is_node:
        return ["node", str(folder / "cases.mjs")]
    return [str(folder / "bin" / "python")]


def _script(client: Client) -> Path:
    script = _SCRIPTS / client.script
    if not client.is_node:
        return script
    # Node looks for packages beside the script.
    folder = _folder(client)
    for name in (client.script, "cases.mjs"):
        # Whole at any moment: another process may be reading it.
        fresh = folder / f"{name}.{os.getpid()}"
        fresh.write_bytes((_SCRIPTS / name).read_bytes())
        fresh.replace(folder / name)
    return folder / client.script


def _folder(client: Client) -> Path:
    """Return where a client is installed; installs it when it is not."""
    mark = hashlib.sha256(repr((client.packages, sys.version)).encode()).hexdigest()[:12]
    folder = _CACHE / f"{client.name}-{mark}"
    done = folder / "installed"
    if done.exists():
        return folder
    if client.is_node and not (shutil.which("node") and shutil.which("npm")):
        lacking("node and npm")
    with _locked(folder):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            for command in _commands(client, folder):
                _install(client, folder, command)
            done.touch()
    return folder


def _commands(client: Client, folder: Path) -> Iterator[list[str]]:
    if client.is_node:
        quiet = ["--no-audit", "--no-fund", "--fetch-retries=1", "--prefix", str(folder)]
        yield ["npm", "install", *quiet, *client.packages]
        return
    uv = [sys.executable, "-m", "uv"]
    yield [*uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, str(folder)]
    python = str(folder / "bin" / "python")
    yield [*uv, "pip", "install", "--quiet", "--system-certs", "--python", python, *client.packages]


def _install(client: Client, folder: Path, command: list[str]) -> None:
    try:
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            timeout=_INSTALL_S,
            cwd=folder,
            env={**_system_certificates(), **os.environ},
        )
    except subprocess.TimeoutExpired:
        absent(f"a registry for {client.name}: it took too long")
    if done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines() or [str(done.returncode)]
        absent(f"a registry for {client.name}: {words[0]}")


def _system_certificates() -> dict[str, str]:
    """Let Node trust what this machine trusts, as the installer of Python packages is told to."""
    file = ssl.get_default_verify_paths().cafile
    return {"NODE_EXTRA_CA_CERTS": file} if file else {}


@contextmanager
def _locked(folder: Path) -> Generator[None]:
    """Let one process install at a time."""
    import fcntl

    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
