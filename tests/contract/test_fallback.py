"""Fallback as a caller and the providers see it (T-057 to T-068)."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gateway.config.errors import ConfigError
from tests.support.models import (
    GARBAGE,
    HANG,
    RESET,
    Step,
    ask,
    chained,
    cut,
    refuse,
    said,
    texts,
)
from tests.support.scripted_upstream import until

QUICK: Mapping[str, Any] = {"initial_delay_ms": 1, "jitter": "none"}
Chain = list[dict[str, Any]]
CONTEXT = refuse(400, b'{"error":{"message":"too long","code":"context_length_exceeded"}}')
POLICY = refuse(400, b'{"error":{"message":"no","code":"content_policy_violation"}}')


def fallback(*models: object, **options: object) -> Chain:
    """Return a chain of one fallback; to m2 when nothing is said."""
    return [{"fallback": {"models": list(models or ("m2",)), **options}}]


@pytest.mark.contract("G-FALL-1", "T-057")
async def test_a_healthy_model_is_the_only_one_called(tmp_path: Path) -> None:
    async with chained(tmp_path, fallback(), m1=[said()], m2=[said()]) as (gateway, models):
        answer = await gateway.post(ask())

    assert (answer.status_code, models.order) == (200, ["m1"])
    assert "x-gateway-warnings" not in answer.headers


@pytest.mark.fault("U-5")
@pytest.mark.contract("G-FALL-1", "G-FALL-10", "G-FALL-12", "T-058")
async def test_the_model_that_answered_is_named_everywhere(tmp_path: Path) -> None:
    chain = fallback("m2", "m3")
    async with chained(tmp_path, chain, m1=[refuse(503)], m2=[refuse(429)], m3=[said()]) as (
        gateway,
        models,
    ):
        answer = await gateway.post(ask())
        await until(gateway.records)
        [record] = gateway.records()
        moved = [
            gateway.count("gateway_fallbacks_total", **{"from": before, "to": after})
            for before, after in (("m1", "m2"), ("m2", "m3"))
        ]

    assert models.order == ["m1", "m2", "m3"]
    assert answer.headers["x-gateway-model"] == "up/m3"
    assert answer.headers["x-gateway-attempts"] == "3"
    assert answer.json()["model"] == "m3"
    assert "m3 answered after m1 had failed" in answer.headers["x-gateway-warnings"]
    assert (record["model"], record["target_model"]) == ("m1", "m3")
    assert moved == [1, 1]


@pytest.mark.contract("G-FALL-1", "T-059", "T-061", "G-STAT-8")
@pytest.mark.parametrize("failure", [refuse(404), refuse(501), refuse(529), refuse(408), RESET])
async def test_what_may_be_this_models_trouble_falls_back(failure: Step, tmp_path: Path) -> None:
    async with chained(tmp_path, fallback(), m1=[failure], m2=[said()]) as (gateway, models):
        answer = await gateway.post(ask())

    assert (answer.status_code, models.order) == (200, ["m1", "m2"])


@pytest.mark.contract("G-FALL-2", "T-060", "G-STAT-3")
@pytest.mark.parametrize(
    ("failure", "status"), [(GARBAGE, 502), (refuse(400), 400), (refuse(401), 502)]
)
async def test_what_is_not_this_models_trouble_does_not(
    failure: Step, status: int, tmp_path: Path
) -> None:
    async with chained(tmp_path, fallback(), m1=[failure], m2=[said()]) as (gateway, models):
        answer = await gateway.post(ask())

    assert (answer.status_code, models.order) == (status, ["m1"])


@pytest.mark.contract("G-FALL-3", "T-062")
async def test_an_error_off_the_list_from_a_target_ends_the_cascade(tmp_path: Path) -> None:
    chain = fallback("m2", "m3")
    async with chained(tmp_path, chain, m1=[refuse(503)], m2=[refuse(400)], m3=[said()]) as (
        gateway,
        models,
    ):
        answer = await gateway.post(ask())

    assert (answer.status_code, models.n("m3")) == (400, 0)


@pytest.mark.contract("G-FALL-4", "T-063")
async def test_when_all_fail_the_last_error_is_the_answer(tmp_path: Path) -> None:
    async with chained(tmp_path, fallback(), m1=[refuse(503)], m2=[refuse(429)]) as (gateway, _):
        answer = await gateway.post(ask())

    assert answer.status_code == 429


@pytest.mark.bug("K11")
@pytest.mark.contract("G-FALL-7", "T-066", "G-FALL-9", "T-067", "G-FALL-8")
async def test_a_retry_around_it_repeats_the_whole_cascade_from_the_original(
    tmp_path: Path,
) -> None:
    target = {"model": "m2", "params": {"top_k": 3}}
    chain = [{"retry": {**QUICK, "max_retries": 2}}, *fallback(target, isolate=True)]
    async with chained(tmp_path, chain, m1=[refuse(503)], m2=[refuse(503)]) as (gateway, models):
        answer = await gateway.post(ask(temperature=0.9))

    assert models.order == ["m1", "m2"] * 3
    assert len({asked.request.body for asked in models.asked[::2]}) == 1
    assert answer.headers["x-should-retry"] == "false"


@pytest.mark.bug("K09")
@pytest.mark.contract("G-FALL-8")
@pytest.mark.parametrize(
    ("through", "order"),
    [(False, ["m1", "m1", "m2"]), (True, ["m1", "m1", "m2", "m2"])],
)
async def test_layers_inside_are_for_the_first_model_unless_said_otherwise(
    through: bool, order: list[str], tmp_path: Path
) -> None:
    chain = [*fallback(through_inner=through), {"retry": {**QUICK, "max_retries": 1}}]
    async with chained(tmp_path, chain, m1=[refuse(503)], m2=[refuse(503)]) as (gateway, models):
        answer = await gateway.post(ask())

    assert models.order == order
    assert answer.headers["x-should-retry"] == "false"


@pytest.mark.bug("K09")
async def test_a_retry_outside_does_not_multiply_one_inside(tmp_path: Path) -> None:
    inner = {"retry": {**QUICK, "id": "inner", "max_retries": 1}}
    chain = [{"retry": dict(QUICK)}, *fallback(), inner]
    async with chained(tmp_path, chain, m1=[refuse(503)], m2=[refuse(503)]) as (gateway, models):
        await gateway.post(ask())

    assert models.order == ["m1", "m1", "m2"]


@pytest.mark.fault("U-3")
@pytest.mark.bug("K09")
async def test_a_wish_that_is_too_long_falls_back_at_once(tmp_path: Path) -> None:
    chain = [*fallback(), {"retry": dict(QUICK)}]
    steps = [refuse(429, retry_after="31536000")]
    loop = asyncio.get_running_loop()
    async with chained(tmp_path, chain, m1=steps, m2=[said()]) as (gateway, models):
        began = loop.time()
        answer = await gateway.post(ask())

    assert (answer.status_code, models.order) == (200, ["m1", "m2"])
    assert loop.time() - began < 1


@pytest.mark.bug("K05")
@pytest.mark.contract("T-068", "G-FALL-2")
async def test_who_leaves_starts_no_fallback(tmp_path: Path) -> None:
    async with chained(tmp_path, fallback(), m1=[HANG], m2=[said()]) as (gateway, models):
        with pytest.raises(httpx2.TimeoutException):
            await gateway.client.post(
                "/v1/chat/completions", json=ask(), timeout=httpx2.Timeout(0.2)
            )
        await until(lambda: not gateway.running)

    assert models.order == ["m1"]


@pytest.mark.bug("K08")
@pytest.mark.parametrize(
    ("failure", "options", "order"),
    [
        (CONTEXT, {}, ["m1", "m2"]),
        (CONTEXT, {"on_context_window": False}, ["m1"]),
        (POLICY, {}, ["m1"]),
        (POLICY, {"on_content_policy": True}, ["m1", "m2"]),
    ],
)
async def test_what_the_request_holds_may_be_a_reason(
    failure: Step, options: dict[str, Any], order: list[str], tmp_path: Path
) -> None:
    async with chained(tmp_path, fallback(**options), m1=[failure], m2=[said()]) as (
        gateway,
        models,
    ):
        await gateway.post(ask())

    assert models.order == order


@pytest.mark.bug("K10")
@pytest.mark.contract("G-FALL-11", "G-STR-8")
@pytest.mark.parametrize(
    ("failure", "options", "order", "text"),
    [
        (refuse(503), {}, ["m1", "m2"], "from m2"),
        (cut(-1), {}, ["m1", "m2"], "from m2"),
        (cut(2), {}, ["m1"], "one two"),
        (cut(2), {"stream_commit": "complete"}, ["m1", "m2"], "from m2"),
    ],
)
async def test_a_stream_is_replaced_until_it_has_begun(
    failure: Step, options: dict[str, Any], order: list[str], text: str, tmp_path: Path
) -> None:
    async with chained(tmp_path, fallback(**options), m1=[failure], m2=[said("from m2")]) as (
        gateway,
        models,
    ):
        answer = await gateway.post(ask(stream=True))

    assert (models.order, texts(answer.text)) == (order, text)
    assert answer.text.count('"role"') == 1


@pytest.mark.bug("K13")
@pytest.mark.parametrize("option", ["first_byte_ms", "first_content_ms"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_model_that_is_slow_to_begin_is_replaced(
    option: str, stream: bool, tmp_path: Path
) -> None:
    chain = fallback(**{option: 300})
    async with chained(tmp_path, chain, m1=[HANG], m2=[said("quick")]) as (gateway, models):
        answer = await gateway.post(ask(stream=stream))
        timeouts = gateway.count("gateway_upstream_attempts_total", outcome="upstream_timeout")

    assert (answer.status_code, models.order, timeouts) == (200, ["m1", "m2"], 1)


@pytest.mark.bug("K13")
async def test_the_last_model_may_take_its_time(tmp_path: Path) -> None:
    chain = fallback(first_content_ms=300)
    async with chained(tmp_path, chain, m1=[HANG], m2=[said(delay_s=0.6)]) as (gateway, models):
        answer = await gateway.post(ask())

    assert (answer.status_code, models.order) == (200, ["m1", "m2"])


@pytest.mark.bug("K13")
async def test_a_stream_that_crawls_is_replaced_before_any_of_it_is_seen(tmp_path: Path) -> None:
    chain = fallback(stream_commit="complete", min_tokens_per_s=20)
    crawling = replace(said("a b c d e f g h i j k l m n"), gap_s=0.3)
    async with chained(tmp_path, chain, m1=[crawling], m2=[said("quick one")]) as (gateway, models):
        answer = await gateway.post(ask(stream=True))
        timeouts = gateway.count("gateway_upstream_attempts_total", outcome="upstream_timeout")

    assert (models.order, texts(answer.text), timeouts) == (["m1", "m2"], "quick one", 1)
    assert answer.text.count("[DONE]") == 1


@pytest.mark.bug("K13")
@pytest.mark.parametrize("failure", [cut(2), cut(-1)])
async def test_a_stream_whose_pace_counts_is_replaced_when_it_is_cut(
    failure: Step, tmp_path: Path
) -> None:
    chain = fallback(stream_commit="complete", min_tokens_per_s=1)
    async with chained(tmp_path, chain, m1=[failure], m2=[said("from m2")]) as (gateway, models):
        answer = await gateway.post(ask(stream=True))

    assert (models.order, texts(answer.text)) == (["m1", "m2"], "from m2")


async def test_a_stream_that_keeps_pace_arrives_whole(tmp_path: Path) -> None:
    chain = fallback(stream_commit="complete", min_tokens_per_s=1)
    async with chained(tmp_path, chain, m1=[said("one two three")], m2=[said()]) as (
        gateway,
        models,
    ):
        answer = await gateway.post(ask(stream=True))
        await until(gateway.records)
        [record] = gateway.records()

    assert (models.order, texts(answer.text)) == (["m1"], "one two three")
    assert answer.text.count("[DONE]") == 1
    assert (record["status"], record["output_tokens"]) == (200, 2)


async def test_a_pace_without_a_way_back_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="stream_commit: complete"):
        async with chained(tmp_path, fallback(min_tokens_per_s=20), m1=[said()]):
            pass


async def test_a_shadow_only_counts(tmp_path: Path) -> None:
    chain = fallback(mode="shadow")
    async with chained(tmp_path, chain, m1=[refuse(503)], m2=[said()]) as (gateway, models):
        answer = await gateway.post(ask())

        assert gateway.count("gateway_shadow_verdicts_total", verdict="fallback") == 1
    assert (answer.status_code, models.order) == (503, ["m1"])
