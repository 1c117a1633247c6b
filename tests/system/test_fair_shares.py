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
QUIET = "test-key-quiet-0123456789abcdef"


@dataclass(frozen=True)
class Bounds:
    """What may be asked of a machine: others use the one that checks every change.

    A provider that takes `took_ms` makes the room the limit, and leaves processor time for refusals. `percent` says
    which percentile of the times is compared, `lost` which part of a quiet tenant's requests a stall may cost. What others do to the machine is left out by more `rounds`.
    """

    took_ms: int
    seconds: float
    goodput: float
    slower: float
    shed_s: float
    percent: int
    lost: float
    rounds: int

    @property
    def capacity(self) -> float:
        """Requests a second that the room allows."""
        return ROOM * 1000 / self.took_ms

    def call(self, key: str) -> bytes:
        """Return a request of a caller."""
        return request({**CHAT, "user": str(self.took_ms)}, key=key)


SHORT = Bounds(
    took_ms=400, seconds=4, goodput=0.75, slower=3, shed_s=0.1, percent=75, lost=0.1, rounds=3
)
FULL = Bounds(
    took_ms=800, seconds=300, goodput=0.9, slower=2, shed_s=0.01, percent=99, lost=0, rounds=1
)
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


@dataclass(frozen=True)
class Overload:
    """What the gateway did at its best, and under three times as much load."""

    peak: Outcome
    over: Outcome
    bounds: Bounds

    @property
    def goodput(self) -> float:
        return self.over.rate / self.peak.rate

    @property
    def slower(self) -> float:
        return _slower(self.over, self.peak, self.bounds)

    @property
    def shed_s(self) -> float:
        return percentile(self.over.shed, 50)

    @property
    def holds(self) -> bool:
        bounds = self.bounds
        return (
            self.over.failures == self.peak.failures == {}
            and self.goodput >= bounds.goodput
            and self.slower <= bounds.slower
            and self.shed_s <= bounds.shed_s
        )


def _slower(outcome: Outcome, than: Outcome, bounds: Bounds) -> float:
    return percentile(outcome.good, bounds.percent) / percentile(than.good, bounds.percent)


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
            call = bounds.call(KEY)
            await crowd(port, call, callers=ROOM, seconds=1)
            before = resident_mb(pid)
            rounds: list[Overload] = []
            while len(rounds) < bounds.rounds and not any(each.holds for each in rounds):
                peak = await crowd(port, call, callers=ROOM, seconds=min(bounds.seconds, 30))
                over = await offer(port, call, per_s=3 * bounds.capacity, seconds=bounds.seconds)
                found = Overload(peak, over, bounds)
                rounds.append(found)
                print(
                    f"peak {peak.rate:.0f}/s, under load {over.rate:.0f}/s ({found.goodput:.0%}), "
                    f"p{bounds.percent} x {found.slower:.2f}, {len(over.shed)} shed, half of them within "
                    f"{found.shed_s * 1000:.1f} ms, failures {dict(over.failures)}"
                )
            after = resident_mb(pid)
            again = await crowd(port, call, callers=ROOM // 2, seconds=1)
    print(f"{before:.0f} to {after:.0f} MB")
    assert any(each.holds for each in rounds)
    assert after - before < 30
    assert again.shed == []


@dataclass(frozen=True)
class Neighbours:
    """What a quiet tenant got alone and beside a flood, and what the flood got."""

    alone: Outcome
    beside: Outcome
    loud: Outcome
    bounds: Bounds

    @property
    def slower(self) -> float:
        return _slower(self.beside, self.alone, self.bounds)

    @property
    def holds(self) -> bool:
        bounds = self.bounds
        return (
            self.alone.failures == self.beside.failures == self.loud.failures == {}
            and len(self.beside.shed) <= bounds.lost * len(self.beside.good)
            and self.slower <= bounds.slower * 0.75
            and self.loud.rate >= 0.5 * bounds.capacity
        )


async def _quiet(port: int, bounds: Bounds, seconds: float) -> Outcome:
    return await offer(port, bounds.call(QUIET), per_s=bounds.capacity / 10, seconds=seconds)


@pytest.mark.contract("G-19")
@pytest.mark.bug("K38")
@pytest.mark.parametrize("bounds", SIZES)
async def test_a_loud_tenant_does_not_push_a_quiet_one_out(tmp_path: Path, bounds: Bounds) -> None:
    flood_s, call = bounds.seconds + 1, bounds.call(KEY)
    async with provider() as upstream:
        with run_gateway(config(upstream), tmp_path) as gateway:
            port = port_of(gateway)
            await _quiet(port, bounds, 1)
            rounds: list[Neighbours] = []
            while len(rounds) < bounds.rounds and not any(each.holds for each in rounds):
                alone = await _quiet(port, bounds, bounds.seconds)
                flood = asyncio.ensure_future(
                    offer(port, call, per_s=3 * bounds.capacity, seconds=flood_s)
                )
                await asyncio.sleep(0.5)
                beside = await _quiet(port, bounds, bounds.seconds)
                found = Neighbours(alone, beside, await flood, bounds)
                rounds.append(found)
                print(
                    f"quiet alone p{bounds.percent} {percentile(alone.good, bounds.percent) * 1000:.0f} ms, "
                    f"beside a flood x {found.slower:.2f}, {len(beside.shed)} of {len(beside.good)} shed; "
                    f"loud {found.loud.rate:.0f}/s, {len(found.loud.shed)} shed"
                )
    assert any(each.holds for each in rounds)
