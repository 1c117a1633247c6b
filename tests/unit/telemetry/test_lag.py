"""The sampler sees a blocked loop, and stops when told."""

import asyncio
import time

from gateway.core.clock import monotonic
from gateway.telemetry.cells import Registry
from gateway.telemetry.lag import LagSampler
from gateway.telemetry.metrics import Metrics


def metrics_of() -> tuple[Registry, Metrics]:
    registry = Registry.create()
    return registry, Metrics(registry, "1")


def samples(registry: Registry) -> float:
    return sum(registry.read()["gateway_loop_lag_seconds"][()][1:])


async def until_sampled(registry: Registry, count: int) -> None:
    end = monotonic() + 10
    while samples(registry) < count:
        assert monotonic() < end
        await asyncio.sleep(0.01)


async def test_a_blocked_loop_is_seen() -> None:
    registry, metrics = metrics_of()
    sampler = LagSampler(metrics)
    sampler.start()

    time.sleep(0.6)
    await until_sampled(registry, 1)
    sampler.stop()

    assert sampler.worst_s >= 0.3
    assert registry.read()["gateway_loop_lag_max_seconds"][()][0] >= 0.3


async def test_lost_lines_are_counted_once() -> None:
    registry, metrics = metrics_of()
    sampler = LagSampler(metrics, lambda: 7)
    sampler.start()

    await until_sampled(registry, 2)
    sampler.stop()

    assert registry.read()["gateway_log_lines_lost_total"][()] == [7.0]


async def test_a_stopped_sampler_is_silent_and_can_start_again() -> None:
    registry, metrics = metrics_of()
    sampler = LagSampler(metrics)
    sampler.start()
    sampler.stop()
    sampler.stop()
    assert sampler.worst_s == 0

    await asyncio.sleep(0.3)
    assert samples(registry) == 0

    sampler.start()
    await until_sampled(registry, 1)
    sampler.stop()
