"""Deadlines that measure how long a server is silent, not how long this process is busy."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

_STEPS: Final = 8


@asynccontextmanager
async def patience(seconds: float) -> AsyncGenerator[None]:
    """Bound some work as `asyncio.timeout` does, by time in which the loop could do it.

    The time is counted in steps, each of them no longer than it should be however late the loop comes to it: what
    has arrived meanwhile is looked at before anybody is given up.
    """
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as limit:
        left = _STEPS

        def step() -> None:
            nonlocal left, timer
            left -= 1
            if left:
                timer = loop.call_later(seconds / _STEPS, step)
            else:
                limit.reschedule(loop.time())

        timer = loop.call_later(seconds / _STEPS, step)
        try:
            yield
        finally:
            timer.cancel()
