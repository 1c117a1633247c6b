"""Background work ends with the process, whether it had begun or not."""

import asyncio
import gc

from gateway.lifecycle.inflight import InFlight


async def test_work_that_never_began_ends_without_a_word() -> None:
    inflight = InFlight()
    begun: list[str] = []

    async def work() -> None:
        begun.append("work")
        await asyncio.Event().wait()

    inflight.spawn(work(), "once")
    inflight.keep(work, "again")
    await inflight.stop_background()
    gc.collect()  # an unawaited coroutine would warn here, and warnings are errors

    assert not begun


async def test_work_that_has_begun_is_ended_too() -> None:
    inflight = InFlight()
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    inflight.spawn(work(), "once")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await inflight.stop_background()

    assert ended.is_set()
