"""The health check of the image, as Docker runs it, against a gateway in the environment of the image."""

import json
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.gateway import clean_environ, run_gateway
from tests.support.shared import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def image_environ() -> dict[str, str]:
    """Return what the image sets for the gateway."""
    return dict(re.findall(r"(GATEWAY_\w+)=(\S+)", DOCKERFILE))


def health_check(folder: Path, environ: dict[str, str]) -> int:
    written = re.search(r"^HEALTHCHECK .*\n  CMD (\[.+\])$", DOCKERFILE, re.MULTILINE)
    assert written is not None
    program, *arguments = json.loads(written.group(1))
    assert program == "python"
    done = subprocess.run(
        [sys.executable, *arguments],
        env=clean_environ(folder, environ),
        capture_output=True,
        check=False,
    )
    return done.returncode


def test_the_image_says_where_the_gateway_listens() -> None:
    assert image_environ() == {"GATEWAY_SERVER__HOST": "0.0.0.0", "GATEWAY_SERVER__PORT": "4000"}


@pytest.mark.slow
def test_the_health_check_finds_the_gateway_whatever_port_a_file_says(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = str(probe.getsockname()[1])
    own = {"GATEWAY_SERVER__HOST": "127.0.0.1", "GATEWAY_SERVER__PORT": port}
    environ = {**image_environ(), **own}
    config = {
        "server": {"host": "127.0.0.1", "port": 4444, "admin": {"port": 0}},
        "providers": {"echo": {"kind": "echo"}},
        "models": {"echo": {"targets": [{"provider": "echo", "model": "echo"}]}},
    }

    with run_gateway(config, tmp_path, environ=environ) as gateway:
        assert gateway.url.endswith(f":{port}")
        assert health_check(tmp_path, environ) == 0

    assert health_check(tmp_path, environ) != 0
