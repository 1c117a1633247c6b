"""Whatever was reserved is settled once, and every row reaches the ledger, however often the stores are down."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from gateway.core import codec
from gateway.core.counting import Hold
from gateway.core.errors import StoreError
from gateway.core.lease import Note, read_note, used_of
from gateway.core.ledger import EXACT, LEASE_EXPIRED, LedgerRow
from gateway.lifecycle.settle import LedgerWriter, Settler
from gateway.stores.ledger import MemoryLedger
from gateway.stores.memory import MemoryCounters
from tests.support.scripted_upstream import until

HOLDS = (
    Hold("gw:{acme}:limits:r", 1, 10),
    Hold("gw:{acme}:limits:c", 1, 10),
    Hold("gw:{acme}:budget:t", 500, 10_000),
    Hold("gw:{acme}:budget:u", 9_000, 100_000),
)
NOTE = Note("rctu", "run_1", "acme", "k", "", "", "", "m", "chat", "req_1", 500, 9_000, priced=True)


def row(run_id: str, attempt: int = 1, kind: str = EXACT) -> LedgerRow:
    return NOTE._replace(run_id=run_id).row(1000, 30, 600)._replace(attempt=attempt, kind=kind)


@dataclass
class Shaky(MemoryCounters):
    """Counters that are down for the next calls."""

    answers_at_once = False
    down: int = 0
    settled: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        super().__init__()

    async def settle(
        self, tenant: str, run_id: str, holds: Sequence[Hold], actual: Sequence[int]
    ) -> bool:
        if self.down:
            self.down -= 1
            raise StoreError("state_unavailable")
        self.settled.append(run_id)
        return await super().settle(tenant, run_id, holds, actual)


class ShakyLedger(MemoryLedger):
    down = 0

    async def append(self, rows: Sequence[LedgerRow]) -> None:
        if self.down:
            self.down -= 1
            raise StoreError("state_unavailable")
        await super().append(rows)


@asynccontextmanager
async def kept(*works: Callable[[], Coroutine[Any, Any, None]]) -> AsyncGenerator[None]:
    tasks = [asyncio.ensure_future(work()) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.bug("K15")
async def test_a_reservation_is_settled_within_moments_and_tried_again_while_the_store_is_down() -> (
    None
):
    counters = Shaky(down=3)
    settler = Settler(counters, MemoryLedger())
    async with kept(settler.run):
        for number in range(100):
            run_id = f"run_{number}"
            await counters.reserve("acme", run_id, HOLDS[2:3], 60)
            settler.settle("acme", run_id, HOLDS[2:3], (7,))
        await until(lambda: len(counters.settled) == 100)

        assert await settler.drain(1)
    assert sorted(set(counters.settled)) == sorted(counters.settled)
    assert await counters.used("acme", HOLDS[2:3]) == [700]


async def test_a_drain_ends_when_its_time_is_up() -> None:
    counters = Shaky(down=10**6)
    settler = Settler(counters, MemoryLedger())
    async with kept(settler.run):
        settler.settle("acme", "run_1", HOLDS[:1], (1,))

        assert not await settler.drain(0.05)


@pytest.mark.bug("K16")
async def test_an_impossible_number_is_told_and_never_stored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    counters = Shaky()
    settler = Settler(counters, MemoryLedger())
    async with kept(settler.run):
        settler.settle("acme", "run_1", HOLDS[:1], (-5,))
        await until(lambda: counters.settled)

    assert await counters.used("acme", HOLDS[:1]) == [0]
    assert "run_1 was to be settled with [-5]" in caplog.text


@pytest.mark.bug("K15")
async def test_what_a_dead_process_reserved_is_settled_with_its_rows() -> None:
    counters, ledger = MemoryCounters(), MemoryLedger()
    settler = Settler(counters, ledger)
    settler.watch("acme")
    await counters.reserve("acme", "run_1:a", HOLDS, 0, codec.encode(NOTE))
    await ledger.append([row("run_1"), row("run_1", 2)])

    assert await settler.sweep_once() == 1

    assert await counters.used("acme", HOLDS) == [1, 0, 60, 1200]
    assert [each.kind for each in await ledger.of_run("acme", "run_1")] == [EXACT, EXACT]
    assert await settler.sweep_once() == 0


@pytest.mark.bug("K15")
async def test_without_rows_the_whole_of_it_is_charged_until_a_row_of_the_call_comes() -> None:
    counters, ledger = MemoryCounters(), MemoryLedger()
    settler = Settler(counters, ledger)
    settler.watch("acme")
    await counters.reserve("acme", "run_1:a", HOLDS, 0, codec.encode(NOTE))
    await counters.extend("acme", "run_1:a", (1, 1, 700, 12_000))

    await settler.sweep_once()

    assert await counters.used("acme", HOLDS) == [1, 0, 700, 12_000]
    (found,) = await ledger.of_run("acme", "run_1")
    assert (found.kind, found.input, found.cost_micro) == (LEASE_EXPIRED, 700, 12_000)
    await ledger.append([row("run_1")])
    (found,) = await ledger.of_run("acme", "run_1")
    assert (found.kind, found.cost_micro) == (EXACT, 600)


async def test_limits_alone_leave_no_row_behind() -> None:
    counters, ledger = MemoryCounters(), MemoryLedger()
    settler = Settler(counters, ledger)
    settler.watch("acme")
    note = NOTE._replace(units="rc", tokens=0, cost_micro=0)
    await counters.reserve("acme", "run_1:a", HOLDS[:2], 0, codec.encode(note))

    await settler.sweep_once()

    assert await counters.used("acme", HOLDS[:2]) == [1, 0]
    assert not await ledger.of_run("acme", "run_1")


async def test_a_reservation_with_a_note_nobody_can_read_is_settled_whole() -> None:
    counters = MemoryCounters()
    settler = Settler(counters, MemoryLedger())
    settler.watch("acme")
    await counters.reserve("acme", "x", HOLDS, 0, b"\xff")

    await settler.sweep_once()

    assert await counters.used("acme", HOLDS) == [1, 1, 500, 9_000]


async def test_what_still_runs_keeps_its_lease() -> None:
    counters = MemoryCounters()
    settler = Settler(counters, MemoryLedger(), lease_s=0.06, sweep_s=0.01)
    await counters.reserve("acme", "run_1:a", HOLDS, 0.06, codec.encode(NOTE))
    settler.hold("acme", "run_1:a")
    async with kept(settler.run, settler.renew, settler.sweep):
        await asyncio.sleep(0.3)
        assert (await counters.extend("acme", "run_1:a", (1, 1, 501, 9_000))).granted

        settler.settle("acme", "run_1:a", HOLDS, (1, 0, 5, 50))
        assert await settler.drain(1)
    assert await counters.used("acme", HOLDS) == [1, 0, 5, 50]


@pytest.mark.bug("K15")
async def test_rows_reach_the_ledger_within_a_second_and_survive_its_outage() -> None:
    ledger = ShakyLedger()
    ledger.down = 2
    writer = LedgerWriter(ledger, every_s=0.01)
    async with kept(writer.run):
        for number in range(50):
            writer.write(row("run_1", number + 1))
            await asyncio.sleep(0)
        assert await writer.drain(1)

    assert len(await ledger.of_run("acme", "run_1")) == 50
    assert writer.lost == 0


async def test_rows_that_come_while_others_are_written_make_one_batch() -> None:
    batches: list[int] = []

    class Slow(MemoryLedger):
        async def append(self, rows: Sequence[LedgerRow]) -> None:
            batches.append(len(rows))
            if len(batches) == 1:
                for number in range(5):
                    writer.write(row(f"later_{number}"))
                    await asyncio.sleep(0)
            await super().append(rows)

    writer = LedgerWriter(ledger := Slow(), every_s=0.01)
    writer.write(row("run_1"))
    async with kept(writer.run):
        assert await writer.drain(5)

    assert batches == [1, 5]
    assert len(await ledger.of_run("acme", "later_4")) == 1


async def test_rows_are_kept_in_bounded_number() -> None:
    writer = LedgerWriter(MemoryLedger(), most=3)
    for number in range(5):
        writer.write(row("run_1", number + 1))

    assert writer.lost == 2


def test_a_note_is_read_as_it_was_written() -> None:
    data = codec.encode(NOTE)

    assert read_note(data) == NOTE
    assert len(data) < 300
    assert [read_note(bad) for bad in (b"", b"[]", b"{}", b"7", b'["a"]')] == [None] * 5


def test_a_call_that_has_ended_runs_no_more() -> None:
    assert used_of("rctu", (1, 1, 500, 9000), 30, 600) == (1, 0, 30, 600)


async def test_a_row_that_no_ledger_can_hold_keeps_out_no_other() -> None:
    ledger = MemoryLedger()
    writer = LedgerWriter(ledger, every_s=0.001)
    async with kept(writer.run):
        for each in (row("a"), row("b")._replace(cost_micro=-1), row("c")):
            writer.write(each)
        await until(lambda: writer.lost == 1)
        assert await writer.drain(1.0)

    assert [len(await ledger.of_run("acme", name)) for name in ("a", "b", "c")] == [1, 0, 1]


@pytest.mark.fault("P-9")
async def test_what_cannot_be_written_down_is_not_begun() -> None:
    writer = LedgerWriter(MemoryLedger(), most=10)
    for number in range(9):
        assert not writer.is_full
        writer.write(row(f"r{number}"))

    assert writer.is_full
    assert writer.lost == 0


async def test_a_store_that_never_waits_has_settled_before_the_call_returns() -> None:
    counters = MemoryCounters()
    settler = Settler(counters, MemoryLedger())
    await counters.reserve("acme", "run_1:a", HOLDS[:1], 60.0)

    settler.settle("acme", "run_1:a", HOLDS[:1], (7,))

    assert await counters.used("acme", HOLDS[:1]) == [7]
    assert await settler.drain(0.1)


@pytest.mark.parametrize("amount", [-1, 1 << 60])
async def test_an_amount_that_cannot_be_is_settled_as_near_as_can_be(amount: int) -> None:
    counters = MemoryCounters()
    settler = Settler(counters, MemoryLedger())
    await counters.reserve("acme", "run_1:a", HOLDS[:1], 60.0)

    async with kept(settler.run):
        settler.settle("acme", "run_1:a", HOLDS[:1], (amount,))
        await until(lambda: not counters._tenants["acme"].reservations)

    assert await counters.used("acme", HOLDS[:1]) == [0 if amount < 0 else (1 << 53) - 1]


async def test_an_outage_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    counters = Shaky(down=40)
    settler = Settler(counters, MemoryLedger())
    async with kept(settler.run):
        for number in range(30):
            settler.settle("acme", f"run_{number}", HOLDS[:1], (1,))
        await until(lambda: len(counters.settled) == 30)

    assert caplog.text.count("not settled while the store is down") == 1
