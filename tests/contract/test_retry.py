"""Retry as a caller and a provider see it (T-039 to T-056)."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gateway.config.errors import ConfigError
from tests.support.models import GARBAGE, RESET, ask, chained, cut, refuse, said, texts
from tests.support.scripted_upstream import until

QUICK: Mapping[str, Any] = {"initial_delay_ms": 1, "jitter": "none"}
Chain = list[dict[str, Any]]


def retry(**options: object) -> Chain:
    """Return a chain of one retry that hardly waits."""
    return [{"retry": {**QUICK, **options}}]


@pytest.mark.contract("G-RETRY-2", "G-RETRY-10", "G-STAT-9", "T-039")
async def test_three_more_tries_then_the_last_error_as_it_was(tmp_path: Path) -> None:
    async with chained(tmp_path, retry(), m1=[refuse(503)]) as (gateway, models):
        answer = await gateway.post(ask())

    assert (answer.status_code, models.n()) == (503, 4)
    assert answer.headers["x-should-retry"] == "false"
    assert answer.headers["x-gateway-attempts"] == "4"
    assert answer.json()["error"]["message"] == "refused with 503"


@pytest.mark.contract("G-RETRY-3", "T-040", "D-3", "T-041")
@pytest.mark.parametrize(("retries", "calls"), [(2, 3), (0, 1)])
async def test_retries_are_the_calls_after_the_first(
    retries: int, calls: int, tmp_path: Path
) -> None:
    async with chained(tmp_path, retry(max_retries=retries), m1=[refuse(503)]) as (gateway, models):
        answer = await gateway.post(ask())

    assert (answer.status_code, models.n()) == (503, calls)


@pytest.mark.contract("D-3")
async def test_a_negative_number_of_retries_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="max_retries"):
        async with chained(tmp_path, retry(max_retries=-1), m1=[said()]):
            pass


@pytest.mark.bug("K09")
@pytest.mark.contract("G-RETRY-9", "T-042", "T-043", "T-044", "T-046", "G-RETRY-4")
@pytest.mark.parametrize(
    ("options", "status", "calls", "seen"),
    [
        ({}, 400, 1, 400),
        ({}, 404, 1, 404),
        ({}, 408, 2, 200),
        ({}, 409, 2, 200),
        ({}, 429, 2, 200),
        ({}, 500, 2, 200),
        ({}, 502, 2, 200),
        ({}, 529, 2, 200),
        ({}, 501, 1, 502),
        ({"statuses": ["PERMISSION_DENIED"]}, 503, 1, 503),
        ({"statuses": []}, 503, 1, 503),
    ],
)
async def test_what_is_tried_again_follows_from_the_list(
    options: dict[str, Any], status: int, calls: int, seen: int, tmp_path: Path
) -> None:
    async with chained(tmp_path, retry(**options), m1=[refuse(status), said()]) as (
        gateway,
        models,
    ):
        answer = await gateway.post(ask())

    assert (models.n(), answer.status_code) == (calls, seen)


@pytest.mark.contract("G-RETRY-4", "T-045")
async def test_a_listed_status_is_tried_again_whatever_it_is(tmp_path: Path) -> None:
    chain = retry(statuses=["PERMISSION_DENIED"], max_retries=1)
    async with chained(tmp_path, chain, m1=[refuse(403)]) as (gateway, models):
        answer = await gateway.post(ask())

    assert (models.n(), answer.status_code) == (2, 502)


@pytest.mark.fault("U-16")
@pytest.mark.contract("G-STAT-8", "T-047")
async def test_a_reset_is_tried_again_whatever_the_list_says(tmp_path: Path) -> None:
    chain = retry(statuses=["RESOURCE_EXHAUSTED"])
    async with chained(tmp_path, chain, m1=[RESET, said()]) as (gateway, models):
        answer = await gateway.post(ask())

    assert (models.n(), answer.status_code) == (2, 200)


@pytest.mark.fault("U-23")
@pytest.mark.contract("G-STAT-3", "G-RETRY-4")
async def test_an_answer_that_is_none_is_tried_again_whatever_the_list_says(
    tmp_path: Path,
) -> None:
    chain = retry(statuses=["RESOURCE_EXHAUSTED"])
    async with chained(tmp_path, chain, m1=[GARBAGE, GARBAGE, said()]) as (gateway, models):
        answer = await gateway.post(ask())

    assert (models.n(), answer.status_code) == (3, 200)


@pytest.mark.contract("G-RETRY-5", "T-048", "T-049")
@pytest.mark.parametrize(
    ("options", "gaps"),
    [
        ({"initial_delay_ms": 100}, (100, 200, 400)),
        ({"initial_delay_ms": 100, "max_delay_ms": 150}, (100, 150, 150)),
    ],
)
async def test_the_delay_grows_up_to_its_cap(
    options: dict[str, Any], gaps: tuple[int, ...], tmp_path: Path
) -> None:
    async with chained(tmp_path, retry(**options), m1=[refuse(503)]) as (gateway, models):
        await gateway.post(ask())

    pairs = list(zip(models.gaps_ms, gaps, strict=True))
    assert all(wanted - 1 <= gap <= wanted + 230 for gap, wanted in pairs)


@pytest.mark.contract("G-RETRY-6", "T-050")
async def test_additive_jitter_varies_and_stays_below_a_second_more(tmp_path: Path) -> None:
    steps = [refuse(503), said()] * 10
    chain = retry(jitter="additive", budget_ratio=2)
    async with chained(tmp_path, chain, m1=steps) as (gateway, models):
        await asyncio.gather(*(gateway.post(ask()) for _ in range(1)))
        first = models.gaps_ms[0]
        await gateway.post(ask())
        second = models.gaps_ms[2]

    assert 0 <= first <= 1150
    assert 0 <= second <= 1150
    assert first != second


@pytest.mark.fault("U-1", "U-3")
@pytest.mark.bug("K09")
@pytest.mark.contract("G-RETRY-7", "T-051", "T-052")
@pytest.mark.parametrize(
    ("initial_ms", "headers", "at_least_ms"),
    [
        (10, {"retry_after_ms": "200"}, 200),
        (300, {"retry_after_ms": "50"}, 300),
        (10, {"retry_after": "0"}, 10),
        (10, {"retry_after": "-5"}, 10),
        (10, {"retry_after": "soon"}, 10),
        (10, {"retry_after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 10),
        (10, {"x_ratelimit_reset_requests": "150ms"}, 150),
    ],
)
async def test_the_providers_wish_is_a_floor(
    initial_ms: int, headers: dict[str, str], at_least_ms: int, tmp_path: Path
) -> None:
    steps = [refuse(429, b"", **headers), said()]
    async with chained(tmp_path, retry(initial_delay_ms=initial_ms), m1=steps) as (gateway, models):
        answer = await gateway.post(ask())

    assert (answer.status_code, models.n()) == (200, 2)
    assert at_least_ms - 1 <= models.gaps_ms[0] <= at_least_ms + 500


@pytest.mark.bug("K09")
async def test_each_wait_follows_the_newest_wish(tmp_path: Path) -> None:
    steps = [refuse(429, retry_after_ms=wish) for wish in ("50", "150", "300")]
    async with chained(tmp_path, retry(), m1=[*steps, said()]) as (gateway, models):
        answer = await gateway.post(ask())

    assert answer.status_code == 200
    pairs = zip(models.gaps_ms, (50, 150, 300), strict=True)
    assert all(gap >= wish - 1 for gap, wish in pairs)


@pytest.mark.bug("K09")
@pytest.mark.parametrize(
    "body",
    [
        b'[{"error":{"code":429,"message":"no","details":[{"retryDelay":"0.2s"}]}}]',
        b'{"error":{"message":"Rate limit reached. Please try again in 200ms."}}',
    ],
)
async def test_a_wish_in_the_body_is_a_floor_too(body: bytes, tmp_path: Path) -> None:
    async with chained(tmp_path, retry(), m1=[refuse(429, body), said()]) as (gateway, models):
        await gateway.post(ask())

    assert 199 <= models.gaps_ms[0] <= 800


@pytest.mark.fault("U-2", "U-3")
@pytest.mark.contract("G-STAT-9")
async def test_a_wish_beyond_the_longest_wait_ends_it_at_once(tmp_path: Path) -> None:
    steps = [refuse(429, retry_after="31536000")]
    async with chained(tmp_path, retry(), m1=steps) as (gateway, models):
        answer = await gateway.post(ask())

    assert (answer.status_code, models.n()) == (429, 1)
    assert answer.headers["retry-after"] == "3600"
    assert answer.headers["x-should-retry"] == "false"


@pytest.mark.fault("U-2")
async def test_a_limit_that_stays_is_told_with_its_wait(tmp_path: Path) -> None:
    steps = [refuse(429, retry_after_ms="30")]
    async with chained(tmp_path, retry(max_retries=2), m1=steps) as (gateway, models):
        answer = await gateway.post(ask())

    assert (answer.status_code, models.n()) == (429, 3)
    assert answer.headers["retry-after-ms"] == "30"
    assert answer.headers["x-should-retry"] == "false"


@pytest.mark.fault("U-4")
async def test_every_try_sends_the_same_bytes(tmp_path: Path) -> None:
    async with chained(tmp_path, retry(), m1=[refuse(500), refuse(500), said()]) as (
        gateway,
        models,
    ):
        answer = await gateway.post(ask(temperature=0.3))

    assert answer.status_code == 200
    assert len({asked.request.body for asked in models.asked}) == 1
    assert models.n() == 3


@pytest.mark.contract("G-13", "G-RETRY-12")
async def test_no_wait_is_begun_that_the_deadline_would_end(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    async with chained(tmp_path, retry(initial_delay_ms=5000), m1=[refuse(503)]) as (
        gateway,
        models,
    ):
        began = loop.time()
        answer = await gateway.post(ask(), x_gateway_timeout_ms="1000")

    assert (answer.status_code, models.n()) == (503, 1)
    assert loop.time() - began < 0.9


@pytest.mark.contract("G-RETRY-12")
async def test_the_layers_own_deadline_ends_a_try_that_hangs(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    chain = retry(deadline_ms=300)
    async with chained(tmp_path, chain, m1=[refuse(503), said(delay_s=5)]) as (gateway, models):
        began = loop.time()
        answer = await gateway.post(ask())

    assert (answer.status_code, answer.json()["error"]["code"]) == (504, "deadline_exceeded")
    assert models.n() == 2
    assert 0.25 < loop.time() - began < 1


@pytest.mark.contract("G-STR-8", "T-054")
async def test_a_stream_that_was_refused_and_tried_again_is_one_clean_stream(
    tmp_path: Path,
) -> None:
    async with chained(tmp_path, retry(), m1=[refuse(503), said("one two")]) as (gateway, models):
        answer = await gateway.post(ask(stream=True))

    assert (answer.status_code, models.n()) == (200, 2)
    assert texts(answer.text) == "one two"
    assert answer.text.count('"role"') == 1
    assert answer.text.count("[DONE]") == 1


@pytest.mark.bug("K10")
@pytest.mark.contract("G-STR-8")
async def test_a_stream_cut_before_its_content_is_tried_again_without_a_trace(
    tmp_path: Path,
) -> None:
    async with chained(tmp_path, retry(), m1=[cut(-1), said("one two")]) as (gateway, models):
        answer = await gateway.post(ask(stream=True))

    assert (models.n(), texts(answer.text)) == (2, "one two")
    assert answer.text.count('"role"') == 1


@pytest.mark.bug("K10")
@pytest.mark.contract("G-STR-8", "T-055")
async def test_a_stream_cut_after_content_is_not_tried_again(tmp_path: Path) -> None:
    async with chained(tmp_path, retry(), m1=[cut(2), said("again")]) as (gateway, models):
        answer = await gateway.post(ask(stream=True))

    assert (models.n(), texts(answer.text)) == (1, "one two")
    assert answer.text.count('"error"') == 1
    assert "[DONE]" not in answer.text


@pytest.mark.contract("G-STR-8", "T-056")
async def test_a_stream_that_waits_for_its_end_shows_the_second_try_alone(
    tmp_path: Path,
) -> None:
    chain = retry(stream_commit="complete")
    async with chained(tmp_path, chain, m1=[cut(2), said("whole text")]) as (gateway, models):
        answer = await gateway.post(ask(stream=True))

    assert (models.n(), texts(answer.text)) == (2, "whole text")
    assert answer.text.count("[DONE]") == 1


@pytest.mark.bug("K05")
@pytest.mark.contract("G-RETRY-8")
async def test_who_leaves_during_a_wait_ends_it_and_the_log_keeps_the_error(
    tmp_path: Path,
) -> None:
    chain = retry(initial_delay_ms=20_000)
    async with chained(tmp_path, chain, m1=[refuse(503), said()]) as (gateway, models):
        with pytest.raises(httpx2.TimeoutException):
            async with asyncio.timeout(5):
                await gateway.client.post(
                    "/v1/chat/completions", json=ask(), timeout=httpx2.Timeout(0.3)
                )
        await until(gateway.records)
        [record] = gateway.records()

    assert models.n() == 1
    assert (record["status"], record["code"]) == (499, "client_gone")
    assert "upstream_unavailable" in record["detail"]


@pytest.mark.contract("G-11")
async def test_a_dead_provider_gets_hardly_more_calls_than_clients_made(tmp_path: Path) -> None:
    def without_breaker(config: dict[str, Any]) -> None:
        config["providers"]["up"]["breaker"] = {"enabled": False}

    async with chained(tmp_path, retry(), m1=[refuse(503)], config=without_breaker) as (
        gateway,
        models,
    ):
        for _ in range(40):
            await asyncio.gather(*(gateway.post(ask()) for _ in range(10)))

    assert 400 < models.n() <= 440
    assert gateway.count("gateway_retries_total", status="UNAVAILABLE") == models.n() - 400


@pytest.mark.contract("G-STAT-9", "T-070")
async def test_without_a_retry_clients_may_try_again(tmp_path: Path) -> None:
    async with chained(tmp_path, [], m1=[refuse(503)]) as (gateway, _):
        answer = await gateway.post(ask())

    assert answer.status_code == 503
    assert answer.headers.get("x-should-retry") != "false"


@pytest.mark.contract("G-STAT-11", "T-071")
async def test_the_gateways_refused_key_is_not_the_clients(tmp_path: Path) -> None:
    async with chained(tmp_path, retry(), m1=[refuse(401)]) as (gateway, models):
        answer = await gateway.post(ask())

    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_auth")
    assert models.n() == 1


async def test_a_shadow_only_counts(tmp_path: Path) -> None:
    chain = [{"retry": {**QUICK, "mode": "shadow"}}]
    async with chained(tmp_path, chain, m1=[refuse(503), said()]) as (gateway, models):
        answer = await gateway.post(ask())

        assert gateway.count("gateway_shadow_verdicts_total", verdict="retry") == 1
    assert (answer.status_code, models.n()) == (503, 1)


@pytest.mark.bug("K09")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/embeddings", {"model": "m1", "input": "hi"}),
        ("/v1/completions", {"model": "m1", "prompt": "hi"}),
        ("/v1/moderations", {"model": "m1", "input": "hi"}),
        ("/v1/rerank", {"model": "m1", "query": "q", "documents": ["a"]}),
        ("/v1/images/generations", {"model": "m1", "prompt": "a cat"}),
    ],
)
async def test_calls_of_every_kind_are_tried_again_as_often(
    path: str, body: dict[str, Any], tmp_path: Path
) -> None:
    async with chained(tmp_path, retry(max_retries=2), m1=[refuse(503)]) as (gateway, models):
        answer = await gateway.post(body, path)

    assert (answer.status_code, models.n()) == (503, 3)
    assert answer.headers["x-should-retry"] == "false"


@pytest.mark.bug("K09")
async def test_a_retry_around_a_retry_does_not_multiply(tmp_path: Path) -> None:
    chain = [{"retry": {**QUICK, "id": "outer"}}, {"retry": {**QUICK, "max_retries": 1}}]
    async with chained(tmp_path, chain, m1=[refuse(503)]) as (gateway, models):
        await gateway.post(ask())

    assert models.n() == 2
