"""Which target goes first, and which credential."""

from collections import Counter

import pytest

from gateway.chain.plan import Target
from gateway.core import clock
from gateway.core.call import Run
from gateway.engine.select import BALANCES, order_targets, usable_keys
from tests.support.plans import model, target


def run(session: str = "", key_id: str = "k") -> Run:
    made = Run("req_1", "chat", 0.0, 1.0)
    made.session, made.key_id, made.tenant = session, key_id, "acme"
    return made


def firsts(targets: list[Target], balance: str, rounds: int = 3000) -> Counter[str]:
    plan = model("m", targets, balance)
    return Counter(order_targets(plan, run())[0].account.name for _ in range(rounds))


@pytest.mark.parametrize("balance", BALANCES)
def test_every_target_stands_in_the_order_exactly_once(balance: str) -> None:
    targets = [target(name=name) for name in "abc"]

    order = order_targets(model("m", targets, balance), run())

    assert {"a", "b", "c"} == {each.account.name for each in order}
    assert len(order) == 3


def test_weights_share_the_calls() -> None:
    shares = firsts([target(name="a", weight=3), target(name="b", weight=1)], "weighted")

    assert 0.70 < shares["a"] / shares.total() < 0.80


def test_the_least_busy_target_goes_first() -> None:
    busy, idle = target(name="busy"), target(name="idle")
    busy.health.places.taken = 1

    assert firsts([busy, idle], "least_busy", 50) == {"idle": 50}


def test_weight_counts_as_room_when_the_least_busy_is_chosen() -> None:
    big, small = target(name="big", weight=10), target(name="small")
    big.health.places.taken, small.health.places.taken = 5, 1

    assert firsts([big, small], "least_busy", 50) == {"big": 50}


def test_the_slower_of_two_is_never_chosen_for_its_latency() -> None:
    slow, quick = target(name="slow"), target(name="quick")
    slow.health.observe(2.0, 1.0)
    quick.health.observe(0.1, 1.0)

    assert firsts([slow, quick], "lowest_latency", 50) == {"quick": 50}


def test_a_session_keeps_its_target_when_another_comes() -> None:
    two = [target(name=name) for name in "ab"]
    three = [*two, target(name="c")]
    sessions = [f"s{number}" for number in range(300)]

    before = {
        s: order_targets(model("m", two, "session"), run(s))[0].account.name for s in sessions
    }
    after = {
        s: order_targets(model("m", three, "session"), run(s))[0].account.name for s in sessions
    }

    moved = {s for s in sessions if before[s] != after[s]}
    assert all(after[s] == "c" for s in moved)
    assert 60 < len(moved) < 140


def test_keys_take_turns_and_resting_ones_are_passed_over() -> None:
    plan = target(keys=3)
    keys = plan.account.keys
    keys[1].health.rest(clock.monotonic() + 60)

    chosen = {id(usable_keys(plan)[0]) for _ in range(6)}
    keys[1].health.rest_until = 0.0

    assert {id(keys[0]), id(keys[2])} == chosen
    assert len(usable_keys(plan)) == 3


def test_the_key_that_wakes_first_is_used_when_all_rest() -> None:
    plan = target(keys=2)
    plan.account.keys[0].health.rest(clock.monotonic() + 100)
    plan.account.keys[1].health.rest(clock.monotonic() + 60)

    assert [plan.account.keys[1]] == usable_keys(plan)


def test_a_peak_of_latency_counts_at_once_and_fades() -> None:
    health = target().health
    health.observe(0.1, 0.0)
    health.observe(5.0, 1.0)
    peak = health.cost()
    health.observe(0.1, 31.0)

    assert peak == 5.0
    assert health.cost() < 1.0
