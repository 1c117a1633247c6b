"""One suite over every ledger of the registry."""

import asyncio

import pytest

from gateway.core.errors import StoreError
from gateway.core.ledger import ESTIMATED, EXACT, LEASE_EXPIRED, UNCERTAIN, Ledger, Owner, Total
from gateway.stores.ledger import MemoryLedger
from gateway.stores.registry import open_ledger
from gateway.stores.storable import MAX_AMOUNT
from tests.support.ledger_rows import EXPIRED, ROW, Open, all_of, runs, usage

pytestmark = pytest.mark.bug("K15")


async def test_starts_empty(ledger: Ledger) -> None:
    assert await all_of(ledger) == Total(0, 0, 0)
    assert list(await ledger.of_run("acme", "run_1")) == []
    assert list(await usage(ledger)) == []
    assert list(await usage(ledger, "tenant")) == []


@pytest.mark.parametrize("tags", [(), ("a",), ("a,b", "c\nd", "ключ", 'q"\\')])
@pytest.mark.parametrize("priced", [True, False])
async def test_gives_back_what_was_kept(
    ledger: Ledger, tags: tuple[str, ...], priced: bool
) -> None:
    row = ROW._replace(tags=tags, priced=priced)

    await ledger.append([row])

    (kept,) = await ledger.of_run("acme", "run_1")
    assert kept == row
    assert type(kept.priced) is bool


async def test_nothing_may_be_appended(ledger: Ledger) -> None:
    await ledger.append([])

    assert await all_of(ledger) == Total(0, 0, 0)


class TestOnce:
    async def test_a_row_counts_once_however_often_it_comes(self, ledger: Ledger) -> None:
        await ledger.append([ROW])
        await ledger.append([ROW, ROW])
        await ledger.append([ROW, ROW._replace(attempt=2)])

        assert await all_of(ledger) == Total(2 * 1234, 2 * 120, 2)

    async def test_what_was_written_stays(self, ledger: Ledger) -> None:
        await ledger.append([ROW])
        await ledger.append([ROW._replace(cost_micro=1, kind=UNCERTAIN, output=0)])

        assert list(await ledger.of_run("acme", "run_1")) == [ROW]

    @pytest.mark.fault("P-11")
    async def test_settlements_that_race_leave_one_row(self, ledger: Ledger) -> None:
        rows = runs(40)

        await asyncio.gather(*(ledger.append(order) for order in (rows, rows[::-1]) * 2))

        assert (await all_of(ledger)).calls == 40

    async def test_another_attempt_is_another_row(self, ledger: Ledger) -> None:
        await ledger.append([ROW._replace(attempt=n) for n in (3, 1, 2)])

        assert [row.attempt for row in await ledger.of_run("acme", "run_1")] == [1, 2, 3]


class TestExpiredLeases:
    async def test_it_counts_until_the_truth_arrives(self, ledger: Ledger) -> None:
        await ledger.append([EXPIRED])
        assert (await all_of(ledger)).cost_micro == 9_000

        await ledger.append([ROW])

        assert list(await ledger.of_run("acme", "run_1")) == [ROW]

    @pytest.mark.parametrize("attempt", [1, 2, 7])
    @pytest.mark.parametrize("kind", [EXACT, ESTIMATED, UNCERTAIN])
    async def test_any_attempt_takes_its_place(
        self, ledger: Ledger, attempt: int, kind: str
    ) -> None:
        real = ROW._replace(attempt=attempt, kind=kind)

        await ledger.append([EXPIRED])
        await ledger.append([real])

        assert list(await ledger.of_run("acme", "run_1")) == [real]

    @pytest.mark.parametrize("attempt", [1, 2])
    async def test_it_comes_too_late_where_the_truth_is_known(
        self, ledger: Ledger, attempt: int
    ) -> None:
        real = ROW._replace(attempt=attempt)

        await ledger.append([real])
        await ledger.append([EXPIRED])

        assert list(await ledger.of_run("acme", "run_1")) == [real]

    @pytest.mark.parametrize("turned", [False, True])
    async def test_the_truth_wins_within_one_batch(self, ledger: Ledger, turned: bool) -> None:
        rows = [EXPIRED, ROW._replace(attempt=2), ROW._replace(run_id="run_2")]

        await ledger.append(rows[::-1] if turned else rows)

        assert list(await ledger.of_run("acme", "run_1")) == [ROW._replace(attempt=2)]
        assert (await all_of(ledger)).calls == 2

    async def test_it_counts_once(self, ledger: Ledger) -> None:
        await ledger.append([EXPIRED])
        await ledger.append([EXPIRED, EXPIRED._replace(cost_micro=1)])

        assert list(await ledger.of_run("acme", "run_1")) == [EXPIRED]

    async def test_runs_and_tenants_are_told_apart(self, ledger: Ledger) -> None:
        await ledger.append([EXPIRED, EXPIRED._replace(run_id="run_2")])
        await ledger.append([ROW, ROW._replace(run_id="run_2", tenant="globex")])

        assert [row.kind for row in await ledger.of_run("acme", "run_2")] == [LEASE_EXPIRED]
        assert [row.kind for row in await ledger.of_run("globex", "run_2")] == [EXACT]


class TestOddRows:
    @pytest.mark.threat("T-6")
    @pytest.mark.parametrize("text", ["a'b", 'a"b', "a;DROP TABLE x", "a%", "ключ", "{}", "$1"])
    async def test_texts_are_data(self, ledger: Ledger, text: str) -> None:
        row = ROW._replace(tenant=text, run_id=text, key_id=text, served=text, tags=(text,))

        await ledger.append([row])

        assert list(await ledger.of_run(text, text)) == [row]
        assert (await ledger.total(Owner(text, key_id=text), 0, 0)).calls == 1
        assert [found.group for found in await usage(ledger, "served")] == [(text,)]

    async def test_texts_that_no_database_takes_are_mended(self, ledger: Ledger) -> None:
        row = ROW._replace(served="a\0b\ud800", tags=("x\0", "y" * 2_000))

        await ledger.append([row])

        (kept,) = await ledger.of_run("acme", "run_1")
        assert kept == row._replace(served="a\ufffdb?", tags=("x\ufffd", "y" * 512))

    async def test_one_that_needs_mending_changes_no_other(self, ledger: Ledger) -> None:
        rows = runs(30)
        rows[7] = rows[7]._replace(agent="a\0b")

        await ledger.append(rows)

        assert (await ledger.of_run("acme", "run_000007"))[0].agent == "a\ufffdb"
        assert list(await ledger.of_run("acme", "run_000008")) == [rows[8]]

    @pytest.mark.parametrize(
        "field",
        ["cost_micro", "input", "output", "cached", "cache_write", "reasoning", "attempt", "at_ms"],
    )
    @pytest.mark.parametrize("value", [-1, 2**63 - 1, 2**63, 2**64])
    async def test_numbers_out_of_range_are_refused(
        self, ledger: Ledger, field: str, value: int
    ) -> None:
        with pytest.raises(ValueError, match=f"{field} of run run_1"):
            await ledger.append([ROW._replace(run_id="run_0"), ROW._replace(**{field: value})])

        assert await all_of(ledger) == Total(0, 0, 0)

    async def test_many_of_the_largest_amounts_add_up(self, ledger: Ledger) -> None:
        await ledger.append(runs(4_000, cost_micro=MAX_AMOUNT, input=MAX_AMOUNT, output=MAX_AMOUNT))

        assert await all_of(ledger) == Total(4_000 * MAX_AMOUNT, 8_000 * MAX_AMOUNT, 4_000)
        assert (await usage(ledger))[0].cost_micro == 4_000 * MAX_AMOUNT


async def test_large_batches_are_kept_whole(ledger: Ledger) -> None:
    await ledger.append(runs(5_000))

    assert (await all_of(ledger)).calls == 5_000


async def test_many_tasks_may_share_a_ledger(ledger: Ledger) -> None:
    async def work(number: int) -> None:
        await ledger.append([ROW._replace(run_id=f"r{number}")])
        assert (await all_of(ledger)).calls >= 1
        assert len(await ledger.of_run("acme", f"r{number}")) == 1

    await asyncio.gather(*(work(number) for number in range(60)))

    assert (await all_of(ledger)).calls == 60


async def test_a_closed_ledger_refuses(ledger: Ledger) -> None:
    await ledger.aclose()
    await ledger.aclose()

    for call in (
        lambda: ledger.append([ROW]),
        lambda: all_of(ledger),
        lambda: ledger.of_run("acme", "run_1"),
        lambda: usage(ledger),
    ):
        with pytest.raises(StoreError) as caught:
            await call()
        assert caught.value.code == "state_unavailable"


def test_an_unknown_kind_of_ledger_is_refused() -> None:
    with pytest.raises(StoreError) as caught:
        open_ledger("cloud://user:canary@host/db")

    assert caught.value.code == "state_unavailable"
    assert "canary" not in f"{caught.value} {caught.value.detail}"


async def test_memory_keeps_the_last_runs_alone() -> None:
    ledger = MemoryLedger(runs=3)
    await ledger.append(runs(5))

    assert (await all_of(ledger)).calls == 3
    assert list(await ledger.of_run("acme", "run_000001")) == []
    assert len(await ledger.of_run("acme", "run_000004")) == 1


@pytest.mark.parametrize("ledger_kind", ["postgres", "sqlite"], indirect=True)
class TestLasting:
    async def test_what_was_kept_is_there_after_a_restart(self, open_again: Open) -> None:
        first = open_again()
        await first.append([ROW])
        await first.aclose()

        assert list(await open_again().of_run("acme", "run_1")) == [ROW]

    @pytest.mark.fault("P-11")
    async def test_processes_that_race_leave_one_row(self, open_again: Open) -> None:
        writers = [open_again() for _ in range(4)]
        rows = runs(300)

        await asyncio.gather(
            *(w.append(rows if n % 2 else rows[::-1]) for n, w in enumerate(writers))
        )

        assert (await all_of(writers[0])).calls == 300

    @pytest.mark.fault("P-11")
    async def test_the_truth_and_the_end_of_a_lease_may_race(self, open_again: Open) -> None:
        owner, sweeper = open_again(), open_again()

        for number in range(25):
            name = f"race_{number}"
            real = ROW._replace(run_id=name, attempt=2)
            await asyncio.gather(
                owner.append([real]), sweeper.append([EXPIRED._replace(run_id=name)])
            )
            assert list(await owner.of_run("acme", name)) == [real]

    @pytest.mark.bug("K42")
    async def test_gateways_that_start_together_make_one_table(self, open_again: Open) -> None:
        ledgers = [open_again() for _ in range(4)]

        totals = await asyncio.gather(*(all_of(ledger) for ledger in ledgers))

        assert totals == [Total(0, 0, 0)] * 4
