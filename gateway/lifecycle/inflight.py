"""The live requests of this process: counted, awaited at shutdown, cut when time is up.

The only place that starts background tasks, so that none is ever orphaned.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine
from typing import Any

from gateway.core.call import Run

_log = logging.getLogger("gateway")
_AGAIN_S = 1.0


class InFlight:
    """Tasks of requests being answered, and the background tasks of the process.

    Background work that must not end begins anew `again_s` after a failure.
    """

    def __init__(self, again_s: float = _AGAIN_S) -> None:
        self._again_s = again_s
        self._requests: dict[asyncio.Task[Any], Run] = {}
        self._background: set[asyncio.Task[Any]] = set()
        self._waiters: set[asyncio.Event] = set()
        self.cutting = False

    def __len__(self) -> int:
        return len(self._requests)

    @property
    def tasks(self) -> Collection[asyncio.Task[Any]]:
        """The tasks of the requests that are being answered: a live view, whose size is always at hand."""
        return self._requests

    @property
    def runs(self) -> Collection[Run]:
        """The requests that are being answered."""
        return self._requests.values()

    def enter(self, task: asyncio.Task[Any], run: Run) -> None:
        """Count a request."""
        self._requests[task] = run

    def leave(self, task: asyncio.Task[Any]) -> None:
        """Forget a request; wakes whoever waits for none to be left."""
        self._requests.pop(task, None)
        if self._waiters and not self._requests:
            for waiter in self._waiters:
                waiter.set()

    async def wait_idle(self, timeout_s: float) -> bool:
        """Wait until no request is left; False when the time was up first."""
        if not self._requests:
            return True
        waiter = asyncio.Event()
        self._waiters.add(waiter)
        try:
            async with asyncio.timeout(timeout_s):
                await waiter.wait()
        except TimeoutError:
            return False
        finally:
            self._waiters.discard(waiter)
        return True

    def cut(self) -> None:
        """End every request that is still running: its handler tells the client honestly."""
        self.cutting = True
        for task, run in tuple(self._requests.items()):
            run.code = "draining"
            task.cancel()

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run background work until it ends or the process stops; a failure is logged, never lost."""
        task = asyncio.get_running_loop().create_task(self._guard(work, name), name=name)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        # What was cancelled before its first step would complain that nobody awaited it.
        task.add_done_callback(lambda _: work.close())
        return task

    def keep(self, work: Callable[[], Coroutine[Any, Any, None]], name: str) -> asyncio.Task[None]:
        """Run background work that must not end before the process does: after a failure it begins anew."""
        return self.spawn(self._repeat(work, name), name)

    async def _repeat(self, work: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        while True:
            await self._guard(work(), name)
            await asyncio.sleep(self._again_s)

    async def _guard(self, work: Coroutine[Any, Any, None], name: str) -> None:
        try:
            await work
        except Exception:
            _log.exception("background task %s failed", name)

    async def stop_background(self) -> None:
        """Cancel the background tasks and wait for them."""
        tasks = tuple(self._background)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
