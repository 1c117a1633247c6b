"""What health costs a call while all is well: a place taken and given back, a good outcome noted."""

import time
from collections.abc import Callable
from timeit import repeat

import pytest

from gateway.core import clock
from gateway.engine.admit import enter
from tests.support.plans import target

_CALLS = 20_000


class Load:
    """The least that counts calls under way."""

    def __init__(self) -> None:
        self.in_flight = 0

    def count(self) -> None:
        self.in_flight += 1
        self.in_flight -= 1


def cost_s(work: Callable[[], None]) -> float:
    """Return the CPU seconds of one call, at the best of several times."""
    return min(repeat(work, number=_CALLS, repeat=9, timer=time.process_time)) / _CALLS


@pytest.mark.perf
def test_a_healthy_target_costs_a_call_well_under_a_microsecond() -> None:
    plan = target()
    key = plan.account.keys[0]
    health, now = plan.health, clock.monotonic()

    def call() -> None:
        assert enter(plan, key)
        epochs = (health.breaker.epoch, key.health.breaker.epoch)
        health.places.grow()
        health.breaker.succeed(epochs[0], now)
        health.places.leave()

    least, whole = cost_s(Load().count), cost_s(call)

    # Beside a counter that goes up and down, so that slow and busy machines agree: about 40 ns.
    assert whole < 20 * least
