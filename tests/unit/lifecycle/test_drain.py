import asyncio

from gateway.core import clock
from gateway.lifecycle.drain import Drain, Phase
from gateway.lifecycle.inflight import InFlight

LONG_S = 60.0
SHORT_S = 0.05


async def test_leaving_is_announced_as_long_as_it_was_set() -> None:
    drain = Drain(InFlight(), LONG_S, SHORT_S)
    began = clock.monotonic()

    running = asyncio.ensure_future(drain.run())
    await asyncio.sleep(0)
    assert (drain.ready, drain.refusing) == (False, False)
    await running

    assert drain.refusing
    assert SHORT_S * 0.9 <= clock.monotonic() - began < LONG_S


async def test_without_an_announcement_requests_are_refused_at_once() -> None:
    drain = Drain(InFlight(), LONG_S, 0)

    await asyncio.wait_for(drain.run(), LONG_S / 10)

    assert drain.phase is Phase.REFUSING


async def test_a_second_signal_skips_the_announcement() -> None:
    drain = Drain(InFlight(), LONG_S, LONG_S)

    drain.ask()
    running = asyncio.ensure_future(drain.run())
    await asyncio.sleep(0)
    assert drain.phase is Phase.LEAVING
    drain.ask()
    await asyncio.wait_for(running, LONG_S / 10)

    assert drain.refusing
