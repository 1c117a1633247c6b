"""Installs peers into folders of their own outside the repository, and finds their programs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import msgspec

from benchmarks.process import home
from benchmarks.subjects.base import AbsentError


def _run(command: list[str], folder: Path) -> None:
    print("  " + " ".join(command), flush=True)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise AbsentError(f"installation failed: {' '.join(last)}")


def install_python(name: str, packages: list[str]) -> None:
    """Install Python packages into a virtual environment of their own."""
    folder = home() / name
    if not (folder / "bin" / "python").exists():
        _run([sys.executable, "-m", "venv", str(folder)], home())
    python = str(folder / "bin" / "python")
    _run([python, "-m", "pip", "install", "--quiet", *packages], folder)


def python_program(name: str, program: str) -> Path:
    """Return an installed program, or raise AbsentError."""
    found = home() / name / "bin" / program
    if not found.exists():
        raise AbsentError(f"{name} is not installed (python -m benchmarks install {name})")
    return found


def install_node(name: str, packages: list[str], overrides: dict[str, str]) -> None:
    """Install npm packages into a folder of their own, with some dependencies held back."""
    npm = shutil.which("npm")
    if npm is None:
        raise AbsentError("npm is not installed")
    folder = home() / name
    folder.mkdir(exist_ok=True)
    manifest = {"private": True, "overrides": overrides}
    (folder / "package.json").write_bytes(msgspec.json.encode(manifest))
    _run([npm, "install", "--no-fund", "--no-audit", "--prefix", str(folder), *packages], folder)


def node_program(name: str, script: str) -> tuple[str, Path]:
    """Return node and an installed script, or raise AbsentError."""
    node = shutil.which("node")
    found = home() / name / script
    if node is None or not found.exists():
        raise AbsentError(f"{name} is not installed (python -m benchmarks install {name})")
    return node, found
