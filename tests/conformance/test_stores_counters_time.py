"""One suite over every back end of the counters: windows, what the ledger knows of earlier, leases."""

import asyncio

import pytest

from gateway.core.counting import Counters, Verdict, Window
from tests.support.counting import DAY_S, LEASE_S, hold, now_s, run, take, today, used


class TestWindows:
    @pytest.mark.bug("K17")
    async def test_the_window_must_hold_the_time_of_the_store(
        self, counters: Counters, tenant: str
    ) -> None:
        window = await today(counters, tenant)
        before = Window(window.start - DAY_S, window.start)
        after = Window(window.end, window.end + DAY_S)

        for wrong in (before, after):
            holds = (hold(tenant, "a"), hold(tenant, "b", window=wrong))
            verdict = await counters.reserve(tenant, run(), holds, LEASE_S)
            assert verdict.stale
            assert not verdict.granted
            assert verdict.refused == -1
            assert await used(counters, tenant, *holds) == [0, 0]
        fits = await counters.reserve(tenant, run(), [hold(tenant, window=window)], LEASE_S)
        assert fits.granted
        assert window.start * 1000 <= fits.now_ms < window.end * 1000

    @pytest.mark.bug("K17")
    async def test_each_window_counts_alone(self, counters: Counters, tenant: str) -> None:
        day = await today(counters, tenant)
        week = Window(day.start, day.start + 7 * DAY_S)
        holds = (hold(tenant, amount=3), hold(tenant, amount=4, window=day))
        await take(counters, tenant, holds)

        assert await used(counters, tenant, *holds, hold(tenant, window=week)) == [3, 4, 0]

    @pytest.mark.bug("K17")
    async def test_the_border_of_a_window_is_passed_without_any_job(
        self, counters: Counters, tenant: str
    ) -> None:
        start = await now_s(counters, tenant)
        second = Window(start, start + 1)
        while not (await self.full(counters, tenant, second)).stale:
            await asyncio.sleep(0.02)

        verdict = await self.full(counters, tenant, Window(start + 1, start + 61))

        assert verdict.granted
        assert verdict.used == (10,)

    async def full(self, counters: Counters, tenant: str, window: Window) -> Verdict:
        return await counters.reserve(tenant, run(), [hold(tenant, amount=10, window=window)], 60)

    async def test_a_settlement_after_the_end_counts_in_its_window(
        self, counters: Counters, tenant: str
    ) -> None:
        day = await today(counters, tenant)
        recent = hold(tenant, window=Window(day.start - DAY_S, day.start + 1))

        await counters.settle(tenant, run(), [recent], [7])

        assert await used(counters, tenant, recent) == [7]

    async def test_what_is_long_over_is_forgotten(self, counters: Counters, tenant: str) -> None:
        old = hold(tenant, window=Window(1000, 2000))

        await counters.settle(tenant, run(), [old], [7])

        assert await used(counters, tenant, old) == [0]


class TestLifting:
    """What was spent before the store's memory began comes from the ledger."""

    async def test_an_older_window_needs_its_base(self, counters: Counters, tenant: str) -> None:
        day = await today(counters, tenant)
        holds = (
            hold(tenant, "plain", window=day),
            hold(tenant, "day", lifted=True, window=day),
            hold(tenant, "total", lifted=True),
        )

        verdict = await counters.reserve(tenant, run(), holds, LEASE_S)

        assert verdict.missing == (1, 2)
        assert not verdict.granted
        assert await used(counters, tenant, *holds) == [0, 0, 0]

    async def test_the_base_counts_as_spent(self, counters: Counters, tenant: str) -> None:
        one = hold(tenant, amount=2, lifted=True)

        given = await counters.reserve(tenant, run(), [one._replace(base=7)], LEASE_S)
        later = await counters.reserve(tenant, run(), [one], LEASE_S)

        assert given.used == (9,)
        assert not later.missing
        assert later.refused == 0

    async def test_the_base_is_not_added_to_what_was_counted(
        self, counters: Counters, tenant: str
    ) -> None:
        one = hold(tenant, amount=1, limit=100, lifted=True)
        await counters.settle(tenant, run(), [one], [5])

        assert (await counters.reserve(tenant, run(), [one], LEASE_S)).missing == (0,)
        based = one._replace(base=3)
        assert (await counters.reserve(tenant, run(), [based], LEASE_S)).used == (6,)
        larger = one._replace(base=30)
        assert (await counters.reserve(tenant, run(), [larger], LEASE_S)).used == (32,)

    async def test_what_has_no_room_keeps_its_base(self, counters: Counters, tenant: str) -> None:
        one = hold(tenant, amount=2, lifted=True)

        full = await counters.reserve(tenant, run(), [one._replace(base=9)], LEASE_S)
        again = await counters.reserve(tenant, run(), [one], LEASE_S)

        assert (full.refused, full.used) == (0, (9,))
        assert (again.refused, again.used, again.missing) == (0, (9,), ())

    async def test_nothing_is_lifted_while_another_is_missing(
        self, counters: Counters, tenant: str
    ) -> None:
        holds = (hold(tenant, "a", lifted=True, base=5), hold(tenant, "b", lifted=True))

        verdict = await counters.reserve(tenant, run(), holds, LEASE_S)

        assert verdict.missing == (1,)
        assert verdict.used == (0, 0)

    async def test_a_window_that_began_later_needs_none(
        self, counters: Counters, tenant: str
    ) -> None:
        start = await now_s(counters, tenant) + 1
        one = hold(tenant, lifted=True, window=Window(start, start + 60))
        while (verdict := await counters.reserve(tenant, run(), [one], LEASE_S)).stale:
            await asyncio.sleep(0.05)

        assert verdict.granted


class TestLeases:
    @pytest.mark.bug("K15")
    async def test_what_is_not_settled_in_time_comes_back_whole(
        self, counters: Counters, tenant: str
    ) -> None:
        day = await today(counters, tenant)
        holds = (
            hold(tenant, "a", 2, lifted=True, base=1),
            hold(tenant, "b", 3, limit=None, window=day),
        )
        name, note = run(), bytes(range(256)) * 16
        await counters.reserve(tenant, name, holds, 0.0, note)
        await counters.extend(tenant, name, [4, 3])

        [found] = await counters.expired(tenant, 10)

        assert found.id == name
        assert found.note == note
        assert found.holds == (holds[0]._replace(amount=4, base=None), holds[1])
        assert await counters.settle(tenant, name, found.holds, [hold.amount for hold in found.holds])  # fmt: skip
        assert list(await counters.expired(tenant, 10)) == []
        assert await used(counters, tenant, *holds) == [5, 3]

    async def test_a_lease_that_runs_is_left_alone(self, counters: Counters, tenant: str) -> None:
        name = await take(counters, tenant, [hold(tenant)], lease_s=0.15)
        assert list(await counters.expired(tenant, 10)) == []

        async with asyncio.timeout(5):
            while not (found := await counters.expired(tenant, 10)):
                await asyncio.sleep(0.02)

        assert [one.id for one in found] == [name]

    async def test_a_renewed_lease_runs_on(self, counters: Counters, tenant: str) -> None:
        first, second = [await take(counters, tenant, [hold(tenant)], 0.0) for _ in range(2)]

        await counters.renew(tenant, [first, run()], LEASE_S)

        assert [one.id for one in await counters.expired(tenant, 10)] == [second]
        await counters.renew(tenant, [first], 0.0)
        assert {one.id for one in await counters.expired(tenant, 10)} == {first, second}

    async def test_renewing_nothing_is_no_error(self, counters: Counters, tenant: str) -> None:
        await counters.renew(tenant, [], LEASE_S)

    async def test_at_most_the_limit_comes_back(self, counters: Counters, tenant: str) -> None:
        names = [await take(counters, tenant, [hold(tenant)], 0.0) for _ in range(5)]

        found = [one.id for one in await counters.expired(tenant, 3)]

        assert len(found) == 3
        assert set(found) < set(names)
