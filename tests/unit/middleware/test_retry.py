"""When a call is made again, and when not."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from gateway.core import clock
from gateway.core.call import Call
from gateway.core.errors import CODES, GatewayError, InputError, StoreError, UpstreamError
from gateway.core.repeats import Backoff, RepeatBudget
from gateway.core.reply import Reply
from gateway.core.status import TRANSIENT, Status
from gateway.middleware.base import Middleware
from gateway.middleware.fallback.layer import Fallback
from gateway.middleware.retry import Retry
from tests.support.layer import ANSWER, Bench, Inside, Open, call_of

DOWN = "upstream_unavailable"


def down(retry_after_s: float | None = None) -> UpstreamError:
    return UpstreamError(DOWN, phase="answer", retry_after_s=retry_after_s)


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.mark.contract("G-RETRY-2")
def test_the_usual_options_are_those_of_the_contract() -> None:
    options = Retry.options.model_validate({})

    assert options.model_dump() == {
        "max_retries": 3,
        "initial_delay_ms": 1000,
        "max_delay_ms": 60_000,
        "backoff_factor": 2,
        "jitter": "full",
        "statuses": TRANSIENT,
        "honor_retry_after": True,
        "budget_ratio": 0.1,
        "deadline_ms": None,
        "stream_commit": "first_content",
    }


@pytest.mark.contract("G-REG-2")
@pytest.mark.parametrize("kind", [Retry, Fallback])
def test_every_status_may_be_listed(kind: type[Middleware]) -> None:
    schema = kind.options.model_json_schema()

    assert len(schema["$defs"]["Status"]["enum"]) == 17
    options = kind.options.model_validate({"statuses": [*Status], **_USUAL[kind]})
    assert options.model_dump()["statuses"] == tuple(Status)


_USUAL: dict[type[Middleware], dict[str, object]] = {Retry: {}, Fallback: {"models": ["m"]}}


@pytest.mark.parametrize(
    "written",
    [
        {"max_retries": -1},
        {"statuses": ["GONE"]},
        {"jitter": "some"},
        {"deadline_ms": 0},
        {"unknown": 1},
    ],
)
def test_options_that_mean_nothing_are_refused(written: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Retry.options.model_validate(written)


@pytest.mark.bug("K08")
@pytest.mark.contract("G-RETRY-9", "X-3")
@pytest.mark.parametrize("code", CODES)
async def test_each_code_is_tried_again_or_not(code: str, bench: Bench) -> None:
    layer = bench.layer(Retry, {"initial_delay_ms": 0, "max_retries": 1})
    inside = Inside([GatewayError(code), ANSWER])
    row = CODES[code]
    again = not row.policy and row.status in TRANSIENT and code != "draining"

    if again:
        assert await layer.wrap_model(call_of(), inside) is ANSWER
    else:
        with pytest.raises(GatewayError):
            await layer.wrap_model(call_of(), inside)
    assert len(inside.asked) == 1 + again


@pytest.mark.parametrize("error", [StoreError("state_unavailable"), InputError("invalid_request")])
async def test_what_the_gateway_itself_refuses_is_final(error: GatewayError, bench: Bench) -> None:
    inside = Inside([error])

    with pytest.raises(GatewayError):
        await bench.layer(Retry).wrap_model(call_of(), inside)
    assert len(inside.asked) == 1


@pytest.mark.contract("G-RETRY-4", "G-STAT-8")
@pytest.mark.parametrize(
    ("error", "calls"),
    [
        (UpstreamError(DOWN, phase="connect", sent=False), 2),
        (UpstreamError("upstream_timeout", phase="first_byte"), 2),
        (UpstreamError("upstream_truncated", phase="body"), 2),
        (UpstreamError("upstream_invalid_response", phase="answer"), 2),
        (UpstreamError("deadline_exceeded", phase="first_byte"), 1),
        (UpstreamError(DOWN, phase="answer"), 1),
    ],
)
async def test_connections_and_what_nobody_can_classify_need_no_list(
    error: UpstreamError, calls: int, bench: Bench
) -> None:
    layer = bench.layer(Retry, {"initial_delay_ms": 0, "max_retries": 1, "statuses": []})
    inside = Inside([error])

    with pytest.raises(UpstreamError):
        await layer.wrap_model(call_of(), inside)
    assert len(inside.asked) == calls


async def test_money_that_is_out_does_not_come_back_in_a_minute(bench: Bench) -> None:
    error = UpstreamError("rate_limited", phase="answer")
    error.reason = "quota"
    inside = Inside([error])

    with pytest.raises(UpstreamError):
        await bench.layer(Retry).wrap_model(call_of(), inside)
    assert len(inside.asked) == 1


@pytest.mark.bug("K09")
async def test_what_was_given_up_inside_is_not_begun_again(bench: Bench) -> None:
    error = down()
    error.spent = True
    inside = Inside([error])

    with pytest.raises(UpstreamError):
        await bench.layer(Retry).wrap_model(call_of(), inside)
    assert len(inside.asked) == 1


@pytest.mark.contract("G-13")
async def test_a_wait_past_the_deadline_is_not_begun(bench: Bench) -> None:
    call = call_of(within_s=0.5)
    inside = Inside([down()])
    layer = bench.layer(Retry, {"initial_delay_ms": 1000, "jitter": "none"})

    with pytest.raises(UpstreamError):
        await layer.wrap_model(call, inside)

    assert len(inside.asked) == 1
    assert clock.monotonic() < call.run.deadline


@pytest.mark.bug("K11")
@pytest.mark.contract("T-066")
async def test_every_try_gets_the_call_as_it_came(bench: Bench) -> None:
    layer = bench.layer(Retry, {"initial_delay_ms": 0})
    inside = Inside([down(), down(), ANSWER])
    call = call_of(temperature=0.5)

    await layer.wrap_model(call, inside)

    assert [fields for _, fields in inside.asked] == [{"model": "m1", "temperature": 0.5}] * 3
    assert call.get("touched") is None


async def test_an_open_stream_is_never_replaced(bench: Bench) -> None:
    stream = Open()
    inside = Inside([down(), stream])

    reply = await bench.layer(Retry, {"initial_delay_ms": 0}).wrap_model(call_of(), inside)

    assert reply is stream
    assert not stream.closed


@pytest.mark.contract("G-RETRY-8")
async def test_leaving_during_a_wait_is_a_cancellation_with_the_error_kept(bench: Bench) -> None:
    call = call_of()
    inside = Inside([down()])
    layer = bench.layer(Retry, {"initial_delay_ms": 60_000, "jitter": "none"})
    call.run.deadline += 600

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await layer.wrap_model(call, inside)

    assert len(inside.asked) == 1
    assert DOWN in call.run.detail


@pytest.mark.contract("G-RETRY-7")
@pytest.mark.parametrize(
    ("honor", "wished_s", "calls", "withheld"), [(True, 90, 1, 1), (False, 90, 2, 0)]
)
async def test_a_wish_may_be_too_long_or_not_be_heard(
    honor: bool, wished_s: float, calls: int, withheld: int, bench: Bench
) -> None:
    layer = bench.layer(Retry, {"initial_delay_ms": 0, "honor_retry_after": honor})
    inside = Inside([down(retry_after_s=wished_s), ANSWER])

    if withheld:
        with pytest.raises(UpstreamError) as caught:
            await layer.wrap_model(call_of(within_s=600), inside)
        assert (caught.value.should_retry, caught.value.spent) == (False, True)
        assert caught.value.retry_after_s == wished_s
    else:
        await layer.wrap_model(call_of(within_s=600), inside)
    assert len(inside.asked) == calls
    assert bench.count("gateway_retries_withheld_total") == withheld


@pytest.mark.contract("G-RETRY-12")
async def test_its_own_deadline_is_given_back(bench: Bench) -> None:
    call = call_of(within_s=600)
    before = call.run.deadline
    seen: list[float] = []

    async def note(inner: Call) -> Reply:
        seen.append(inner.run.deadline)
        return ANSWER

    layer = bench.layer(Retry, {"deadline_ms": 500})
    await layer.wrap_model(call, Inside([note]))

    assert seen[0] == pytest.approx(call.run.started + 0.5, abs=0.1)
    assert call.run.deadline == before


@pytest.mark.parametrize(
    ("options", "shadow", "hold", "complete"),
    [
        ({}, False, True, False),
        ({"stream_commit": "complete"}, False, False, True),
        ({"max_retries": 0}, False, False, False),
        ({}, True, False, False),
    ],
)
def test_it_holds_streams_back_only_where_it_may_act(
    options: dict[str, object], shadow: bool, hold: bool, complete: bool, bench: Bench
) -> None:
    needs = bench.layer(Retry, options, shadow=shadow).needs

    assert (needs.hold, needs.complete) == (hold, complete)


@given(
    st.integers(0, 20),
    st.floats(0, 60),
    st.floats(0, 60),
    st.floats(1, 100),
    st.sampled_from(["full", "additive", "none"]),
    st.floats(0, 60),
)
def test_a_delay_is_between_floor_and_cap(
    repeats: int, initial_s: float, max_s: float, factor: float, jitter: str, floor_s: float
) -> None:
    delay_s = Backoff(initial_s, max_s, factor, jitter).delay_s(repeats, floor_s)

    assert min(floor_s, max_s) <= delay_s <= max_s


@pytest.mark.contract("G-RETRY-6")
def test_full_jitter_uses_the_whole_range() -> None:
    backoff = Backoff(1.0, 60.0, 2.0, "full")
    delays = [backoff.delay_s(2) for _ in range(300)]

    assert min(delays) < 1.0
    assert 3.0 < max(delays) <= 4.0


def test_those_who_were_given_one_moment_do_not_all_come_at_it() -> None:
    backoff = Backoff(0.1, 60.0, 2.0, "full")

    assert len({backoff.delay_s(0, 20.0) for _ in range(50)}) > 40


@pytest.mark.contract("G-11")
@given(st.lists(st.tuples(st.floats(0, 0.5), st.booleans()), max_size=400), st.floats(0, 1))
def test_repeats_stay_below_their_share_of_any_ten_seconds(
    steps: list[tuple[float, bool]], ratio: float
) -> None:
    budget, now = RepeatBudget(), 1000.0
    calls: list[float] = []
    repeats: list[float] = []
    for pause_s, fails in steps:
        now += pause_s
        budget.call(now)
        calls.append(now)
        if fails and budget.take(now, ratio):
            repeats.append(now)
        recent = [at for at in repeats if at > now - 9]
        assert len(recent) <= max(10, ratio * len([at for at in calls if at > now - 11]))


def test_a_budget_forgets() -> None:
    budget = RepeatBudget()
    assert sum(budget.take(5.0, 0.1) for _ in range(20)) == 10
    assert not budget.take(14.9, 0.1)
    assert budget.take(15.0, 0.1)
    assert budget.take(1e6, 0.1)


@pytest.mark.contract("G-11")
async def test_one_budget_serves_all_chains_of_a_model(bench: Bench) -> None:
    async def fail(inner: Call) -> Reply:
        raise down()

    options = {"initial_delay_ms": 0, "max_retries": 1}
    layers = [bench.layer(Retry, options) for _ in range(3)]
    inside = Inside([fail])

    for layer in layers * 10:
        with pytest.raises(UpstreamError):
            await layer.wrap_model(call_of(), inside)

    assert len(inside.asked) == 40
    with pytest.raises(UpstreamError):
        await layers[0].wrap_model(call_of("m2"), inside)
    assert len(inside.asked) == 42
