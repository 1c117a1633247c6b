"""Whatever fails, the answer comes in time, and official clients do not repeat what the gateway has repeated."""

import asyncio
import random
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.support.models import GARBAGE, HANG, RESET, Step, ask, chained, cut, refuse, said
from tests.support.scripted_upstream import until
from tests.support.serving import KEY

CHAIN: list[dict[str, Any]] = [
    {"fallback": {"models": ["m2", "m3"], "first_content_ms": 400}},
    {"retry": {"initial_delay_ms": 50}},
    {"hedge": {"after_ms": 200}},
]
FAULTS = (
    HANG,
    RESET,
    GARBAGE,
    cut(-1),
    cut(1),
    refuse(429, retry_after_ms="300"),
    refuse(429, retry_after="31536000"),
    refuse(500),
    refuse(503, retry_after="1"),
    refuse(529),
    replace(refuse(503), delay_s=0.5),
    said(delay_s=0.5),
)
DEADLINE_S = 1.5
SLACK_S = 0.1


def _without_breaker(config: dict[str, Any]) -> None:
    config["providers"]["up"]["breaker"] = {"enabled": False}
    config["providers"]["up"]["timeout"] = {"first_byte_s": 30, "idle_s": 30}


async def _longest_stall() -> float:
    """Return how long the machine once kept this loop from running, until cancelled."""
    loop = asyncio.get_running_loop()
    worst_s, step_s = 0.0, 0.005
    with suppress(asyncio.CancelledError):
        while True:
            before = loop.time()
            await asyncio.sleep(step_s)
            worst_s = max(worst_s, loop.time() - before - step_s)
    return worst_s


@pytest.mark.contract("G-13")
@pytest.mark.bug("K13")
@pytest.mark.parametrize("seed", range(4))
async def test_no_mix_of_faults_makes_an_answer_late(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    loop = asyncio.get_running_loop()

    def faults() -> list[Step]:
        return [chance.choice(FAULTS) for _ in range(60)]

    async with chained(
        tmp_path, CHAIN, config=_without_breaker, m1=faults(), m2=faults(), m3=faults()
    ) as (gateway, _):

        async def one(stream: bool) -> float:
            began = loop.time()
            await gateway.post(
                ask(stream=stream), x_gateway_timeout_ms=str(round(DEADLINE_S * 1000))
            )
            return loop.time() - began

        lag = asyncio.create_task(_longest_stall())
        took = await asyncio.gather(*(one(stream=bool(n % 2)) for n in range(8)))

        lag.cancel()
        stalled_s = await lag

    assert max(took) <= DEADLINE_S + SLACK_S + stalled_s


@pytest.mark.contract("G-12")
@pytest.mark.parametrize("stream", [False, True])
async def test_an_official_client_makes_one_call_of_what_was_repeated_here(
    stream: bool, tmp_path: Path
) -> None:
    chain = [{"retry": {"initial_delay_ms": 1, "max_retries": 1}}]
    async with chained(tmp_path, chain, m1=[refuse(503)]) as (gateway, models):
        client = openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=KEY, max_retries=2)
        with pytest.raises(openai.InternalServerError):
            await client.chat.completions.create(
                model="m1", messages=[{"role": "user", "content": "hi"}], stream=stream
            )
        await client.close()
        await until(gateway.records)
        asked = len(gateway.records())

    assert (asked, models.n()) == (1, 2)
