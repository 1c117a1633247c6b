"""Which of two calls answers, and what becomes of the other."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from gateway.core.call import Call
from gateway.core.errors import GatewayError, UpstreamError
from gateway.core.latency import Latencies, Latency
from gateway.core.reply import Reply
from gateway.middleware.hedge import HEDGED, Hedge
from tests.support.layer import ANSWER, Bench, Inside, Open, call_of


@pytest.fixture
def bench() -> Bench:
    return Bench()


class Slow:
    """A call that answers after a while; tells under which name it was ended."""

    def __init__(self, reply: Reply | GatewayError, delay_s: float) -> None:
        self.ended = ""
        self._reply = reply
        self._delay_s = delay_s

    async def __call__(self, call: Call) -> Reply:
        try:
            await asyncio.sleep(self._delay_s)
        except asyncio.CancelledError:
            self.ended = call.run.code or "left"
            raise
        if isinstance(self._reply, GatewayError):
            raise self._reply
        return self._reply


def failure() -> UpstreamError:
    return UpstreamError("upstream_unavailable", phase="answer")


@pytest.mark.bug("K05")
@pytest.mark.parametrize("first_wins", [True, False])
async def test_the_loser_is_ended_under_its_own_name(first_wins: bool, bench: Bench) -> None:
    winning, losing = Open(), Open()
    quick, slow = Slow(winning, 0.08 if first_wins else 0.01), Slow(losing, 30)
    inside = Inside([quick, slow] if first_wins else [slow, quick])
    call = call_of()

    reply = await bench.layer(Hedge, {"after_ms": 20}).wrap_model(call, inside)

    assert reply is winning
    assert not winning.closed
    assert (slow.ended, call.run.code) == (HEDGED, "")


@pytest.mark.bug("K05")
async def test_an_answer_that_came_at_the_same_moment_is_closed(bench: Bench) -> None:
    gates = [asyncio.Event(), asyncio.Event()]
    streams = [Open(), Open()]

    def waiting(gate: asyncio.Event, stream: Open) -> Callable[[Call], Awaitable[Reply]]:
        async def wait(call: Call) -> Reply:
            await gate.wait()
            return stream

        return wait

    def open_both() -> None:
        for gate in reversed(gates):  # the second call is over a step before the first
            gate.set()

    inside = Inside([waiting(*each) for each in zip(gates, streams, strict=True)])
    asyncio.get_running_loop().call_later(0.1, open_both)

    reply = await bench.layer(Hedge, {"after_ms": 20}).wrap_model(call_of(), inside)

    assert reply is streams[0]
    assert [stream.closed for stream in streams] == [False, True]


@pytest.mark.bug("K05")
async def test_who_leaves_as_the_second_answers_leaves_nothing_open(bench: Bench) -> None:
    gate, stream = asyncio.Event(), Open()

    async def wait(call: Call) -> Reply:
        await gate.wait()
        return stream

    layer = bench.layer(Hedge, {"after_ms": 20})
    task = asyncio.ensure_future(layer.wrap_model(call_of(), Inside([Slow(ANSWER, 30), wait])))
    await asyncio.sleep(0.1)
    gate.set()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert stream.closed


@pytest.mark.bug("K05")
async def test_who_leaves_ends_both(bench: Bench) -> None:
    arms = [Slow(ANSWER, 30), Slow(ANSWER, 30)]

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await bench.layer(Hedge, {"after_ms": 20}).wrap_model(call_of(), Inside([*arms]))

    assert [arm.ended for arm in arms] == ["left", "left"]


async def test_a_failure_is_not_hedged_and_not_hidden(bench: Bench) -> None:
    error = failure()
    inside = Inside([error])

    with pytest.raises(UpstreamError) as caught:
        await bench.layer(Hedge, {"after_ms": 50}).wrap_model(call_of(), inside)

    assert caught.value is error
    assert len(inside.asked) == 1


@pytest.mark.bug("K11")
async def test_both_calls_get_what_the_caller_sent(bench: Bench) -> None:
    call = call_of(temperature=0.5)
    inside = Inside([Slow(ANSWER, 30), Slow(ANSWER, 0.01)])

    await bench.layer(Hedge, {"after_ms": 10}).wrap_model(call, inside)

    assert inside.asked == [("m1", {"model": "m1", "temperature": 0.5})] * 2
    assert call.get("touched") is None


@pytest.mark.parametrize("endpoint", ["images", "audio", "moderations"])
async def test_only_answers_in_words_are_worth_two_calls(endpoint: str, bench: Bench) -> None:
    call = call_of()
    call.run.endpoint = endpoint
    inside = Inside([Slow(ANSWER, 0.1)])

    await bench.layer(Hedge, {"after_ms": 10}).wrap_model(call, inside)

    assert len(inside.asked) == 1


@pytest.mark.parametrize("field", ["tools", "functions"])
async def test_what_may_act_is_called_once(field: str, bench: Bench) -> None:
    call = call_of()
    call.set(field, ["f"])
    inside = Inside([Slow(ANSWER, 0.1)])

    await bench.layer(Hedge, {"after_ms": 10}).wrap_model(call, inside)

    assert len(inside.asked) == 1


async def test_a_fault_in_a_layer_is_no_answer(bench: Bench) -> None:
    async def broken(call: Call) -> Reply:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await bench.layer(Hedge, {"after_ms": 10}).wrap_model(call_of(), Inside([broken]))


async def test_a_fault_of_the_second_call_takes_no_answer_away(bench: Bench) -> None:
    async def broken(call: Call) -> Reply:
        raise ZeroDivisionError

    inside = Inside([Slow(ANSWER, 0.05), broken])

    assert await bench.layer(Hedge, {"after_ms": 10}).wrap_model(call_of(), inside) is ANSWER


async def test_an_answer_at_hand_needs_no_task(bench: Bench) -> None:
    before = asyncio.all_tasks()
    during: list[set[asyncio.Task[object]]] = []

    async def at_once(call: Call) -> Reply:
        during.append(asyncio.all_tasks())
        return ANSWER

    reply = await bench.layer(Hedge, {"after_ms": 10}).wrap_model(call_of(), at_once)

    assert reply is ANSWER
    assert during == [before]


@pytest.mark.parametrize("after", [0, -1, "p99", True])
def test_a_time_that_means_nothing_is_refused(after: object) -> None:
    with pytest.raises(ValidationError):
        Hedge.options.model_validate({"after_ms": after})


def test_too_few_calls_tell_nothing() -> None:
    latency = Latency()
    for _ in range(19):
        latency.observe(1.0)

    assert latency.p95_s() is None


@given(st.lists(st.floats(0, 100), min_size=20, max_size=300))
def test_hardly_any_call_was_slower(times_s: list[float]) -> None:
    latency = Latency()
    for time_s in times_s:
        latency.observe(time_s)
    kept = times_s[-200:]

    p95_s = latency.p95_s()

    assert p95_s is not None
    assert sum(time_s > p95_s for time_s in kept) <= 0.05 * len(kept)
    assert sum(time_s < p95_s for time_s in kept) <= 0.95 * len(kept)


def test_streams_and_whole_answers_are_told_apart() -> None:
    latencies = Latencies()

    assert latencies.of("m", stream=True) is latencies.of("m", stream=True)
    assert latencies.of("m", stream=True) is not latencies.of("m", stream=False)
