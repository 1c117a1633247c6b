"""Ends reservations and writes the ledger, off the request path; nothing is given up while the process lives."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from itertools import islice
from typing import Any

from gateway.core import clock
from gateway.core.counting import Counters, Ended, Expired, Hold, answers_at_once
from gateway.core.errors import StoreError
from gateway.core.lease import MICRO, TOKENS, read_note, used_of
from gateway.core.ledger import LEASE_EXPIRED, Ledger, LedgerRow

_log = logging.getLogger("gateway")
LEASE_S = 60.0
"""How long a reservation outlives its process."""
_MOST_WAITING = 100_000
_MOST_ROWS = 50_000
_BATCH = 64
_ROWS_AT_ONCE = 2_048
_SWEPT_AT_ONCE = 100
_FIRST_WAIT_S = 0.05
_LONGEST_WAIT_S = 0.5
_MOST = (1 << 53) - 1
_RENEWED_AT_ONCE = 500
_SWEEP_S = 5.0
_Loop = Callable[[], Coroutine[Any, Any, None]]


class LedgerWriter:
    """A book whose rows reach the ledger in batches; see `core.ledger.Book`.

    `lost` counts rows that could not be kept while the ledger did not answer. `is_full`: what is begun now might
    not be written down, while what runs still has room (P-9).
    """

    def __init__(self, ledger: Ledger, every_s: float = 0.2, most: int = _MOST_ROWS) -> None:
        self._ledger = ledger
        self._every_s = every_s
        self._most = most
        self._full_at = most - most // 10
        self._rows: deque[LedgerRow] = deque()
        self._some = asyncio.Event()
        self._none = asyncio.Event()
        self._none.set()
        self._hurry = asyncio.Event()
        self.lost = 0
        self.is_full = False

    def write(self, row: LedgerRow) -> None:
        """Take a row; it reaches the ledger within a second."""
        rows = self._rows
        if not rows:
            self._some.set()
            self._none.clear()
        elif len(rows) >= self._most:
            self._lose(row)
            return
        rows.append(row)
        self.is_full = len(rows) >= self._full_at

    def _lose(self, row: LedgerRow) -> None:
        self.lost += 1
        if self.lost == 1:
            _log.error("the ledger does not answer and rows are lost; the first: %s", row.run_id)

    async def run(self) -> None:
        """Write until cancelled."""
        wait_s = _FIRST_WAIT_S
        while True:
            await self._some.wait()
            await _sleep(self._every_s, self._hurry)
            try:
                await self._flush()
                wait_s = _FIRST_WAIT_S
            except StoreError as error:
                _log.warning("the ledger does not answer: %s", error.detail)
                await asyncio.sleep(wait_s)
                wait_s = min(wait_s * 2, _LONGEST_WAIT_S)

    async def _flush(self) -> None:
        """Write the rows that wait now; those that come meanwhile make one batch, not many small ones."""
        rows = self._rows
        left = len(rows)
        while left > 0:
            batch = list(islice(rows, min(left, _ROWS_AT_ONCE)))
            try:
                await self._ledger.append(batch)
            except ValueError:
                await self._append_singly(batch)
            for _ in batch:
                rows.popleft()
            self.is_full = len(rows) >= self._full_at
            left -= len(batch)
        if not rows:
            self._some.clear()
            self._none.set()

    async def _append_singly(self, batch: Sequence[LedgerRow]) -> None:
        """Write the rows of a batch one by one: one that no ledger can hold must not keep out the others."""
        for row in batch:
            try:
                await self._ledger.append([row])
            except ValueError as error:
                self.lost += 1
                _log.error("run %s cannot be written to the ledger: %s", row.run_id, error)

    async def drain(self, within_s: float) -> bool:
        """Write what is left; False when the time was up first."""
        self._hurry.set()
        return await _within(self._none.wait(), within_s)


class Settler:
    """Ends reservations: at once when their run is over, and those of processes that died (A5).

    `run`, `renew` and `sweep` are to be kept running. A store that never waits is asked at once.
    """

    def __init__(
        self,
        counters: Counters,
        ledger: Ledger,
        lease_s: float = LEASE_S,
        sweep_s: float | None = None,
    ) -> None:
        self._counters = counters
        self._ledger = ledger
        self.lease_s = lease_s
        self._sweep_s = min(lease_s / 4, _SWEEP_S) if sweep_s is None else sweep_s
        self._at_once = counters if answers_at_once(counters) else None
        self._failing = False
        self._tenants: set[str] = set()
        self._running: dict[str, set[str]] = {}
        self._waiting: deque[Ended] = deque()
        self._some = asyncio.Event()
        self._none = asyncio.Event()
        self._none.set()

    def loops(self) -> Sequence[tuple[_Loop, str]]:
        """Return the work that must not end before the process does, with names."""
        return (
            (self.run, "settlement"),
            (self.renew, "renewal of leases"),
            (self.sweep, "sweep of leases"),
        )

    def watch(self, tenant: str) -> None:
        """Sweep this tenant's reservations."""
        self._tenants.add(tenant)

    def hold(self, tenant: str, run_id: str) -> None:
        """Keep a reservation's lease alive until it is settled."""
        self._tenants.add(tenant)
        running = self._running.get(tenant)
        if running is None:
            running = self._running[tenant] = set()
        running.add(run_id)

    def settle(
        self, tenant: str, run_id: str, holds: Sequence[Hold], actual: Sequence[int]
    ) -> None:
        """Take a reservation and what was really used; returns at once."""
        running = self._running.get(tenant)
        if running is not None:
            running.discard(run_id)
        if self._at_once is not None:
            try:
                self._at_once.settle_now(tenant, run_id, holds, actual)
                return
            except (StoreError, ValueError):
                pass  # it is closed, or the amounts cannot be: as with any other store
        if len(self._waiting) >= _MOST_WAITING:
            # Its lease ends; the sweep then takes what the ledger says.
            _log.error("too many settlements wait; %s is left to its lease", run_id)
            return
        if actual and (min(actual) < 0 or max(actual) > _MOST):
            _log.error("run %s was to be settled with %s", run_id, list(actual))
            actual = [min(max(0, amount), _MOST) for amount in actual]
        if not self._waiting:
            self._some.set()
            self._none.clear()
        self._waiting.append(Ended(tenant, run_id, holds, tuple(actual)))

    async def run(self) -> None:
        """Settle until cancelled."""
        wait_s = _FIRST_WAIT_S
        while True:
            await self._some.wait()
            if await self._settle_all():
                wait_s = _FIRST_WAIT_S
            else:
                await asyncio.sleep(wait_s)
                wait_s = min(wait_s * 2, _LONGEST_WAIT_S)

    async def _settle_all(self) -> bool:
        """Settle what waits; False when the store does not take it. Nothing leaves the queue before it is taken."""
        waiting = self._waiting
        while waiting:
            batch = [waiting[place] for place in range(min(len(waiting), _BATCH))]
            taken = await self._settle_batch(batch)
            for ended, is_taken in zip(batch, taken, strict=True):
                waiting.popleft()
                if not is_taken:
                    waiting.append(ended)
            if not all(taken):
                return False
        self._some.clear()
        self._none.set()
        return True

    async def _settle_batch(self, batch: Sequence[Ended]) -> Sequence[bool]:
        """Settle runs together; returns which of them the store took."""
        errors = await self._counters.settle_all(batch)
        failure = next((error for error in errors if error is not None), None)
        if failure is not None and not self._failing:
            self._failing = True
            _log.warning("runs are not settled while the store is down: %s", failure.detail)
        elif failure is None and self._failing:
            self._failing = False
            _log.info("the store takes settlements again; %d wait", len(self._waiting))
        return [error is None for error in errors]

    async def renew(self) -> None:
        """Renew the leases of what runs, every third of a lease, until cancelled."""
        while True:
            await asyncio.sleep(self.lease_s / 3)
            for tenant, running in tuple(self._running.items()):
                if not running:
                    del self._running[tenant]
                    continue
                try:
                    await self._renew(tenant, tuple(running))
                except StoreError as error:
                    _log.warning("leases are not renewed: %s", error.detail)
                    break

    async def _renew(self, tenant: str, ids: Sequence[str]) -> None:
        for place in range(0, len(ids), _RENEWED_AT_ONCE):
            part = ids[place : place + _RENEWED_AT_ONCE]
            await self._counters.renew(tenant, part, self.lease_s)

    async def sweep(self) -> None:
        """End reservations whose lease is over, until cancelled."""
        while True:
            await asyncio.sleep(self._sweep_s)
            try:
                await self.sweep_once()
            except StoreError as error:
                _log.warning("leases are not swept: %s", error.detail)

    async def sweep_once(self) -> int:
        """End the reservations whose lease is over, and return how many."""
        count = 0
        for tenant in tuple(self._tenants):
            for expired in await self._counters.expired(tenant, _SWEPT_AT_ONCE):
                await self._end(tenant, expired)
                count += 1
        return count

    async def _end(self, tenant: str, expired: Expired) -> None:
        """Settle with what the ledger knows of the run, else with all of it, which is then written down."""
        note = read_note(expired.note)
        amounts = [hold.amount for hold in expired.holds]
        if note is None or len(note.units) != len(amounts):
            await self._counters.settle(tenant, expired.id, expired.holds, amounts)
            return
        rows = await self._ledger.of_run(tenant, note.run_id)
        known = [row for row in rows if row.kind != LEASE_EXPIRED]
        if known:
            tokens = sum(row.input + row.output for row in known)
            cost_micro = sum(row.cost_micro for row in known)
        else:
            tokens = _whole(note.units, amounts, TOKENS, note.tokens)
            cost_micro = _whole(note.units, amounts, MICRO, note.cost_micro)
            if tokens or cost_micro:
                at_ms = int(clock.wall() * 1000)
                await self._ledger.append([note.row(at_ms, tokens, cost_micro)])
        used = used_of(note.units, amounts, tokens, cost_micro)
        await self._counters.settle(tenant, expired.id, expired.holds, used)
        _log.warning("run %s ended with its process; its reservation is settled", note.run_id)

    async def drain(self, within_s: float) -> bool:
        """Wait until everything is settled; False when the time was up first."""
        return await _within(self._none.wait(), within_s)


def _whole(units: str, amounts: Sequence[int], unit: str, else_: int) -> int:
    held = [amount for letter, amount in zip(units, amounts, strict=True) if letter == unit]
    return max(held, default=else_)


async def _sleep(for_s: float, hurry: asyncio.Event) -> None:
    await _within(hurry.wait(), for_s)


async def _within(work: Coroutine[Any, Any, object], within_s: float) -> bool:
    try:
        async with asyncio.timeout(within_s):
            await work
    except TimeoutError:
        return False
    return True
