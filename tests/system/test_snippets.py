"""What a reader copies from the documents runs against a gateway that has just been started."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.blocks import Block, fenced
from tests.support.gateway import KEY, Gateway, clean_environ, run_gateway

CONFIG = {
    "providers": {"echo": {"kind": "echo"}},
    "models": {"echo": {"targets": [{"provider": "echo", "model": "echo"}]}},
    "tenants": {"reader": {"models": ["echo"], "keys": [{"id": "docs", "secret": KEY}]}},
}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with run_gateway(CONFIG, tmp_path_factory.mktemp("docs")) as running:
        yield running


# The files of a walkthrough are no programs; tests/unit/testing runs them.
PROGRAMS = [block for block in fenced("python") if not block.name.startswith("CONTRIBUTING")]


@pytest.mark.parametrize("block", PROGRAMS, ids=lambda block: block.name)
def test_programs_in_documents_run(block: Block, gateway: Gateway, tmp_path: Path) -> None:
    program = block.text.replace("http://127.0.0.1:4000", gateway.url).replace("gw-...", KEY)

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=clean_environ(tmp_path),
        timeout=30,
    )

    assert (done.returncode, done.stderr) == (0, "")
