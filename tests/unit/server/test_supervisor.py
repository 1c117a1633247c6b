"""Keeping seats taken: whatever becomes of one worker, the others and the way out are not touched."""

import asyncio
import signal
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.server.supervisor import Seat, Supervisor
from tests.support.scripted_upstream import until

pytestmark = pytest.mark.slow
LOOPS = ("uvloop",)


def seat(number: int = 0) -> Seat:
    return Seat(number, socket.create_server(("127.0.0.1", 0)))


async def test_a_worker_that_cannot_be_made_is_tried_again(tmp_path: Path) -> None:
    up = tmp_path / "up"

    def command(seat: Seat, taken: int) -> Sequence[str]:
        if not taken:
            return ("-c", "x" * 3_000_000)  # more than the kernel takes
        return ("-c", f"import pathlib, time; pathlib.Path({str(up)!r}).touch(); time.sleep(30)")

    supervisor = Supervisor([seat()], command)
    running = asyncio.ensure_future(supervisor.run())
    await until(up.exists, 10)
    supervisor.ask(signal.SIGTERM)

    assert await asyncio.wait_for(running, 5) == 0


async def test_a_worker_that_is_just_being_made_is_told_to_leave() -> None:
    seats = [seat(number) for number in range(3)]
    supervisor = Supervisor(seats, lambda _seat, _taken: ("-c", "import time; time.sleep(30)"))
    running = asyncio.ensure_future(supervisor.run())
    await asyncio.sleep(0)
    supervisor.ask(signal.SIGTERM)

    assert await asyncio.wait_for(running, 5) == 0
    assert all(each.sock.fileno() == -1 for each in seats), "nobody is sent to them any more"
