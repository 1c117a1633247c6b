"""Threads for checks that may hang: a bounded number for each check, its own, and nobody waits for them at the end.

A call that was given up keeps its thread until it returns. Once all threads of a check are kept so, it fails
at once.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import Final, Generic, TypeVar

from gateway.middleware.base import Build
from gateway.middleware.foreign import FOREIGN
from gateway.middleware.guardrail.check import CheckFailed

THREADS: Final = 8
"""Calls of one check that run at the same time; others wait, within the time that the check has."""
_IDLE_S: Final = 30.0
_GAUGE: Final = "gateway_guardrail_stuck_threads"
_T = TypeVar("_T")
_log = logging.getLogger("gateway")


class _Job(Generic[_T]):
    """One call. `is_running` and `is_given_up` are set under the lock."""

    __slots__ = ("done", "is_given_up", "is_running", "work")

    def __init__(
        self, work: Callable[[], _T], done: "asyncio.Future[tuple[_T] | BaseException]"
    ) -> None:
        self.work = work
        self.done = done
        self.is_running = False
        self.is_given_up = False


class Beside(Generic[_T]):
    """Runs the calls of one check beside the event loop."""

    def __init__(self, build: Build, name: str) -> None:
        self._name = f"{build.id}.{name}"
        self._gauge = build.ports.metrics.gauge(_GAUGE, build.id)
        self._lock = threading.Lock()
        self._jobs: SimpleQueue[_Job[_T]] = SimpleQueue()
        self._threads = 0
        self._open = 0
        self._stuck = 0

    async def run(self, work: Callable[[], _T]) -> _T:
        """Return what a call returns; raises CheckFailed for whatever it raises, or without a thread to come."""
        if self._stuck >= THREADS:
            raise CheckFailed
        loop = asyncio.get_running_loop()
        context = copy_context()
        job: _Job[_T] = _Job(lambda: context.run(work), loop.create_future())
        self._open += 1
        with self._lock:
            self._jobs.put(job)
            is_one_more = self._threads < min(self._open, THREADS)
            self._threads += is_one_more
        if is_one_more:
            threading.Thread(
                target=self._serve, args=(loop,), name="guardrail-check", daemon=True
            ).start()
        try:
            found = await job.done
        except asyncio.CancelledError:
            self._give_up(job)
            raise
        if isinstance(found, BaseException):
            raise CheckFailed from found
        return found[0]

    def _give_up(self, job: _Job[_T]) -> None:
        with self._lock:
            job.is_given_up = True
            if not job.is_running:
                return
        self._stuck += 1
        self._gauge.inc()
        if self._stuck == THREADS:
            _log.error(
                "check %s: %d calls hang and keep all of its threads; it fails until one returns",
                self._name,
                THREADS,
            )

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        """Do calls, until there are none for a while or the loop is closed."""
        with suppress(RuntimeError):
            while (job := self._next()) is not None:
                found: tuple[_T] | BaseException | None = None
                if job.is_running:
                    try:
                        found = (job.work(),)
                    except (*FOREIGN, asyncio.CancelledError) as error:
                        found = error
                loop.call_soon_threadsafe(self._end, job, found)

    def _next(self) -> _Job[_T] | None:
        """Wait for a call; one that was given up meanwhile is not begun."""
        try:
            job = self._jobs.get(timeout=_IDLE_S)
        except Empty:
            with self._lock:
                if self._jobs.empty():
                    self._threads -= 1
                    return None
                job = self._jobs.get()
        with self._lock:
            job.is_running = not job.is_given_up
        return job

    def _end(self, job: _Job[_T], found: tuple[_T] | BaseException | None) -> None:
        self._open -= 1
        if job.is_given_up and job.is_running:
            self._stuck -= 1
            self._gauge.dec()
        elif found is not None and not job.done.done():
            job.done.set_result(found)
