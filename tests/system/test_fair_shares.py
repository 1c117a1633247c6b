"""More load than there is room for: goodput stays, refusals are quick (G-18), and tenants do not starve each other (G-19)."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.caller import request
from tests.support.crowd import resident_mb
from tests.support.gateway import Gateway, run_gateway
from tests.support.offered import Outcome, crowd, offer, percentile
from tests.support.pace import provider
from tests.support.serving import CHAT, KEY

LOOPS = ("uvloop",)
ROOM = 40
TOOK_MS = 200
CAPACITY = ROOM * 1000 / TOOK_MS
"""Requests a second that the room allows."""
QUIET = "test-key-quiet-0123456789abcdef"


@dataclass(frozen=True)
class Bounds:
    """What may be asked of a machine: others use the one that checks every change."""

    seconds: float
    goodput: float
    slower: float
    shed_s: float


SHORT = Bounds(seconds=4, goodput=0.75, slower=3, shed_s=0.1)
FULL = Bounds(seconds=300, goodput=0.9, slower=2, shed_s=0.01)
SIZES = [
    pytest.param(SHORT, marks=[pytest.mark.slow, pytest.mark.timeout(120)], id="short"),
    pytest.param(FULL, marks=[pytest.mark.soak, pytest.mark.timeout(1800)], id="full"),
]


def config(port: int) -> dict[str, Any]:
    up = {
        "kind": "openai_compatible",
        "base_url": f"http://127.0.0.1:{port}/v1",
        "api_key": "sk-upstream-0123456789",
    }
    return {
        "server": {"max_in_flight": ROOM},
        "telemetry": {"log_level": "warning"},
        "providers": {"up": up},
        "models": {"m": {"targets": [{"provider": "up", "model": "m-upstream"}]}},
        "tenants": {
            "loud": {"keys": [{"id": "k", "secret": KEY}], "models": ["m"]},
            "quiet": {"keys": [{"id": "k", "secret": QUIET}], "models": ["m"]},
        },
    }


def port_of(gateway: Gateway) -> int:
    return int(gateway.url.rpartition(":")[2])


LOUD_CALL = request({**CHAT, "user": str(TOOK_MS)}, key=KEY)
QUIET_CALL = request({**CHAT, "user": str(TOOK_MS)}, key=QUIET)


@pytest.mark.contract("G-18")
@pytest.mark.fault("C-27")
@pytest.mark.bug("K38")
@pytest.mark.parametrize("bounds", SIZES)
async def test_three_times_the_load_leaves_what_it_can_serve(
    tmp_path: Path, bounds: Bounds
) -> None:
    async with provider() as upstream:
        with run_gateway(config(upstream), tmp_path) as gateway:
            port, pid = port_of(gateway), gateway.process.popen.pid
            await crowd(port, LOUD_CALL, callers=ROOM, seconds=1)
            peak = await crowd(port, LOUD_CALL, callers=ROOM, seconds=min(bounds.seconds, 30))
            before = resident_mb(pid)
            over = await offer(port, LOUD_CALL, per_s=3 * CAPACITY, seconds=bounds.seconds)
            after = resident_mb(pid)
            again = await crowd(port, LOUD_CALL, callers=ROOM // 2, seconds=1)
    slower = percentile(over.good, 99) / percentile(peak.good, 99)
    shed_s = percentile(over.shed, 50)
    print(
        f"peak {peak.rate:.0f}/s, under load {over.rate:.0f}/s ({over.rate / peak.rate:.0%}), p99 x {slower:.2f}, "
        f"{len(over.shed)} shed, half of them within {shed_s * 1000:.1f} ms, {before:.0f} to {after:.0f} MB"
    )
    assert over.failures == peak.failures == again.failures == {}
    assert over.rate >= bounds.goodput * peak.rate
    assert slower <= bounds.slower
    assert shed_s <= bounds.shed_s
    assert after - before < 30
    assert again.shed == []


async def _quiet(port: int, seconds: float) -> Outcome:
    return await offer(port, QUIET_CALL, per_s=20, seconds=seconds)


@pytest.mark.contract("G-19")
@pytest.mark.bug("K38")
@pytest.mark.parametrize("bounds", SIZES)
async def test_a_loud_tenant_does_not_push_a_quiet_one_out(tmp_path: Path, bounds: Bounds) -> None:
    async with provider() as upstream:
        with run_gateway(config(upstream), tmp_path) as gateway:
            port = port_of(gateway)
            await _quiet(port, 0.5)
            alone = await _quiet(port, bounds.seconds)
            flood = asyncio.ensure_future(
                offer(port, LOUD_CALL, per_s=3 * CAPACITY, seconds=bounds.seconds + 1)
            )
            await asyncio.sleep(0.5)
            beside = await _quiet(port, bounds.seconds)
            loud = await flood
    slower = percentile(beside.good, 99) / percentile(alone.good, 99)
    print(
        f"quiet alone p99 {percentile(alone.good, 99) * 1000:.0f} ms, beside a flood x {slower:.2f}, "
        f"{len(beside.shed)} of it shed; loud {loud.rate:.0f}/s, {len(loud.shed)} shed"
    )
    assert alone.failures == beside.failures == loud.failures == {}
    assert beside.shed == []
    assert slower <= bounds.slower * 0.75
    assert loud.rate >= 0.5 * CAPACITY
