"""`gateway check --live`: each configured provider is called once, and failures are told in words."""

import json
import subprocess
import sys
from pathlib import Path

from tests.support.gateway import clean_environ

CONFIG = {
    "providers": {
        "works": {"kind": "echo"},
        "away": {"kind": "openai_compatible", "base_url": "http://127.0.0.1:9/v1"},
        "unnamed": {"kind": "echo"},
    },
    "models": {
        "good": {"targets": [{"provider": "works", "model": "echo"}]},
        "bad": {"targets": [{"provider": "away", "model": "m"}]},
    },
    "tenants": {
        "acme": {"keys": [{"id": "k", "secret": "sk-0123456789abcdefghij"}], "models": ["good"]}
    },
}


def check(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = folder / "gateway.yaml"
    path.write_text(json.dumps(CONFIG), encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "gateway", "check", *arguments, str(path)],
        capture_output=True,
        text=True,
        env=clean_environ(folder),
        check=False,
        timeout=60,
    )


def test_each_provider_is_called_and_told_of(tmp_path: Path) -> None:
    done = check(tmp_path, "--live")

    told = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
    assert done.returncode == 3
    assert "answered chat" in told["works"]
    assert "cannot be reached" in told["away"]
    assert told["unnamed"].startswith("not called")


def test_nothing_is_called_unasked(tmp_path: Path) -> None:
    done = check(tmp_path)

    assert (done.returncode, done.stdout) == (0, "no mistakes\n")
