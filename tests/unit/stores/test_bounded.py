"""Work behind a caller who cannot wait: in time or refused, at once while nothing ends in time."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from gateway.core.errors import StoreError
from gateway.stores.postgres.bounded import REST_S, STRIKES, Bounded
from tests.support.outgoing import Background

Call = Callable[[], Coroutine[Any, Any, str]]


async def answered() -> str:
    return "answer"


async def failed() -> str:
    raise StoreError("state_unavailable", detail="it said no")


async def test_an_answer_and_a_failure_are_those_of_the_work() -> None:
    background = Background()
    bounded = Bounded(background.spawn)

    assert await bounded.run(answered, 1.0, at_once=True) == "answer"
    for _ in range(2 * STRIKES):
        with pytest.raises(StoreError) as caught:
            await bounded.run(failed, 1.0, at_once=True)
        assert caught.value.detail == "it said no"
    assert await bounded.run(answered, 1.0, at_once=True) == "answer"
    await background.join()


@pytest.mark.bug("K23", "K38")
async def test_late_work_goes_on_behind_and_others_do_not_pile_up() -> None:
    background = Background()
    bounded = Bounded(background.spawn)
    gate, started = asyncio.Event(), 0

    async def late() -> str:
        nonlocal started
        started += 1
        await gate.wait()
        return "late"

    for _ in range(20):
        with pytest.raises(StoreError):
            await bounded.run(late, 0.005, at_once=True)
    assert started == STRIKES
    await asyncio.sleep(REST_S)
    for _ in range(5):
        with pytest.raises(StoreError):
            await bounded.run(late, 0.005, at_once=True)
    assert started == STRIKES + 1, "one tries"

    gate.set()
    await background.join()
    await asyncio.sleep(REST_S)
    assert await bounded.run(answered, 1.0, at_once=True) == "answer"
    assert await bounded.run(late, 1.0, at_once=True) == "late"
    assert started == STRIKES + 2


async def test_work_that_is_cancelled_refuses_who_waits() -> None:
    background = Background()
    bounded = Bounded(background.spawn)

    async def stopped() -> str:
        raise asyncio.CancelledError

    with pytest.raises(StoreError):
        await bounded.run(stopped, 1.0, at_once=True)
