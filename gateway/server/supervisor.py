"""Several workers on one port: started, watched, restarted, stopped together; one admin listener for all.

Each worker has a listening socket of its own on the shared port. The sockets live here, so that connections
that wait for a worker outlive its crash. A worker's standard input ends when this process does: it leaves too.
"""

import asyncio
import contextlib
import logging
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gateway.core import clock

_log = logging.getLogger("gateway")
_RESTART_AFTER_S = 0.5
_STABLE_S = 10.0
_MAX_RESTART_AFTER_S = 30.0


@dataclass(frozen=True, slots=True)
class Seat:
    """What one worker is given: its number and its socket."""

    number: int
    sock: socket.socket


Command = Callable[[Seat, int], Sequence[str]]
"""Builds a worker's command line from its seat and how often that seat was taken before."""


class Supervisor:
    """Keeps every seat taken until asked to stop."""

    def __init__(self, seats: Sequence[Seat], command: Command) -> None:
        self._seats = seats
        self._command = command
        self._stopping = asyncio.Event()
        self._running: dict[asyncio.subprocess.Process, Seat] = {}

    def ask(self, signal_number: int) -> None:
        """Pass a signal on to every worker, and start no more."""
        self._stopping.set()
        for process in self._running:
            _tell(process, signal_number)

    def processes(self) -> dict[str, int]:
        """Return the process ids of the workers, by seat; may be called from any thread."""
        return {str(seat.number): process.pid for process, seat in tuple(self._running.items())}

    async def run(self) -> int:
        """Run until all workers have left; returns the exit code."""
        async with asyncio.TaskGroup() as group:
            for seat in self._seats:
                group.create_task(self._keep(seat))
        return 0

    async def _keep(self, seat: Seat) -> None:
        """Take a seat again after a crash; give its socket up once nobody is to take it any more."""
        try:
            await self._retake(seat)
        finally:
            # Else the kernel would go on to hand it connections while other workers still serve.
            seat.sock.close()

    async def _retake(self, seat: Seat) -> None:
        """Wait longer each time when the worker crashes at once."""
        wait_s = _RESTART_AFTER_S
        taken = 0
        while not self._stopping.is_set():
            started = clock.monotonic()
            try:
                code = await self._take(seat, taken)
            except OSError as error:
                code = error.errno or -1  # no process could be made; the others go on
            taken += 1
            if self._stopping.is_set():
                return
            _log.error("worker %d ended with code %d; starting it again", seat.number, code)
            stable = clock.monotonic() - started > _STABLE_S
            wait_s = _RESTART_AFTER_S if stable else min(wait_s * 2, _MAX_RESTART_AFTER_S)
            try:
                async with asyncio.timeout(wait_s):
                    await self._stopping.wait()
            except TimeoutError:
                continue

    async def _take(self, seat: Seat, taken: int) -> int:
        fd = seat.sock.fileno()
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *self._command(seat, taken),
            pass_fds=(fd,),
            stdin=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        self._running[process] = seat
        if self._stopping.is_set():
            _tell(process, signal.SIGTERM)  # asked while it was being started
        try:
            return await process.wait()
        finally:
            del self._running[process]


def _tell(process: asyncio.subprocess.Process, signal_number: int) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal_number)
