"""Nothing is admitted that could pass a cap, and what was held is always given back."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core import clock, codec
from gateway.core.call import NOTHING_CHARGED, Charge
from gateway.core.errors import StoreError
from gateway.core.lease import Note
from gateway.core.ledger import EXACT
from gateway.core.money import Price
from gateway.core.usage import Usage
from gateway.stores.memory import MemoryCounters
from tests.support.layer import ANSWER
from tests.support.rounds import rounds
from tests.support.spending import Attempt, Down, PricedModel, Purse, Spender, call_of

CHEAP, DEAR = Price(1_000_000, 1_000_000), Price(100_000_000, 100_000_000)


def tokens(cap: int, **more: Any) -> dict[str, Any]:
    return {"limits": [{"tokens": cap, "per": "day", **more}]}


@st.composite
def crowds(draw: st.DrawFn) -> list[Spender]:
    """Return runs with bounds of their own, of which none uses more than it said."""
    found: list[Spender] = []
    for _ in range(draw(st.integers(1, 12))):
        most = draw(st.integers(1, 60))
        used = draw(st.none() | st.tuples(st.integers(0, 10), st.integers(0, most)))
        again = draw(st.booleans())
        spender = Spender(call_of(max_tokens=most), (used, used) if again else (used,))
        spender.wait_s = draw(st.sampled_from([0.0, 0.001]))
        found.append(spender)
    return found


class Watching(MemoryCounters):
    """Counters that look at every cap after every call."""

    worst = 0

    def look(self) -> None:
        self.worst = max([self.worst, *(each.used for each in self._counters.values())])

    def reserve_now(self, *arguments: Any, **named: Any) -> Any:
        verdict = super().reserve_now(*arguments, **named)
        self.look()
        return verdict

    async def extend(self, *arguments: Any, **named: Any) -> Any:
        verdict = await super().extend(*arguments, **named)
        self.look()
        return verdict


@pytest.mark.bug("K14", "K15")
@settings(max_examples=len(rounds(60)), deadline=None)
@given(crowds(), st.integers(1, 400))
async def test_what_was_admitted_never_passes_the_cap(crowd: list[Spender], cap: int) -> None:
    counters = Watching()
    purse = Purse(counters)
    layer = purse.layer("budget", **tokens(cap))

    await asyncio.gather(*(spender.go(layer) for spender in crowd))
    await purse.settle()

    assert counters.worst <= cap
    charged = sum(charge.tokens for each in crowd for charge in each.call.run.charges)
    assert [spent for spent, _ in purse.held.values()] in ([charged], [])
    assert all(held == 0 for _, held in purse.held.values())
    assert {each.code for each in crowd} <= {"", "budget_exceeded"}
    assert charged <= cap


@pytest.mark.bug("K14")
@settings(max_examples=len(rounds(40)), deadline=None)
@given(crowds(), st.integers(1, 5), st.integers(1, 5))
async def test_calls_at_once_never_pass_their_limit(
    crowd: list[Spender], at_once: int, requests: int
) -> None:
    purse = Purse(Watching())
    layer = purse.layer("limits", concurrent=at_once, requests={"per_day": requests})

    await asyncio.gather(*(spender.go(layer) for spender in crowd))
    await purse.settle()

    passed = sum(spender.entered for spender in crowd)
    assert passed <= requests
    assert sorted(purse.held.values()) in ([(0, 0), (passed, 0)], [])


@pytest.mark.bug("K14")
async def test_layers_that_were_joined_hold_everything_or_nothing() -> None:
    purse = Purse()
    layers = [
        purse.layer("limits", requests={"per_day": 10}),
        purse.layer("budget", **tokens(50)),
        purse.layer("budget", "second", limits=[{"tokens": 30, "per": "hour"}]),
    ]
    assert layers[0].join(layers[1])
    assert layers[0].join(layers[2])

    first = await Spender(call_of(max_tokens=10)).go(*layers)
    await purse.settle()
    second = Spender(call_of(max_tokens=25))

    assert (first, await second.go(*layers)) == ("", "budget_exceeded")
    assert second.error.details is not None
    assert second.error.details["middleware"] == "second"
    await purse.settle()
    assert sorted(purse.held.values()) == [(1, 0), (10, 0), (10, 0)]


@pytest.mark.bug("K14", "K16")
async def test_the_dearest_target_is_reserved() -> None:
    purse = Purse()
    layer = purse.layer("budget", limits=[{"usd": 0.001, "per": "day"}])
    fits = Spender(call_of(PricedModel(targets=(CHEAP,)), max_tokens=100), price=CHEAP)
    dear = Spender(call_of(PricedModel(targets=(CHEAP, DEAR)), max_tokens=100))

    assert await fits.go(layer) == ""
    assert await dear.go(layer) == "budget_exceeded"
    assert not dear.entered


@pytest.mark.bug("K14")
async def test_a_dearer_call_on_the_way_is_refused_before_it_is_sent() -> None:
    purse = Purse()
    layer = purse.layer("budget", limits=[{"usd": 0.002, "per": "day"}])
    spender = Spender(call_of(PricedModel(targets=(CHEAP,)), max_tokens=100), price=DEAR)

    assert await spender.go(layer) == "budget_exceeded"
    assert spender.call.run.attempts == 0
    await purse.settle()
    assert list(purse.held.values()) == [(0, 0)]


@pytest.mark.bug("K14")
async def test_a_failed_try_that_cost_something_leaves_less_for_the_next() -> None:
    purse = Purse()
    layer = purse.layer("budget", **tokens(120))
    spender = Spender(call_of(max_tokens=100), [(10, 90), (1, 1)])
    assert await spender.go(layer) == "budget_exceeded"
    assert spender.call.run.attempts == 1
    purse = Purse()
    layer = purse.layer("budget", **tokens(120))
    free = Spender(call_of(max_tokens=10), [None, None, (1, 1)])
    assert await free.go(layer) == ""


@pytest.mark.bug("K14")
async def test_two_calls_at_once_of_one_run_are_both_held() -> None:
    purse = Purse()
    layer = purse.layer("budget", **tokens(500))
    call = call_of(max_tokens=100)

    async def inside(_: object) -> Any:
        both = [Attempt(call.run), Attempt(call.run)]
        for attempt in both:
            await layer.before_attempt(attempt)
        (held,) = (each for _, each in purse.held.values())
        assert held >= 200
        for attempt in both:
            layer.after_attempt(attempt, NOTHING_CHARGED)
        return ANSWER

    await layer.wrap_model(call, inside)
    layer.finish(call.run)


@pytest.mark.bug("K16")
async def test_an_unknown_price_is_refused_or_its_tokens_counted() -> None:
    purse = Purse()
    caps = [{"usd": 1, "per": "day"}, {"tokens": 1000, "per": "day"}]
    unknown = PricedModel(targets=(None,))
    strict = purse.layer("budget", limits=caps)
    loose = purse.layer("budget", "loose", limits=caps, unpriced="tokens_only")

    assert await Spender(call_of(unknown, max_tokens=9), price=None).go(strict) == "unpriced_model"
    spender = Spender(call_of(unknown, max_tokens=9), price=None)
    assert await spender.go(loose) == ""
    assert len(spender.call.run.warnings) == 1
    await purse.settle()
    assert sorted(purse.held.values()) == [(0, 0), (10, 0)]


def test_only_a_cap_that_refuses_makes_careful() -> None:
    purse = Purse()
    assert purse.layer("budget", **tokens(9)).admission._strict
    loose: list[dict[str, Any]] = [{"on_exceeded": "warn"}, {"estimate": "expected"}]
    for options in ({**tokens(9), **more} for more in loose):
        assert not purse.layer("budget", **options).admission._strict
    assert not purse.layer("limits", tokens={"per_day": 9}).admission._strict


async def test_a_strict_budget_charges_cut_calls_at_the_most() -> None:
    purse = Purse()
    one, two = call_of(max_tokens=9), call_of(max_tokens=9)
    await Spender(one).go(purse.layer("budget", **tokens(9000)))
    await Spender(two).go(purse.layer("limits", requests={"per_day": 9}))

    assert (one.run.bound, two.run.bound) == ((11, 9), None)


# ---------------------------------------------------------------- the store


@pytest.mark.fault("RS-2")
async def test_without_the_store_nothing_is_admitted() -> None:
    purse = Purse()
    assert isinstance(purse.counters, Down)
    purse.counters.down = True
    spender = Spender(call_of(max_tokens=9))

    assert await spender.go(purse.layer("budget", **tokens(9000))) == "state_unavailable"
    assert isinstance(spender.error, StoreError)
    assert spender.error.details == {"middleware": "budget"}
    assert not spender.entered


@pytest.mark.bug("K18")
@pytest.mark.fault("RS-2", "RS-12")
async def test_or_a_share_of_each_cap_in_each_process_settled_once_the_store_is_back() -> None:
    purse = Purse(on_state_down="open")
    assert isinstance(purse.counters, Down)
    purse.counters.down = True
    layer = purse.layer("budget", **tokens(5000))  # 2 %: 100

    codes = [await Spender(call_of(max_tokens=30), [(10, 20)]).go(layer) for _ in range(4)]
    assert codes == ["", "", "budget_exceeded", "budget_exceeded"]

    purse.counters.down = False
    await purse.settle()
    assert list(purse.held.values()) == [(60, 0)]


@pytest.mark.fault("RS-2")
async def test_whoever_is_refused_for_want_of_the_store_is_told_to_come_back() -> None:
    purse = Purse(on_state_down="open")
    assert isinstance(purse.counters, Down)
    purse.counters.down = True
    layer = purse.layer("budget", **tokens(5000))  # 2 %: 100
    spender = Spender(call_of(max_tokens=100))

    assert await spender.go(layer) == "budget_exceeded"
    assert spender.error.message.startswith("The store of budgets cannot be reached")
    assert (spender.error.should_retry, spender.error.retry_after_s) == (True, 1.0)

    purse.counters.down = False
    spender = Spender(call_of(max_tokens=9000))
    assert await spender.go(layer) == "budget_exceeded"
    assert (spender.error.should_retry, spender.error.retry_after_s) == (False, None)


async def test_a_refusal_says_what_the_call_needs() -> None:
    purse = Purse()
    for layer in (
        purse.layer("budget", **tokens(50)),
        purse.layer("limits", tokens={"per_day": 50}),
    ):
        await Spender(call_of(max_tokens=9), [(20, 20)]).go(layer)
        await purse.settle()
        spender = Spender(call_of(max_tokens=30))
        assert await spender.go(layer)
        assert spender.error.details is not None
        assert spender.error.details["needed"] == 42


async def test_limits_hold_in_full_while_the_store_is_down() -> None:
    purse = Purse(on_state_down="open")
    assert isinstance(purse.counters, Down)
    purse.counters.down = True
    layer = purse.layer("limits", requests={"per_day": 2})

    assert [await Spender(call_of()).go(layer) for _ in range(3)] == ["", "", "limit_exceeded"]


@pytest.mark.bug("K15")
@pytest.mark.fault("RS-3")
async def test_a_reservation_whose_reply_was_lost_is_given_back() -> None:
    purse = Purse()
    assert isinstance(purse.counters, Down)
    purse.counters.lost = True

    layer = purse.layer("limits", tokens={"per_day": 99})
    assert await Spender(call_of(max_tokens=9)).go(layer) == "state_unavailable"
    assert next(iter(purse.held.values()))[1] > 0
    await purse.settle()
    assert list(purse.held.values()) == [(0, 0)]


@pytest.mark.bug("K15")
async def test_a_client_that_leaves_while_the_store_is_asked_holds_nothing() -> None:
    class Slow(MemoryCounters):
        answers_at_once = False

        async def reserve(self, *arguments: Any, **named: Any) -> Any:
            verdict = await super().reserve(*arguments, **named)
            await asyncio.sleep(10)
            return verdict

    purse = Purse(Slow())
    work = asyncio.ensure_future(
        Spender(call_of(max_tokens=9)).go(purse.layer("budget", **tokens(99)))
    )
    await asyncio.sleep(0.01)
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    await purse.settle()

    assert all(held == 0 for _, held in purse.held.values())


@pytest.mark.fault("RS-7")
@pytest.mark.bug("K15")
async def test_what_was_spent_before_the_store_forgot_comes_from_the_ledger() -> None:
    purse = Purse()
    note = Note("t", "run_0", "acme", "k", "", "", "", "m1", "chat", "r", 0, 0, priced=True)
    row = note.row(int(clock.wall() * 1000), 80, 80)._replace(kind=EXACT)
    await purse.ledger.append([row])
    layer = purse.layer("budget", **tokens(120))

    assert await Spender(call_of(max_tokens=9)).go(layer) == ""
    assert await Spender(call_of(max_tokens=20)).go(layer) == "budget_exceeded"
    await purse.settle()
    assert list(purse.held.values()) == [(90, 0)]


@pytest.mark.fault("RS-7")
@pytest.mark.bug("K15")
async def test_a_run_whose_reservation_the_store_forgot_reserves_anew() -> None:
    counters = MemoryCounters()
    purse = Purse(counters)
    layer = purse.layer("budget", **tokens(1000))
    call = call_of(max_tokens=100)

    async def inside(_: object) -> Any:
        first, second = Attempt(call.run), Attempt(call.run, body=b'{"max_tokens":100}')
        await layer.before_attempt(first)
        call.run.attempts += 1
        call.run.charges.append(Charge(EXACT, Usage(10, 90), 0, priced=True))
        layer.after_attempt(first, call.run.charges[0])
        counters._tenants.clear()
        counters._counters.clear()
        await layer.before_attempt(second)
        (held,) = (each for _, each in purse.held.values())
        assert held >= 200
        layer.after_attempt(second, NOTHING_CHARGED)
        return ANSWER

    await layer.wrap_model(call, inside)
    layer.finish(call.run)
    await purse.settle()
    assert list(purse.held.values()) == [(100, 0)]


async def test_a_window_that_ended_meanwhile_is_worked_out_anew() -> None:
    day_s = 86_400.0
    purse = Purse(MemoryCounters(wall=lambda: clock.wall() + 3 * day_s))
    layer = purse.layer("limits", requests={"per_hour": 1})

    assert [await Spender(call_of()).go(layer) for _ in range(2)] == ["", "limit_exceeded"]


@pytest.mark.bug("K17")
async def test_a_cap_is_full_in_one_window_and_free_in_the_next() -> None:
    ahead = [0.0]
    purse = Purse(MemoryCounters(wall=lambda: clock.wall() + ahead[0]))
    for per, step_s in (("minute", 61), ("hour", 3601), ("day", 90_001), ("month", 32 * 86_400)):
        layer = purse.layer(
            "budget", per, limits=[{"tokens": 70, "per": per}], timezone="Europe/Berlin"
        )
        for _ in range(2):
            codes = [await Spender(call_of(max_tokens=20), [(10, 20)]).go(layer) for _ in range(3)]
            await purse.settle()
            assert codes == ["", "", "budget_exceeded"], per
            await Spender(call_of()).go(purse.layer("limits", requests={"per_day": 9}))
            ahead[0] += step_s


# ---------------------------------------------------------------- what is held


@pytest.mark.parametrize(
    ("fields", "output"),
    [
        ({"max_tokens": 50}, 50),
        ({"max_completion_tokens": 40, "max_tokens": 50}, 50),
        ({"max_tokens": 50, "n": 3}, 150),
        ({"max_tokens": "many"}, 4096),
        ({"max_tokens": -1, "n": 0}, 4096),
        ({}, 4096),
    ],
)
async def test_the_answer_is_bound_by_what_is_asked(fields: dict[str, Any], output: int) -> None:
    purse = Purse()
    call = call_of(**fields)
    size = sum(len(name) + len(codec.encode(value)) for name, value in fields.items())
    await Spender(call, [], ends=False).go(purse.layer("budget", **tokens(10**6)))

    ticket = call.run.state["admission:budget"]
    assert ticket.amounts[0] == output + size


@pytest.mark.parametrize(
    ("model", "output"),
    [
        (PricedModel(max_output_tokens=300), 300),
        (PricedModel(max_output_tokens=300, usual_output_tokens=200), 200),
    ],
)
async def test_or_by_what_is_known_of_the_model(model: PricedModel, output: int) -> None:
    purse = Purse()
    call = call_of(model)
    await Spender(call, [], ends=False).go(purse.layer("budget", **tokens(10**6)))

    assert call.run.state["admission:budget"].amounts[0] == output
    assert "max_completion_tokens" not in (call.original.fields or {})


async def test_a_prompt_is_no_longer_than_the_model_takes() -> None:
    purse = Purse()
    call = call_of(PricedModel(context_tokens=1000), messages=["x" * 5000], max_tokens=10)
    await Spender(call, [], ends=False).go(purse.layer("budget", **tokens(10**6)))

    assert call.run.state["admission:budget"].amounts[0] == 1010


@pytest.mark.fault("RS-2")
async def test_nothing_is_given_back_where_the_store_was_not_asked() -> None:
    class Away(Down):
        async def reserve(self, *arguments: Any, **named: Any) -> Any:
            error = StoreError("state_unavailable")
            error.reason = "down"
            raise error

    purse = Purse(Away())
    assert await Spender(call_of(max_tokens=9)).go(purse.layer("budget", **tokens(99))) == (
        "state_unavailable"
    )
    assert not purse.settler._waiting
