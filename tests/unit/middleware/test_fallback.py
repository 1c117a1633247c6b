"""Which models are called, with what, and whose error comes out."""

import asyncio
from typing import Any

import pytest
from pydantic import ValidationError

from gateway.core import clock
from gateway.core.call import Call
from gateway.core.errors import CODES, GatewayError, InputError, StoreError, UpstreamError
from gateway.core.reply import Reply
from gateway.core.status import TRANSIENT, Status
from gateway.middleware.base import OptionError
from gateway.middleware.fallback.layer import Fallback
from tests.support.layer import ANSWER, Bench, Inside, call_of

DOWN = "upstream_unavailable"
Options = dict[str, Any]


def down() -> UpstreamError:
    return UpstreamError(DOWN, phase="answer")


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.mark.bug("K08")
@pytest.mark.contract("G-FALL-1", "G-FALL-2", "X-3")
@pytest.mark.parametrize("code", CODES)
async def test_each_code_falls_back_or_not(code: str, bench: Bench) -> None:
    direct = Inside([ANSWER])
    layer = bench.layer(Fallback, {"models": ["m2"]}, direct=direct)
    row = CODES[code]
    listed = {*TRANSIENT, Status.NOT_FOUND, Status.UNIMPLEMENTED}
    moves = not row.policy and row.status in listed and code != "draining"

    if moves:
        assert await layer.wrap_model(call_of(), Inside([GatewayError(code)])) is ANSWER
    else:
        with pytest.raises(GatewayError):
            await layer.wrap_model(call_of(), Inside([GatewayError(code)]))
    assert direct.models == ["m2"] * moves


@pytest.mark.contract("G-FALL-2")
@pytest.mark.parametrize(
    "error",
    [
        StoreError("state_unavailable"),
        UpstreamError("upstream_invalid_response", phase="answer"),
        InputError("invalid_request"),
    ],
)
async def test_what_is_no_models_trouble_stays(error: GatewayError, bench: Bench) -> None:
    direct = Inside([ANSWER])
    layer = bench.layer(Fallback, {"models": ["m2"]}, direct=direct)

    with pytest.raises(type(error)):
        await layer.wrap_model(call_of(), Inside([error]))
    assert direct.models == []


@pytest.mark.contract("G-13")
async def test_nobody_is_called_after_the_deadline(bench: Bench) -> None:
    call = call_of(within_s=0.05)
    direct = Inside([ANSWER])

    async def until_late(inner: Call) -> Reply:
        await asyncio.sleep(inner.run.deadline - clock.monotonic() + 0.01)
        raise UpstreamError("deadline_exceeded", phase="first_byte")

    layer = bench.layer(Fallback, {"models": ["m2"]}, direct=direct)
    with pytest.raises(UpstreamError):
        await layer.wrap_model(call, Inside([until_late]))
    assert direct.models == []


@pytest.mark.bug("K11")
@pytest.mark.contract("G-FALL-7")
async def test_no_model_sees_what_was_done_for_another(bench: Bench) -> None:
    direct = Inside([down(), ANSWER])
    entries = [{"model": "m2", "params": {"top_k": 1}}, {"model": "m3", "params": {"top_p": 0.5}}]
    layer = bench.layer(Fallback, {"models": entries}, direct=direct)
    call = call_of(temperature=0.9)

    await layer.wrap_model(call, Inside([down()]))

    own = {"model": "m1", "temperature": 0.9}
    assert direct.asked == [("m2", {**own, "top_k": 1}), ("m3", {**own, "top_p": 0.5})]
    assert {"touched", "top_k", "top_p"}.isdisjoint(call.original.fields or {})


@pytest.mark.contract("G-FALL-6")
@pytest.mark.parametrize(
    ("isolate", "sent"),
    [
        (False, {"max_tokens": 5, "seed": 1, "temperature": 0.1}),
        (True, {"max_completion_tokens": 99, "seed": 2, "temperature": 0.1}),
    ],
)
async def test_one_limit_of_tokens_is_enough(
    isolate: bool, sent: dict[str, Any], bench: Bench
) -> None:
    direct = Inside([ANSWER])
    params = {"max_completion_tokens": 99, "seed": 2, "temperature": 0.1}
    options = {"models": [{"model": "m2", "params": params}], "isolate": isolate}

    await bench.layer(Fallback, options, direct=direct).wrap_model(
        call_of(max_tokens=5, seed=1), Inside([down()])
    )

    assert direct.asked == [("m2", {"model": "m1", **sent})]


async def test_a_form_goes_on_as_it_is(bench: Bench) -> None:
    call = call_of()
    form: Any = call.original
    form.fields = None
    direct = Inside([ANSWER])
    options = {"models": [{"model": "m2", "params": {"n": 1}}]}

    await bench.layer(Fallback, options, direct=direct).wrap_model(call, Inside([down()]))

    assert direct.asked == [("m2", {})]


@pytest.mark.contract("G-FALL-8")
async def test_layers_inside_see_other_models_when_asked_to(bench: Bench) -> None:
    direct, inside = Inside([ANSWER]), Inside([down(), ANSWER])
    layer = bench.layer(Fallback, {"models": ["m2"], "through_inner": True}, direct=direct)

    await layer.wrap_model(call_of(), inside)

    assert (inside.models, direct.models) == (["m1", "m2"], [])


@pytest.mark.contract("G-FALL-4")
async def test_an_unfit_model_hides_no_error(bench: Bench) -> None:
    unfit = InputError("unsupported_model")
    first, second = down(), UpstreamError("rate_limited", phase="answer")
    for outcomes, wanted in (([unfit, unfit], first), ([second, unfit], second)):
        layer = bench.layer(Fallback, {"models": ["m2", "m3"]}, direct=Inside([*outcomes]))
        with pytest.raises(UpstreamError) as caught:
            await layer.wrap_model(call_of(), Inside([first]))
        assert caught.value is wanted
    assert bench.count("gateway_fallbacks_skipped_total") == 3


@pytest.mark.contract("G-FALL-5")
def test_a_model_that_is_not_there_names_those_that_are(bench: Bench) -> None:
    with pytest.raises(OptionError, match=r"R-22.*m1, m2, m3") as caught:
        bench.layer(Fallback, {"models": ["ghost"]})

    assert caught.value.field == "models"


@pytest.mark.parametrize("written", [{}, {"models": []}, {"models": [{"params": {"n": 1}}]}])
def test_a_fallback_to_nothing_is_refused(written: Options) -> None:
    with pytest.raises(ValidationError):
        Fallback.options.model_validate(written)


async def test_cancelling_a_slow_call_is_not_slowness(bench: Bench) -> None:
    direct = Inside([ANSWER])
    layer = bench.layer(Fallback, {"models": ["m2"], "first_content_ms": 5000}, direct=direct)

    async def hang(inner: Call) -> Reply:
        await asyncio.sleep(60)
        return ANSWER

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await layer.wrap_model(call_of(), Inside([hang]))
    assert direct.models == []


async def test_a_head_in_time_is_enough_for_the_first_byte(bench: Bench) -> None:
    direct = Inside([down()])
    layer = bench.layer(Fallback, {"models": ["m2"], "first_byte_ms": 40}, direct=direct)

    async def slow_body(inner: Call) -> Reply:
        inner.run.head_at = clock.monotonic()
        await asyncio.sleep(0.1)
        return ANSWER

    assert await layer.wrap_model(call_of(), Inside([slow_body])) is ANSWER


async def test_what_ends_a_slow_call_is_named_while_it_ends(bench: Bench) -> None:
    call = call_of()
    named: list[str] = []

    async def hang(inner: Call) -> Reply:
        try:
            await asyncio.sleep(60)
        finally:
            named.append(inner.run.code)
        return ANSWER

    layer = bench.layer(Fallback, {"models": ["m2"], "first_byte_ms": 20})
    await layer.wrap_model(call, Inside([hang]))

    assert (named, call.run.code) == (["upstream_timeout"], "")


@pytest.mark.bug("K09")
async def test_tries_that_are_spent_inside_stay_spent(bench: Bench) -> None:
    first, last = down(), down()
    first.spent, first.should_retry = True, False
    layer = bench.layer(Fallback, {"models": ["m2"]}, direct=Inside([last]))

    with pytest.raises(UpstreamError) as caught:
        await layer.wrap_model(call_of(), Inside([first]))

    assert caught.value is last
    assert (last.spent, last.should_retry) == (True, False)


async def test_a_model_left_alone_spends_nothing(bench: Bench) -> None:
    barred, last = down(), down()
    barred.spent = True
    layer = bench.layer(Fallback, {"models": ["m2"]}, direct=Inside([last]))

    with pytest.raises(UpstreamError) as caught:
        await layer.wrap_model(call_of(), Inside([barred]))

    assert (caught.value.spent, caught.value.should_retry) == (False, None)
