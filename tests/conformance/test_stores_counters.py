"""One suite over every back end of the counters: reserving, extending, settling."""

import asyncio

import pytest

from gateway.core.counting import Counters, Ended, Holds
from gateway.core.errors import StoreError
from gateway.stores.registry import open_counters
from tests.support.counting import LEASE_S, Opening, hold, run, take, used


class TestReserving:
    async def test_what_fits_is_held(self, counters: Counters, tenant: str) -> None:
        holds = (hold(tenant, "a", 4), hold(tenant, "b", 7))

        verdict = await counters.reserve(tenant, run(), holds, LEASE_S)

        assert verdict.granted
        assert verdict.used == (4, 7)
        assert await used(counters, tenant, *holds) == [4, 7]

    async def test_the_limit_itself_still_fits(self, counters: Counters, tenant: str) -> None:
        verdict = await counters.reserve(tenant, run(), [hold(tenant, amount=10)], LEASE_S)

        assert verdict.granted

    @pytest.mark.bug("K14")
    async def test_all_or_nothing(self, counters: Counters, tenant: str) -> None:
        await take(counters, tenant, [hold(tenant, "b", 9)])
        holds = (hold(tenant, "a", 4), hold(tenant, "b", 2), hold(tenant, "c", 1))

        verdict = await counters.reserve(tenant, run(), holds, LEASE_S)

        assert not verdict.granted
        assert verdict.refused == 1
        assert verdict.used == (0, 9, 0)
        assert await used(counters, tenant, *holds) == [0, 9, 0]

    @pytest.mark.bug("K14")
    async def test_a_refused_reservation_leaves_nothing(
        self, counters: Counters, tenant: str
    ) -> None:
        name = run()
        await counters.reserve(tenant, name, [hold(tenant, amount=11)], 0.0)

        assert list(await counters.expired(tenant, 10)) == []
        assert not (await counters.extend(tenant, name, [1])).granted

    async def test_without_a_limit_everything_fits(self, counters: Counters, tenant: str) -> None:
        one = hold(tenant, amount=2**40, limit=None)

        assert (await counters.reserve(tenant, run(), [one], LEASE_S)).used == (2**40,)

    async def test_nothing_fits_above_the_limit(self, counters: Counters, tenant: str) -> None:
        await counters.settle(tenant, run(), [hold(tenant)], [11])

        verdict = await counters.reserve(tenant, run(), [hold(tenant, amount=0)], LEASE_S)

        assert verdict.refused == 0

    @pytest.mark.bug("K14")
    async def test_one_counter_named_twice_holds_both(
        self, counters: Counters, tenant: str
    ) -> None:
        pair = (hold(tenant, amount=6), hold(tenant, amount=6))

        assert (await counters.reserve(tenant, run(), pair, LEASE_S)).refused == 1
        name = await take(counters, tenant, [hold(tenant, amount=5)] * 2)
        assert await used(counters, tenant, pair[0]) == [10]
        await counters.settle(tenant, name, [hold(tenant)] * 2, [1, 2])
        assert await used(counters, tenant, pair[0]) == [3]

    async def test_a_reservation_of_nothing_is_granted(
        self, counters: Counters, tenant: str
    ) -> None:
        assert (await counters.reserve(tenant, run(), (), LEASE_S)).granted

    @pytest.mark.bug("K15")
    async def test_a_repeated_call_reserves_once(self, counters: Counters, tenant: str) -> None:
        name, holds = run(), [hold(tenant, amount=6)]
        first = await counters.reserve(tenant, name, holds, LEASE_S)

        again = await counters.reserve(tenant, name, holds, LEASE_S)

        assert first.granted
        assert again.granted
        assert again.used == (6,)

    @pytest.mark.bug("K15")
    async def test_a_late_repetition_after_the_settlement_reserves_nothing(
        self, counters: Counters, tenant: str
    ) -> None:
        holds = [hold(tenant, amount=6)]
        name = await take(counters, tenant, holds)
        await counters.settle(tenant, name, holds, [2])

        assert (await counters.reserve(tenant, name, holds, LEASE_S)).granted
        assert await used(counters, tenant, *holds) == [2]

    @pytest.mark.bug("K14", "K18")
    async def test_callers_at_once_never_pass_the_limit(
        self, opening: Opening, tenant: str
    ) -> None:
        async with opening() as one, opening(one) as two:
            asked = [
                side.reserve(tenant, run(), [hold(tenant, amount=3, limit=50)], LEASE_S)
                for side in (one, two)
                for _ in range(40)
            ]
            verdicts = await asyncio.gather(*asked)

            assert sum(verdict.granted for verdict in verdicts) == 16
            assert await used(one, tenant, hold(tenant)) == [48]

    @pytest.mark.threat("T-16")
    async def test_tenants_share_nothing(self, counters: Counters, tenant: str) -> None:
        other = f"{tenant}-other"
        name = run()
        await counters.reserve(tenant, name, [hold(tenant, amount=10)], 0.0)

        verdict = await counters.reserve(other, name, [hold(other, amount=10)], LEASE_S)

        assert verdict.used == (10,)
        assert list(await counters.expired(other, 10)) == []
        assert await counters.settle(other, name, [hold(other)], [1])
        assert await used(counters, tenant, hold(tenant)) == [10]

    @pytest.mark.parametrize("amount", [-1, 2**53])
    async def test_numbers_that_are_not_exact_are_refused(
        self, counters: Counters, tenant: str, amount: int
    ) -> None:
        with pytest.raises(ValueError, match="amount"):
            await counters.reserve(tenant, run(), [hold(tenant, amount=amount)], LEASE_S)
        with pytest.raises(ValueError, match="amount"):
            await counters.extend(tenant, run(), [amount])
        with pytest.raises(ValueError, match="amount"):
            await counters.settle(tenant, run(), [hold(tenant)], [amount])

    async def test_large_numbers_are_exact(self, counters: Counters, tenant: str) -> None:
        large = 2**53 - 2
        one = hold(tenant, amount=large, limit=large + 1)
        name = await take(counters, tenant, [one])

        assert (await counters.extend(tenant, name, [large + 1])).used == (large + 1,)
        await counters.settle(tenant, name, [one], [large])
        assert (await counters.reserve(tenant, run(), [hold(tenant, limit=large)], LEASE_S)).refused == 0  # fmt: skip
        assert (await counters.reserve(tenant, run(), [hold(tenant, limit=large + 1)], LEASE_S)).used == (large + 1,)  # fmt: skip


class TestExtending:
    async def test_amounts_rise_to_totals(self, counters: Counters, tenant: str) -> None:
        holds = (hold(tenant, "a", 2), hold(tenant, "b", 3))
        name = await take(counters, tenant, holds)

        assert (await counters.extend(tenant, name, [5, 3])).used == (5, 3)
        assert (await counters.extend(tenant, name, [5, 3])).used == (5, 3)

    async def test_a_lower_amount_changes_nothing(self, counters: Counters, tenant: str) -> None:
        name = await take(counters, tenant, [hold(tenant, amount=5)])

        verdict = await counters.extend(tenant, name, [1])

        assert verdict.granted
        assert verdict.used == (5,)

    @pytest.mark.bug("K14")
    async def test_all_or_nothing(self, counters: Counters, tenant: str) -> None:
        holds = (hold(tenant, "a", 2), hold(tenant, "b", 3))
        name = await take(counters, tenant, holds)

        verdict = await counters.extend(tenant, name, [5, 11])

        assert verdict.refused == 1
        assert verdict.used == (2, 3)
        assert await used(counters, tenant, *holds) == [2, 3]

    async def test_an_unchanged_amount_fits_though_the_limit_was_passed(
        self, counters: Counters, tenant: str
    ) -> None:
        holds = (hold(tenant, "a", 2), hold(tenant, "b", 3))
        name = await take(counters, tenant, holds)
        await counters.settle(tenant, run(), [hold(tenant, "b")], [20])

        assert (await counters.extend(tenant, name, [5, 3])).granted

    @pytest.mark.bug("K15")
    async def test_what_is_not_reserved_cannot_be_extended(
        self, counters: Counters, tenant: str
    ) -> None:
        name = await take(counters, tenant, [hold(tenant)])
        await counters.settle(tenant, name, [hold(tenant)], [1])

        for unknown in (run(), name):
            verdict = await counters.extend(tenant, unknown, [5])
            assert not verdict.granted
            assert verdict.refused == 0
        assert await used(counters, tenant, hold(tenant)) == [1]

    @pytest.mark.bug("K18")
    async def test_another_process_may_extend(self, opening: Opening, tenant: str) -> None:
        async with opening() as one, opening(one) as two:
            name = await take(one, tenant, [hold(tenant, amount=2)])

            assert (await two.extend(tenant, name, [5])).used == (5,)


class TestSettling:
    @pytest.mark.bug("K15")
    async def test_the_reservation_becomes_what_was_used(
        self, counters: Counters, tenant: str
    ) -> None:
        holds = (hold(tenant, "a", 5), hold(tenant, "b", 5))
        name = await take(counters, tenant, holds)
        await counters.extend(tenant, name, [6, 7])

        assert await counters.settle(tenant, name, holds, [0, 9])
        assert await used(counters, tenant, *holds) == [0, 9]
        assert list(await counters.expired(tenant, 10)) == []

    @pytest.mark.bug("K15")
    async def test_a_second_settlement_changes_nothing(
        self, counters: Counters, tenant: str
    ) -> None:
        holds = [hold(tenant, amount=5)]
        name = await take(counters, tenant, holds)

        assert await counters.settle(tenant, name, holds, [3])
        assert not await counters.settle(tenant, name, holds, [4])
        assert await used(counters, tenant, *holds) == [3]

    @pytest.mark.bug("K15")
    async def test_what_the_store_does_not_know_counts_once(
        self, counters: Counters, tenant: str
    ) -> None:
        holds, name = [hold(tenant, amount=5)], run()

        assert await counters.settle(tenant, name, holds, [3])
        assert not await counters.settle(tenant, name, holds, [3])
        assert (await counters.reserve(tenant, name, holds, LEASE_S)).granted
        assert await used(counters, tenant, *holds) == [3]

    @pytest.mark.bug("K15")
    async def test_runs_of_several_tenants_are_settled_together_once(
        self, counters: Counters, tenant: str
    ) -> None:
        tenants = (tenant, f"{tenant}-2", tenant, f"{tenant}-2", tenant)
        ended: list[Ended] = []
        for each, owner in enumerate(tenants):
            holds = Holds([hold(owner, "a", 2), *([hold(owner, "b", 3)] if each % 2 else [])])
            name = await take(counters, owner, holds)
            ended.append(Ended(owner, name, holds, tuple(range(each, each + len(holds)))))
        await counters.settle(*ended[0])

        assert list(await counters.settle_all(ended)) == [None] * len(ended)
        assert list(await counters.settle_all([*reversed(ended)])) == [None] * len(ended)

        assert list(await counters.settle_all([])) == []
        assert await used(counters, tenant, hold(tenant, "a")) == [0 + 2 + 4]
        other = f"{tenant}-2"
        assert await used(counters, other, hold(other, "a"), hold(other, "b")) == [1 + 3, 2 + 4]
        assert list(await counters.expired(tenant, 10)) == []

    async def test_amounts_take_the_place_of_what_holds_say(
        self, counters: Counters, tenant: str
    ) -> None:
        holds = Holds([hold(tenant, "a", limit=10), hold(tenant, "b", limit=10)])
        for number, amounts in enumerate(((2, 3), (4, 5), (4, 2))):
            verdict = await counters.reserve(tenant, f"{number}", holds, LEASE_S, b"", amounts)
            assert verdict.refused == -1
        verdict = await counters.reserve(tenant, "more", holds, LEASE_S, b"", (0, 1))

        assert (verdict.refused, verdict.used) == (1, (10, 10))

    async def test_holds_of_nothing_are_settled(self, counters: Counters, tenant: str) -> None:
        holds = (hold(tenant, "a", 0), hold(tenant, "b", 0))
        name = await take(counters, tenant, holds)

        assert await counters.settle(tenant, name, holds, [0, 4])
        assert await used(counters, tenant, *holds) == [0, 4]

    async def test_more_than_the_limit_is_counted(self, counters: Counters, tenant: str) -> None:
        holds = [hold(tenant, amount=5)]
        name = await take(counters, tenant, holds)

        await counters.settle(tenant, name, holds, [25])

        assert await used(counters, tenant, *holds) == [25]

    async def test_other_reservations_stay(self, counters: Counters, tenant: str) -> None:
        holds = [hold(tenant, amount=3)]
        first, _ = await take(counters, tenant, holds), await take(counters, tenant, holds)

        await counters.settle(tenant, first, holds, [1])

        assert await used(counters, tenant, *holds) == [4]

    @pytest.mark.bug("K15")
    async def test_of_settlements_at_once_one_counts(self, opening: Opening, tenant: str) -> None:
        async with opening() as one, opening(one) as two:
            holds = [hold(tenant, amount=5)]
            name = await take(one, tenant, holds)

            done = await asyncio.gather(
                *(side.settle(tenant, name, holds, [2]) for side in (one, two) for _ in range(5))
            )

            assert sum(done) == 1
            assert await used(two, tenant, *holds) == [2]


async def test_of_no_counters_none_are_used(counters: Counters, tenant: str) -> None:
    assert list(await counters.used(tenant, ())) == []


async def test_closed_counters_refuse(opening: Opening, tenant: str) -> None:
    async with opening() as counters:
        await counters.used(tenant, [hold(tenant)])
        await counters.aclose()
        await counters.aclose()

        for call in (
            counters.reserve(tenant, run(), [hold(tenant)], LEASE_S),
            counters.extend(tenant, run(), [1]),
            counters.settle(tenant, run(), [hold(tenant)], [1]),
            counters.renew(tenant, ["a"], LEASE_S),
            counters.expired(tenant, 1),
            counters.used(tenant, [hold(tenant)]),
        ):
            with pytest.raises(StoreError) as caught:
                await call
            assert caught.value.code == "state_unavailable"


@pytest.mark.bug("K28")
def test_an_unknown_kind_of_store_is_refused() -> None:
    with pytest.raises(StoreError) as caught:
        open_counters("cloud://user:canary@host/db", lambda work, _: work.close())

    assert caught.value.code == "state_unavailable"
    assert "canary" not in f"{caught.value} {caught.value.detail}"
