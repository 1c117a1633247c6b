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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from gateway.config.errors import ConfigError, Mistake
from gateway.core import clock
from gateway.server.control import AT_FIRST, Link, Order, mistakes_of

_log = logging.getLogger("gateway")
_RESTART_AFTER_S = 0.5
_STABLE_S = 10.0
_MAX_RESTART_AFTER_S = 30.0


@dataclass(frozen=True, slots=True)
class Seat:
    """What one worker is given: its number, its socket, and the descriptor of its channel to the supervisor."""

    number: int
    sock: socket.socket
    control: int = -1


Command = Callable[[Seat, int], Sequence[str]]
"""Builds a worker's command line from its seat and how often that seat was taken before."""


class Supervisor:
    """Keeps every seat taken until asked to stop; `start` is the configuration that the workers begin with."""

    def __init__(self, seats: Sequence[Seat], command: Command, start: Order = AT_FIRST) -> None:
        self._seats = seats
        self._command = command
        self._start = self._now = start
        self._links: set[Link] = set()
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
        link = Link(str(seat.number), self._start, self._now)
        self._links.add(link)
        try:
            return await self._run_worker(replace(seat, control=link.theirs.fileno()), taken, link)
        finally:
            self._links.discard(link)
            link.close()

    async def _run_worker(self, seat: Seat, taken: int, link: Link) -> int:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *self._command(seat, taken),
            pass_fds=(seat.sock.fileno(), seat.control),
            stdin=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        self._running[process] = seat
        if self._stopping.is_set():
            _tell(process, signal.SIGTERM)  # asked while it was being started
        try:
            await link.open()
            return await process.wait()
        finally:
            del self._running[process]

    async def adopt(self, order: Order) -> Mapping[str, int]:
        """Have every worker use another configuration, or none.

        All load and check it before the first one uses it; one that is started meanwhile follows. Returns the
        generation in use by each; raises ConfigError with what any of them has against it.
        """
        links = tuple(self._links)
        answers = await asyncio.gather(*(link.ask(order) for link in links))
        silent = [link for link, answer in zip(links, answers, strict=True) if answer is None]
        wrong = mistakes_of([answer for answer in answers if answer is not None])
        wrong += [_silent(link) for link in silent if not link.gone]
        if wrong:
            drop = Order("drop", order.generation)
            await asyncio.gather(*(link.ask(drop) for link in links if link not in silent))
            raise ConfigError(wrong)
        self._now = order
        commit = Order("commit", order.generation)
        await asyncio.gather(*(link.ask(commit) for link in links))
        late = [link for link in self._links if link.in_use != order.generation]
        await asyncio.gather(*(link.ask(order) for link in late))
        await asyncio.gather(*(link.ask(commit) for link in late))
        return {link.name: link.in_use for link in sorted(self._links, key=lambda link: link.name)}


def _silent(link: Link) -> Mistake:
    return Mistake(f"worker {link.name}", 0, 0, "", "did not answer in time")


def _tell(process: asyncio.subprocess.Process, signal_number: int) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal_number)
