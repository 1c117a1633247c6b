"""How many calls a target gets at once: found, kept, waited for and given back."""

import asyncio
from math import inf

import pytest

from gateway.upstream.concurrency import ConcurrencyRules, Places, wait_any

RULES = ConcurrencyRules(least=2, decrease=0.5, recover_s=60.0)


def busy(taken: int, rules: ConcurrencyRules = RULES) -> Places:
    places = Places(rules)
    places.taken = taken
    return places


def full(most: int = 2) -> Places:
    return busy(most, ConcurrencyRules(most=most))


def soon() -> float:
    return asyncio.get_running_loop().time() + 5.0


def test_there_is_no_limit_before_the_provider_asks_for_less() -> None:
    places = busy(100_000)

    assert places.limit == inf
    assert not places.is_full(0.0)


def test_a_refusal_cuts_what_runs_by_the_ratio() -> None:
    places = busy(20)

    assert places.shrink(5.0, 10.0)
    assert places.limit == 10
    assert places.is_full(10.0)


def test_refusals_of_calls_that_started_before_the_cut_are_one_and_the_same() -> None:
    places = busy(20)
    for _ in range(20):
        assert places.shrink(5.0, 10.0)

    assert places.limit == 10


def test_it_never_falls_below_the_least() -> None:
    places = busy(20)
    for number in range(10):
        places.shrink(10.0 * number, 10.0 * number + 5)

    assert places.limit == 2


@pytest.mark.parametrize("taken", [1, 20])
def test_sending_less_is_no_cure_where_nothing_is_served_any_more(taken: int) -> None:
    places = busy(taken)

    assert places.shrink(1.0, 2.0), "it may be one"
    assert not places.shrink(3.0, 4.0)
    places.grow()
    assert places.shrink(5.0, 6.0)


def test_it_never_shrinks_when_it_is_not_to_adapt() -> None:
    places = busy(1000, ConcurrencyRules(most=2000, least=inf))
    places.shrink(1.0, 1.0)

    assert places.limit == 2000


def test_a_round_of_successes_adds_a_place_while_most_are_in_use() -> None:
    places = busy(20)
    places.shrink(5.0, 10.0)
    places.taken = 5
    for _ in range(10):
        assert places.limit == 10
        places.grow()
    assert places.limit == 11
    places.taken = 3
    for _ in range(100):
        places.grow()
    assert places.limit == 11, "nothing was learned about more"


def test_it_grows_up_to_the_most_and_no_further() -> None:
    places = busy(8, ConcurrencyRules(most=9, least=2, decrease=0.5))
    places.shrink(1.0, 1.0)
    for _ in range(200):
        places.grow()

    assert places.limit == 9


def test_a_limit_that_nobody_ran_into_for_a_while_is_forgotten() -> None:
    places = busy(20)
    places.shrink(5.0, 10.0)

    assert places.is_full(70.0)
    assert not places.is_full(70.1)
    assert places.limit == inf


async def test_a_place_that_is_given_back_goes_to_who_waited_longest() -> None:
    places, order = full(), list[int]()

    async def wait(number: int) -> None:
        assert await wait_any((places,), soon()) is places
        order.append(number)
        places.taken += 1

    waiting = [asyncio.ensure_future(wait(number)) for number in range(2)]
    await asyncio.sleep(0)
    places.leave()
    assert places.is_full(0.0), "nobody comes in between"
    await waiting[0]
    assert order == [0]
    places.leave()
    await waiting[1]
    assert (order, places.taken, places.waiting) == ([0, 1], 2, 0)


async def test_the_first_place_of_several_targets_is_taken() -> None:
    one, other = full(), full()
    waiting = asyncio.ensure_future(wait_any((one, other), soon()))
    await asyncio.sleep(0)
    other.leave()

    assert await waiting is other
    assert (one.waiting, other.waiting) == (0, 0)
    assert (one.taken, other.taken) == (2, 1)


async def test_nobody_waits_behind_as_many_as_there_are_places() -> None:
    places = full()
    waiting = [asyncio.ensure_future(wait_any((places,), soon())) for _ in range(2)]
    await asyncio.sleep(0)

    assert await wait_any((places,), soon()) is None
    for _ in waiting:
        places.leave()
    assert await asyncio.gather(*waiting) == [places, places]


async def test_the_wait_ends_in_time_and_leaves_nothing_behind() -> None:
    places = full()
    now = asyncio.get_running_loop().time()

    assert await wait_any((places,), now + 0.05) is None
    assert 0.04 < asyncio.get_running_loop().time() - now < 1.0
    assert (places.waiting, places.taken) == (0, 2)


@pytest.mark.bug("K13")
@pytest.mark.parametrize("is_called", [False, True], ids=["waiting", "just called"])
async def test_a_place_is_not_lost_with_who_gave_up(is_called: bool) -> None:
    places = full()
    gone = asyncio.ensure_future(wait_any((places,), soon()))
    patient = asyncio.ensure_future(wait_any((places,), soon()))
    await asyncio.sleep(0)
    if is_called:
        places.leave()
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    if not is_called:
        places.leave()

    assert await patient is places
    assert (places.waiting, places.taken) == (0, 1)
