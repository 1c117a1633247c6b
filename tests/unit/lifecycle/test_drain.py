"""Live requests and the way out: counted, awaited, cut, however these meet."""

import asyncio
import logging

import pytest

from gateway.core.call import Run
from gateway.lifecycle.descriptors import most_connections
from gateway.lifecycle.drain import Drain, Phase
from gateway.lifecycle.inflight import InFlight

ANNOUNCE_S = 0.2


class Endless:
    """A request that ends only when it is cut, after some more turns of the loop."""

    def __init__(self, inflight: InFlight, last_words_s: float = 0.0) -> None:
        self.run = Run("req", "chat", 0.0, 0.0)
        self._inflight = inflight
        self._last_words_s = last_words_s
        self.task = asyncio.get_running_loop().create_task(self._work())
        inflight.enter(self.task, self.run)

    async def _work(self) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(self._last_words_s)
        finally:
            self._inflight.leave(self.task)


async def took(drain: Drain) -> float:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await drain.run()
    return loop.time() - began


async def test_hurried_requests_are_waited_for_only_until_they_are_gone() -> None:
    inflight = InFlight()
    drain = Drain(inflight, 30.0, ANNOUNCE_S)
    requests = [Endless(inflight, 0.05) for _ in range(3)]
    await asyncio.sleep(0)
    drain.ask()
    drain.ask()

    assert await took(drain) < 0.4
    assert len(inflight) == 0
    assert {request.run.code for request in requests} == {"draining"}


async def test_a_second_ask_is_heard_in_every_phase() -> None:
    for delay_s in (0.0, 0.1, 0.25, 0.4):
        inflight = InFlight()
        drain = Drain(inflight, 30.0, ANNOUNCE_S)
        Endless(inflight)
        await asyncio.sleep(0)
        drain.ask()
        asyncio.get_running_loop().call_later(delay_s, drain.ask)
        assert await took(drain) < delay_s + 0.3


async def test_a_request_that_does_not_end_when_cut_holds_nobody_up_for_long() -> None:
    inflight = InFlight()
    drain = Drain(inflight, 0.1, ANNOUNCE_S)
    stubborn = Endless(inflight, 20.0)
    await asyncio.sleep(0)
    drain.ask()

    assert await took(drain) < ANNOUNCE_S + 0.1 + 0.5 + 0.3
    assert len(inflight) == 1
    stubborn.task.cancel()
    await asyncio.gather(stubborn.task, return_exceptions=True)


async def test_two_may_wait_for_the_last_request() -> None:
    inflight = InFlight()
    request = Endless(inflight)
    await asyncio.sleep(0)
    gives_up = asyncio.ensure_future(inflight.wait_idle(30))
    waits = asyncio.ensure_future(inflight.wait_idle(30))
    await asyncio.sleep(0)
    gives_up.cancel()
    await asyncio.sleep(0)
    request.task.cancel()

    assert await asyncio.wait_for(waits, 1.0) is True
    with pytest.raises(asyncio.CancelledError):
        await gives_up


async def test_what_remains_after_draining_gets_the_rest_of_the_time() -> None:
    drain = Drain(InFlight(), 0.2, ANNOUNCE_S)
    drain.ask()
    await drain.run()
    assert drain.phase is Phase.REFUSING
    done: list[str] = []

    async def work(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        done.append(name)

    await drain.finish(work("short", 0.05))
    await drain.finish(work("endless", 60))
    assert done == ["short"]


async def test_background_work_begins_anew_after_a_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    inflight = InFlight(again_s=0.01)
    tries = 0
    works = asyncio.Event()

    async def fails_twice() -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise KeyError("broken")
        works.set()
        await asyncio.sleep(60)

    with caplog.at_level(logging.ERROR, "gateway"):
        inflight.keep(fails_twice, "follower")
        await asyncio.wait_for(works.wait(), 2)
    await asyncio.wait_for(inflight.stop_background(), 1)

    assert tries == 3
    assert caplog.text.count("background task follower failed") == 2


@pytest.mark.parametrize(
    ("descriptors", "connections"), [(64, 8), (256, 104), (1024, 488), (1 << 20, 524_264)]
)
def test_half_of_the_descriptors_are_for_clients(descriptors: int, connections: int) -> None:
    assert most_connections(descriptors) == connections
