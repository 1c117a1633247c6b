"""The border to foreign hooks: whether they wait or not, they end in order and within the deadline."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from gateway.chain.border import bounded
from gateway.core import clock
from gateway.core.call import Call, Run
from gateway.core.errors import GatewayError
from gateway.core.reply import Whole
from gateway.testing.runner import Model, Original

REPLY = Whole(200, (), b"{}")
Hook = Callable[[Call], Awaitable[Whole | None]]


def call_within(seconds: float) -> Call:
    run = Run("req_1", "chat", clock.monotonic(), clock.monotonic() + seconds)
    return Call(run, Model("m"), Original({}))


@pytest.mark.parametrize("waits", [0, 1, 2, 7])
async def test_a_hook_returns_what_it_returns_however_often_it_waits(waits: int) -> None:
    async def hook(call: Call) -> Whole:
        for _ in range(waits):
            await asyncio.sleep(0)
        return REPLY

    assert await bounded("mine", "before", hook)(call_within(5)) is REPLY


async def test_what_a_hook_waits_for_may_fail_and_be_caught_by_it() -> None:
    async def hook(call: Call) -> Whole:
        for _ in range(2):
            waited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_soon(waited.set_exception, OSError())
            with pytest.raises(OSError):
                await waited
        return REPLY

    assert await bounded("mine", "before", hook)(call_within(5)) is REPLY


@pytest.mark.parametrize("waits", [0, 2])
async def test_a_hook_that_takes_too_long_is_ended_at_the_deadline(waits: int) -> None:
    ended: list[str] = []

    async def hook(call: Call) -> None:
        for _ in range(waits):
            await asyncio.sleep(0)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("in order")

    with pytest.raises(GatewayError) as caught:
        await bounded("mine", "before", hook)(call_within(0.02))

    assert caught.value.code == "deadline_exceeded"
    assert ended == ["in order"]


@pytest.mark.parametrize("waits", [0, 1])
async def test_a_timeout_of_its_own_is_a_failure_of_the_hook(waits: int) -> None:
    async def hook(call: Call) -> None:
        for _ in range(waits):
            await asyncio.sleep(0)
        raise TimeoutError

    with pytest.raises(GatewayError) as caught:
        await bounded("mine", "before", hook)(call_within(5))

    assert caught.value.code == "internal"
    assert (caught.value.detail or "").startswith("mine: TimeoutError")


@pytest.mark.parametrize("waits", [1, 3])
async def test_a_cancelled_request_ends_the_hook(waits: int) -> None:
    ended: list[str] = []

    async def hook(call: Call) -> None:
        try:
            for _ in range(waits - 1):
                await asyncio.sleep(0)
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    task = asyncio.ensure_future(bounded("mine", "before", hook)(call_within(5)))
    for _ in range(waits + 1):
        await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["cancelled"]
