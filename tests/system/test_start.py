"""Starts that meet a taken address or a broken output: what is told, and what becomes of the first key."""

import json
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.gateway import (
    START_S,
    Gateway,
    bearer,
    clean_environ,
    http,
    ports,
    run_cli,
    run_gateway,
    start,
    wait_for,
)

ALONE = {"GATEWAY_SERVER__PORT": "0", "GATEWAY_SERVER__ADMIN__PORT": "0"}
_MUTE = re.compile(r"standard output cannot be written: ready at (\S+), admin at")


def written(folder: Path, workers: int = 1) -> str:
    path = folder / "config.yaml"
    config = {
        "server": {"workers": workers},
        "providers": {"echo": {"kind": "echo"}},
        "models": {"echo": {"targets": [{"provider": "echo", "model": "echo"}]}},
        "tenants": {"team": {"models": ["echo"]}},
    }
    path.write_text(json.dumps(ports(config)), encoding="utf-8")
    return str(path)


def opens(gateway: Gateway, key: str) -> bool:
    with http() as client:
        return client.get(f"{gateway.url}/v1/models", headers=bearer(key)).status_code == 200


@pytest.mark.parametrize("workers", [1, 2])
def test_a_taken_port_is_told(workers: int, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        path = written(tmp_path, workers)
        done = run_cli("serve", "--config", path, "--port", str(port), folder=tmp_path)

    assert done.returncode == 1
    assert f"port {port}: " in done.stderr
    assert "Change server.port, or set GATEWAY_SERVER__PORT." in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("workers", [1, 2])
def test_a_taken_admin_port_is_told(workers: int, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        path = written(tmp_path, workers)
        environ = {"GATEWAY_SERVER__ADMIN__PORT": str(port)}
        done = run_cli("serve", "--config", path, folder=tmp_path, environ=environ)

    assert done.returncode == 1
    assert f"port {port}: " in done.stderr
    assert "Change server.admin.port, or set GATEWAY_SERVER__ADMIN__PORT." in done.stderr
    assert "Traceback" not in done.stderr


def test_an_address_of_another_machine_is_told(tmp_path: Path) -> None:
    path = written(tmp_path)

    done = run_cli("serve", "--config", path, "--host", "192.0.2.1", folder=tmp_path)

    assert done.returncode == 1
    assert "Change server.host, or set GATEWAY_SERVER__HOST." in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("output", [">/dev/full", ">&-"])
def test_an_output_that_cannot_be_written_prevents_no_start(
    output: str, unbuffered: str, tmp_path: Path
) -> None:
    environ = clean_environ(tmp_path, {**ALONE, "PYTHONUNBUFFERED": unbuffered})
    mute = ("sh", "-c", f'exec "$@" {output}', "sh")
    line = ("-m", "gateway", "serve")
    with start(line, tmp_path, environ, "mute", prefix=mute) as process:
        ready = wait_for(lambda: _MUTE.search(process.err), START_S, "the line in the log")
        with http() as client:
            assert client.get(f"{ready.group(1)}/livez").status_code == 200
        wait_for(lambda: "the first key could not be shown and is revoked" in process.err)
        assert process.stop() == 0
        assert "gw-" not in process.err
        assert "Traceback" not in process.err

    assert "first\t" in (listed := run_cli("keys", "list", folder=tmp_path).stdout)
    assert "revoked" in listed
    made = run_cli("keys", "new", folder=tmp_path).stdout.strip()
    with run_gateway(None, tmp_path, environ=ALONE, name="again") as gateway:
        assert opens(gateway, made)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_first_key_that_neither_works_nor_is_shown_is_revoked(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            ["sh", "-c", 'exec "$@" >/dev/full', "sh", sys.executable, "-m", "gateway", "serve"],
            check=False,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=clean_environ(tmp_path, {**ALONE, "GATEWAY_SERVER__PORT": port}),
            timeout=START_S,
        )

    assert done.returncode == 1
    assert "the first key could not be shown and is revoked" in done.stderr
    assert "gw-" not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_first_key_is_not_lost_when_the_port_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run_cli("serve", "--port", port, folder=tmp_path, environ=ALONE)
    key = done.stdout.split()[-1]

    with run_gateway(None, tmp_path, environ=ALONE) as gateway:
        assert opens(gateway, key)
