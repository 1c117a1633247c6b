"""A process out of file descriptors: what runs goes on, and new clients come in again (L-10)."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.edge import wait_until
from tests.support.raw_client import Address, Closed, RawClient, get
from tests.support.shared import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.fault("L-10")]

DESCRIPTORS = 48
SERVER = f"""
import resource, sys, threading
resource.setrlimit(resource.RLIMIT_NOFILE, ({DESCRIPTORS}, {DESCRIPTORS}))
from tests.support.edge import serve
with serve(loop="uvloop") as server:
    print(server.address[1], flush=True)
    sys.stdin.read()
"""


@dataclass(frozen=True, slots=True)
class Small:
    """A server process with few descriptors."""

    address: Address
    pid: int

    def cpu_ticks(self) -> int:
        """Return the time it has used, in the kernel's ticks."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1]
        return sum(int(field) for field in fields.split()[11:13])


@pytest.fixture
def small() -> Generator[Small]:
    """The loop is uvloop: asyncio's own logs one refused accept as often as the backlog is long."""
    command = [sys.executable, "-c", SERVER]
    pipe = subprocess.PIPE
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=quiet) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Small(("127.0.0.1", int(process.stdout.readline())), process.pid)
        process.stdin.close()
        process.wait(15)


def is_served(address: Address) -> bool:
    """Tell whether a new client is answered."""
    try:
        with RawClient(address, timeout_s=1) as client:
            return client.send(get("/plain")).read_answer().status == 200
    except (OSError, Closed):
        return False


def test_running_clients_go_on_and_new_ones_come_in_again(small: Small) -> None:
    with RawClient(small.address) as first, ExitStack() as crowd:
        assert first.send(get("/plain")).read_answer().status == 200
        for _ in range(DESCRIPTORS * 2):
            crowd.enter_context(RawClient(small.address))
        assert not is_served(small.address)

        before = small.cpu_ticks()
        for _ in range(5):
            assert first.send(get("/ticks?n=4&ms=50")).read_answer().complete
        assert small.cpu_ticks() - before < 60  # of 100 in the second that this took

        crowd.close()
        wait_until(lambda: is_served(small.address), 10)
        assert first.send(get("/plain")).read_answer().status == 200
