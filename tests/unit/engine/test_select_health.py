"""Who is let through to a target that fails, waits or is full, and what the others are told."""

import asyncio
from dataclasses import replace

import pytest

from gateway.chain.plan import Target
from gateway.core import clock
from gateway.core.call import Run
from gateway.core.errors import UpstreamError
from gateway.engine.admit import Barred, admit, enter, rather, wait_for_room
from gateway.engine.select import BALANCES, order_targets, usable_keys
from gateway.upstream.breaker import OPEN, BreakerRules
from gateway.upstream.concurrency import ConcurrencyRules
from gateway.upstream.health import Guarded, KeyHealth, TargetHealth
from tests.support.plans import model, target

AT_ONCE = BreakerRules(failures=1, open_s=0.000_001, max_open_s=0.000_001)
LONG = BreakerRules(failures=1, open_s=40.0)
REAL = UpstreamError("upstream_timeout", phase="first_byte")


def run() -> Run:
    return Run("req_1", "chat", 0.0, clock.monotonic() + 60)


def guarded(rules: BreakerRules = LONG, most: float = 9, name: str = "up", keys: int = 1) -> Target:
    """Return a target and credentials under these rules."""
    plan = target(name=name, keys=keys)
    made = tuple(replace(key, health=KeyHealth(rules=rules)) for key in plan.account.keys)
    account = replace(plan.account, keys=made)
    bounds = ConcurrencyRules(most=most, queue_s=0.05)
    return replace(plan, account=account, health=TargetHealth(rules=rules, bounds=bounds))


def open_(record: Guarded) -> None:
    record.fail(record.breaker.epoch, clock.monotonic())
    assert record.breaker.state == OPEN


async def refused(plan: Target, number: int = 0) -> Barred:
    """Return what one call is told that is not let through; it must hold no place."""
    key = plan.account.keys[number]
    taken = plan.health.in_flight
    assert not enter(plan, key)
    with pytest.raises(Barred) as barred:
        await admit(plan, key)
    assert plan.health.in_flight == taken
    return barred.value


def test_a_call_of_a_healthy_target_just_enters() -> None:
    plan = guarded()

    assert enter(plan, plan.account.keys[0])
    assert plan.health.in_flight == 1


@pytest.mark.fault("U-28")
async def test_a_target_that_is_down_is_an_outage_with_the_time_to_the_next_try() -> None:
    plan = guarded()
    open_(plan.health)

    error = await refused(plan)

    assert (error.code, error.why, error.http, error.sent) == (
        "upstream_unavailable",
        "outage",
        503,
        False,
    )
    assert "outage" in error.message
    assert error.retry_after_s is not None
    assert 19 < error.retry_after_s <= 40
    assert error.spent, "no layer waits for it"


@pytest.mark.fault("U-8", "U-28")
async def test_a_host_that_is_down_is_an_outage_of_all_its_targets_and_tried_by_one() -> None:
    one = guarded(AT_ONCE)
    other = replace(one, health=TargetHealth(rules=LONG, host=one.health.host))
    one.health.host.breaker.rules = LONG
    open_(one.health.host)
    assert (await refused(one)).why == (await refused(other)).why == "outage"
    one.health.host.breaker.rules = AT_ONCE
    one.health.host.succeed(one.health.host.breaker.epoch, clock.monotonic())
    open_(one.health.host)
    await asyncio.sleep(0.001)

    calls = (admit(each, each.account.keys[0]) for _ in range(20) for each in (one, other))
    ends = await asyncio.gather(*calls, return_exceptions=True)

    assert [end for end in ends if not isinstance(end, Barred)] == [None]


@pytest.mark.fault("U-28")
async def test_a_credential_that_is_refused_time_and_again_is_told_as_such() -> None:
    plan = guarded()
    open_(plan.account.keys[0].health)

    error = await refused(plan)

    assert (error.code, error.why, error.http) == ("upstream_unavailable", "credentials", 503)
    assert "credentials" in error.message
    assert error.retry_after_s is not None


@pytest.mark.bug("K09")
async def test_a_credential_that_must_wait_is_limited_and_may_be_waited_for() -> None:
    plan = guarded()
    key = plan.account.keys[0].health
    plan.health.wait(key, clock.monotonic() + 5, clock.monotonic())

    error = await refused(plan)

    assert (error.code, error.why, error.http) == ("rate_limited", "quota", 429)
    assert error.retry_after_s is not None
    assert 4 < error.retry_after_s <= 5
    assert not error.spent


@pytest.mark.bug("K09")
async def test_a_shared_quota_is_waited_for_before_every_target() -> None:
    one = guarded()
    other = replace(guarded(), account=one.account)
    one.account.keys[0].health.wait_until = clock.monotonic() + 5

    assert (await refused(one)).why == (await refused(other)).why == "quota"


async def test_a_wait_of_one_target_is_none_of_another() -> None:
    one = guarded()
    other = replace(guarded(), account=one.account)
    one.health.wait(one.account.keys[0].health, clock.monotonic() + 5, clock.monotonic())

    assert enter(other, one.account.keys[0])


async def test_a_wait_that_is_over_is_forgotten() -> None:
    plan = guarded()
    key = plan.account.keys[0]
    plan.health.waits = {key.health: 1.0}
    key.health.wait_until = 1.0

    await admit(plan, key)
    plan.health.places.leave()

    assert enter(plan, key), "at full speed again"


@pytest.mark.fault("U-27")
async def test_a_full_target_says_so_and_names_itself() -> None:
    plan = guarded(most=1)
    assert enter(plan, plan.account.keys[0])

    error = await refused(plan)

    assert (error.code, error.why, error.http, error.full) == ("overloaded", "full", 503, (plan,))
    assert error.retry_after_s == 1.0


@pytest.mark.bug("K12")
@pytest.mark.fault("U-28")
async def test_of_a_crowd_at_a_target_that_was_down_one_gets_through() -> None:
    plan = guarded(AT_ONCE)
    open_(plan.health)
    await asyncio.sleep(0.001)

    ends = await asyncio.gather(
        *(admit(plan, plan.account.keys[0]) for _ in range(100)), return_exceptions=True
    )

    assert [end for end in ends if not isinstance(end, Barred)] == [None]
    assert plan.health.in_flight == 1


@pytest.mark.bug("K12")
async def test_of_a_crowd_with_a_credential_that_was_refused_one_gets_through() -> None:
    plan = guarded(AT_ONCE)
    open_(plan.account.keys[0].health)
    await asyncio.sleep(0.001)

    ends = await asyncio.gather(
        *(admit(plan, plan.account.keys[0]) for _ in range(100)), return_exceptions=True
    )

    assert [end for end in ends if not isinstance(end, Barred)] == [None]


async def test_a_credential_s_probe_that_finds_the_target_down_makes_room() -> None:
    plan = guarded(AT_ONCE)
    key = plan.account.keys[0].health
    open_(key)
    await asyncio.sleep(0.001)
    plan.health.breaker.rules = LONG
    open_(plan.health)
    assert (await refused(plan)).why == "outage"
    plan.health.succeed(plan.health.breaker.epoch, clock.monotonic())

    await admit(plan, plan.account.keys[0])


@pytest.mark.bug("K12")
def test_a_bad_credential_is_passed_over_and_the_others_are_used() -> None:
    plan = guarded(keys=3)
    open_(plan.account.keys[1].health)

    for _ in range(6):
        assert plan.account.keys[1] not in usable_keys(plan)
        assert len(usable_keys(plan)) == 2


def test_a_credential_that_only_rests_goes_before_one_that_must_wait() -> None:
    plan = guarded(keys=2)
    rests, waits = plan.account.keys
    now = clock.monotonic()
    rests.health.rest(now + 100)
    waits.health.wait_until = now + 1

    assert usable_keys(plan) == [rests]


@pytest.mark.parametrize("balance", BALANCES)
def test_what_is_down_goes_last(balance: str) -> None:
    targets = [guarded(name=name) for name in "abc"]
    open_(targets[0].health)
    plan = model("m", targets, balance)

    for _ in range(20):
        order = order_targets(plan, run())
        assert order[-1] is targets[0]
        assert {each.account.name for each in order} == set("abc")


@pytest.mark.parametrize("balance", BALANCES)
async def test_what_may_be_tried_again_goes_first_until_its_probe_is_under_way(
    balance: str,
) -> None:
    targets = [guarded(AT_ONCE, name=name) for name in "abc"]
    open_(targets[1].health)
    await asyncio.sleep(0.001)
    plan = model("m", targets, balance)

    assert order_targets(plan, run())[0] is targets[1]
    await admit(targets[1], targets[1].account.keys[0])
    assert order_targets(plan, run())[-1] is targets[1]


@pytest.mark.parametrize("balance", BALANCES)
def test_an_order_is_found_when_all_are_down(balance: str) -> None:
    targets = [guarded(name=name) for name in "ab"]
    for each in targets:
        open_(each.health)

    order = order_targets(model("m", targets, balance), run())

    assert sorted(each.account.name for each in order) == ["a", "b"]


def test_the_failure_of_a_call_says_more_than_that_others_are_down() -> None:
    barred = Barred("outage", 3.0)

    assert rather(None, barred) is barred
    assert rather(REAL, barred) is REAL
    assert rather(barred, REAL) is REAL


def test_of_several_that_are_down_the_one_that_comes_back_first_is_told() -> None:
    soon, late = Barred("quota", 1.0), Barred("outage", 3.0)

    assert rather(soon, late) is rather(late, soon) is soon


def test_one_that_is_full_is_worth_waiting_for_when_others_fail() -> None:
    one, other = guarded(), guarded()
    full = rather(Barred("outage", 3.0), Barred("full", 1.0, (one,)))
    both = rather(full, Barred("full", 1.0, (other,)))

    assert isinstance(both, Barred)
    assert (both.why, both.full) == ("full", (one, other))
    for failure in (rather(both, REAL), rather(REAL, both)):
        assert isinstance(failure, Barred)
        assert failure.full == (one, other)


@pytest.mark.fault("U-27")
async def test_a_place_that_becomes_free_is_entered_by_who_waited() -> None:
    one, other = guarded(most=1, name="a"), guarded(most=1, name="b")
    for each in (one, other):
        assert enter(each, each.account.keys[0])
    waiting = asyncio.ensure_future(wait_for_room((one, other), clock.monotonic() + 5))
    await asyncio.sleep(0)
    other.health.places.leave()

    assert await waiting is other
    assert enter(other, other.account.keys[0])


@pytest.mark.fault("U-27")
@pytest.mark.parametrize(
    ("time_s", "code"),
    [(5.0, "overloaded"), (0.01, "deadline_exceeded")],
    ids=["queue", "deadline"],
)
async def test_the_wait_for_a_place_is_short_and_ends_at_the_deadline(
    time_s: float, code: str
) -> None:
    plan = guarded(most=1)
    assert enter(plan, plan.account.keys[0])
    began = clock.monotonic()

    with pytest.raises(UpstreamError) as late:
        await wait_for_room((plan,), began + time_s)

    assert late.value.code == code
    assert clock.monotonic() - began < 1.0
    assert plan.health.places.waiting == 0
