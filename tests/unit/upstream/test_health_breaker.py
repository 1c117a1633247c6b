"""When a breaker opens, whom it lets try, and when it closes."""

import pytest

from gateway.upstream.breaker import CLOSED, HALF_OPEN, OPEN, Breaker, BreakerRules

RULES = BreakerRules(
    failures=3, ratio=0.5, min_calls=10, window_s=10.0, open_s=4.0, max_open_s=20.0
)


def opened(rules: BreakerRules = RULES, now: float = 100.0) -> Breaker:
    breaker = Breaker(rules)
    for _ in range(int(rules.failures)):
        breaker.fail(breaker.epoch, now)
    assert breaker.state == OPEN
    return breaker


def probing(now: float = 200.0) -> Breaker:
    breaker = opened()
    assert breaker.reserve(now)
    return breaker


def test_failures_in_a_row_open_it() -> None:
    breaker = Breaker(RULES)
    outcomes = [breaker.fail(breaker.epoch, 100.0) for _ in range(3)]

    assert outcomes == [False, False, True]
    assert breaker.state == OPEN


def test_a_success_between_failures_keeps_it_closed() -> None:
    breaker = Breaker(RULES)
    for _ in range(3):
        breaker.fail(0, 100.0)
        breaker.fail(0, 100.0)
        breaker.succeed(0, 100.0)

    assert breaker.state == CLOSED


def test_failures_that_lie_far_apart_are_not_in_a_row() -> None:
    breaker = Breaker(RULES)
    for number in range(10):
        breaker.fail(0, 100.0 + number * 11)

    assert breaker.state == CLOSED


@pytest.mark.parametrize("calls", [8, 10, 12])
def test_the_share_of_failures_counts_from_the_least_number_of_calls_on(calls: int) -> None:
    breaker = Breaker(RULES)
    for number in range(calls):
        if number % 2:
            breaker.fail(0, 100.0)
        else:
            breaker.succeed(0, 100.0)

    assert (breaker.state == OPEN) == (calls >= 10)


def test_calls_leave_the_window() -> None:
    breaker = Breaker(RULES)
    for _ in range(100):
        breaker.succeed(0, 100.0)
    breaker.fail(0, 105.0)

    assert breaker.counts(109.0) == (101, 1)
    assert breaker.counts(111.0) == (1, 1)
    assert breaker.counts(116.0) == (0, 0)


def test_it_stays_open_for_half_to_all_of_its_time_at_random() -> None:
    waits = [opened().wait_s(100.0) for _ in range(300)]

    assert 2.0 <= min(waits) < 2.3
    assert 3.7 < max(waits) <= 4.0


def test_each_failed_probe_doubles_its_time_up_to_a_cap() -> None:
    breaker, now = opened(), 100.0
    longest: list[float] = []
    for _ in range(6):
        longest.append(breaker.wait_s(now))
        now += 1000.0
        assert breaker.reserve(now)
        breaker.fail(breaker.epoch, now)

    for wait_s, most in zip(longest, (4, 8, 16, 20, 20, 20), strict=True):
        assert most / 2 <= wait_s <= most


def test_it_starts_small_again_after_a_healthy_while() -> None:
    breaker = probing()
    breaker.fail(breaker.epoch, 200.0)
    assert breaker.reserve(300.0)
    breaker.succeed(breaker.epoch, 300.0)
    for _ in range(3):
        breaker.fail(breaker.epoch, 311.0)

    assert breaker.wait_s(311.0) <= 4.0


def test_it_goes_on_growing_when_it_fails_again_soon() -> None:
    breaker = probing()
    breaker.succeed(breaker.epoch, 200.0)
    for _ in range(3):
        breaker.fail(breaker.epoch, 201.0)

    assert 4.0 <= breaker.wait_s(201.0) <= 8.0


@pytest.mark.bug("K12")
@pytest.mark.parametrize("probes", [1, 3])
def test_no_more_than_the_probes_pass_at_once(probes: int) -> None:
    breaker = opened(RULES._replace(probes=probes))

    assert not breaker.reserve(101.0)
    assert [breaker.reserve(200.0) for _ in range(100)].count(True) == probes
    assert breaker.state == HALF_OPEN
    assert breaker.wait_s(200.0) > 0


def test_a_good_probe_closes_it_and_its_past_is_forgotten() -> None:
    breaker = probing()

    assert breaker.succeed(breaker.epoch, 200.0)
    assert breaker.state == CLOSED
    assert breaker.counts(200.0) == (0, 0)
    assert breaker.wait_s(200.0) == 0


def test_a_probe_that_tells_nothing_makes_room_for_another() -> None:
    breaker = probing()

    assert breaker.undecided(breaker.epoch)
    assert breaker.state == HALF_OPEN
    assert breaker.reserve(200.0)


def test_calls_that_began_before_it_opened_change_nothing_any_more() -> None:
    breaker = probing()

    assert not breaker.succeed(0, 200.0)
    assert not breaker.fail(0, 200.0)
    assert not breaker.undecided(0)
    assert breaker.state == HALF_OPEN
    assert not breaker.reserve(200.0), "the probe is still under way"


def test_whoever_was_not_allowed_to_probe_is_not_asked_again_at_once() -> None:
    breaker = probing()
    breaker.refuse(breaker.epoch, 200.0)

    assert 0.0 < breaker.wait_s(200.0) <= 0.2
    assert not breaker.reserve(200.05)
    assert breaker.reserve(200.2)


def test_every_change_is_told() -> None:
    seen: list[int] = []
    breaker = Breaker(RULES, lambda: seen.append(breaker.state))
    for _ in range(3):
        breaker.fail(0, 100.0)
    breaker.reserve(200.0)
    breaker.succeed(breaker.epoch, 200.0)

    assert seen == [OPEN, HALF_OPEN, CLOSED]
