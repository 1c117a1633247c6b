"""`gateway check --live`: each configured provider is called once, and failures are told in words."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.gateway import clean_environ

CONFIG: dict[str, Any] = {
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


def check(folder: Path, *arguments: str, **sections: Any) -> subprocess.CompletedProcess[str]:
    path = folder / "gateway.yaml"
    tenant = {
        "acme": {**CONFIG["tenants"]["acme"], "models": list(sections.get("models", ["good"]))}
    }
    path.write_text(json.dumps({**CONFIG, "tenants": tenant, **sections}), encoding="utf-8")
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


def test_a_provider_without_its_credential_says_what_to_set(tmp_path: Path) -> None:
    file = tmp_path / "credentials.json"
    file.write_text('{"type": "gdch"}', encoding="utf-8")
    base: dict[str, Any] = {"kind": "vertex", "project": "p", "region": "europe-west1"}
    providers = {"cloud": {**base, "credentials_file": str(file)}}
    targets = [{"provider": "cloud", "model": "gemini-3.8-flash"}]
    done = check(tmp_path, "--live", providers=providers, models={"m": {"targets": targets}})

    (line,) = [line for line in done.stdout.splitlines() if line.startswith("cloud: ")]
    assert done.returncode == 3
    assert f"cannot be used: the Google credentials file {file} is of a type that is not" in line
    assert "service_account, authorized_user" in line


def test_nothing_is_called_unasked(tmp_path: Path) -> None:
    done = check(tmp_path)

    assert (done.returncode, done.stdout) == (0, "no mistakes\n")
