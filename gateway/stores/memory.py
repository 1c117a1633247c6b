"""Counters of one process: the embedded default, and the model that the shared back ends are compared with."""

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from gateway.core import clock
from gateway.core.counting import Ended, Expired, Hold, Holds, Note, Verdict, Window
from gateway.core.errors import StoreError
from gateway.stores.bounds import (
    KEPT_EMPTY_MS,
    KEPT_IDLE_MS,
    KEPT_OVER_MS,
    KEPT_SETTLED_MS,
    MAX_AMOUNT,
    check_amounts,
)
from gateway.stores.tallies import Reservation, Tallies, Tally, Tenant

_MS: Final = 1000
_MOST_SETTLED: Final = 200_000
"""Ids that are remembered at most: nobody repeats a settlement that was answered in this very process."""
_ALWAYS: Final = 1 << 62
"""Later than any time."""


_Key = tuple[str, str, Window]


class _Id(NamedTuple):
    tenant: str
    key: str
    window: Window


class MemoryCounters:
    """Exact counters of this process; they are gone when it ends.

    Windows go by `wall`, leases by `elapsed`, which no change of the clock moves. Both return seconds.
    """

    answers_at_once = True

    def __init__(
        self,
        wall: Callable[[], float] = clock.wall,
        elapsed: Callable[[], float] = clock.monotonic,
    ) -> None:
        self._wall = wall
        self._elapsed = elapsed
        self._tenants: dict[str, Tenant] = {}
        self._counters: dict[_Key, Tally] = {}
        self._over: list[tuple[int, _Id]] = []
        self._forget: deque[tuple[int, set[str], str]] = deque()
        self._open = True

    async def reserve(
        self,
        tenant: str,
        run_id: str,
        holds: Sequence[Hold],
        lease_s: float,
        note: Note = b"",
        amounts: Sequence[int] | None = None,
    ) -> Verdict:
        """Reserve all or nothing; a second call with the same id returns the first one's success."""
        return self.reserve_now(tenant, run_id, holds, lease_s, note, amounts)

    def reserve_now(
        self,
        tenant: str,
        run_id: str,
        holds: Sequence[Hold],
        lease_s: float,
        note: Note = b"",
        amounts: Sequence[int] | None = None,
    ) -> Verdict:
        """See `reserve`."""
        memo = holds.memo if type(holds) is Holds else None
        if memo is not None and memo[0] is self and amounts is not None and self._open:
            found: Tallies = memo[1]  # type: ignore[assignment]
            own, now_ms = found.own, int(self._wall() * _MS)
            if (
                found.start_ms <= now_ms < found.end_ms
                and now_ms < self._over[0][0]
                and run_id not in own.reservations
                and run_id not in own.settled
                and (used := found.take(amounts, now_ms)) is not None
            ):
                lease_ms = int((self._elapsed() + lease_s) * _MS)
                own.reservations[run_id] = Reservation(holds, amounts, lease_ms, note)
                return Verdict(-1, used, now_ms)
        own, now_ms = self._enter(tenant)
        if run_id in own.reservations or run_id in own.settled:
            return self._verdict(tenant, holds, now_ms)
        if amounts is None:
            amounts = [hold.amount for hold in holds]
        verdict = self._reserve(own, tenant, holds, amounts, now_ms)
        if verdict.granted:
            if type(holds) is Holds:
                self._remember(own, tenant, holds)
            else:
                holds = [hold if hold.base is None else hold._replace(base=None) for hold in holds]
            lease_ms = self._lease_ms(lease_s)
            own.reservations[run_id] = Reservation(holds, amounts, lease_ms, note)
        return verdict

    def _reserve(
        self,
        own: Tenant,
        tenant: str,
        holds: Sequence[Hold],
        amounts: Sequence[int],
        now_ms: int,
    ) -> Verdict:
        check_amounts(amounts)
        if any(hold.window.end and _is_stale(hold.window, now_ms) for hold in holds):
            return self._verdict(tenant, holds, now_ms, stale=True)
        if any(hold.lifted for hold in holds):
            missing = tuple(n for n, hold in enumerate(holds) if self._lacks(own, tenant, hold))
            if missing:
                return self._verdict(tenant, holds, now_ms, missing=missing)
            for hold in holds:
                self._lift(own, tenant, hold, now_ms)
        refused = self._first_full(tenant, holds, amounts)
        if refused >= 0:
            return self._verdict(tenant, holds, now_ms, refused=refused)
        self._hold(tenant, holds, amounts, now_ms)
        return self._verdict(tenant, holds, now_ms)

    def _remember(self, own: Tenant, tenant: str, holds: Holds) -> None:
        """Keep the counters of holds that were just reserved, so that they are looked up once."""
        counters = [self._counters[tenant, hold.key, hold.window] for hold in holds]
        if not counters or len(set(map(id, counters))) < len(counters):
            return
        windows = [hold.window for hold in holds if hold.window.end]
        found = Tallies(
            own,
            tuple(counters),
            tuple([MAX_AMOUNT if hold.limit is None else hold.limit for hold in holds]),
            max((window.start * _MS for window in windows), default=-_ALWAYS),
            min((window.end * _MS for window in windows), default=_ALWAYS),
            tuple(
                [
                    counter
                    for counter, hold in zip(counters, holds, strict=True)
                    if not hold.window.end
                ]
            ),
        )
        holds.memo = (self, found)

    async def extend(self, tenant: str, run_id: str, amounts: Sequence[int]) -> Verdict:
        """Raise the amounts of a reservation to these totals, all or nothing."""
        check_amounts(amounts)
        own, now_ms = self._enter(tenant)
        kept = own.reservations.get(run_id)
        if kept is None or len(kept.amounts) != len(amounts):
            return Verdict(0, (), now_ms)
        more = [max(0, new - old) for new, old in zip(amounts, kept.amounts, strict=True)]
        refused = self._first_full(tenant, kept.holds, more, unchanged_fits=True)
        if refused < 0:
            self._hold(tenant, kept.holds, more, now_ms)
            kept.amounts = [old + step for old, step in zip(kept.amounts, more, strict=True)]
        return self._verdict(tenant, kept.holds, now_ms, refused=refused)

    async def settle(
        self, tenant: str, run_id: str, holds: Sequence[Hold], actual: Sequence[int]
    ) -> bool:
        """Turn a reservation into what was really used; False when it had been settled before."""
        return self.settle_now(tenant, run_id, holds, actual)

    def settle_now(
        self, tenant: str, run_id: str, holds: Sequence[Hold], actual: Sequence[int]
    ) -> bool:
        """See `settle`."""
        check_amounts(actual)
        own = self._tenants.get(tenant)
        kept = None if own is None else own.reservations.pop(run_id, None)
        memo = holds.memo if type(holds) is Holds else None
        if (
            kept is not None
            and kept.holds is holds
            and memo is not None
            and memo[0] is self
            and self._open
        ):
            found: Tallies = memo[1]  # type: ignore[assignment]
            if found.give(kept.amounts, actual):
                self._settled(found.own, run_id)
                return True
        return self._settle(tenant, run_id, kept, holds, actual)

    def _settle(
        self,
        tenant: str,
        run_id: str,
        kept: Reservation | None,
        holds: Sequence[Hold],
        actual: Sequence[int],
    ) -> bool:
        own, now_ms = self._enter(tenant)
        if run_id in own.settled:
            return False
        self._settled(own, run_id)
        if kept is not None:
            for hold, amount in zip(kept.holds, kept.amounts, strict=True):
                counter = self._touch(tenant, hold, now_ms)
                less = min(amount, counter.held)
                counter.held -= less
                counter.used -= less
        for hold, amount in zip(holds, actual, strict=True):
            self._touch(tenant, hold, now_ms).used += amount
        return True

    def _settled(self, own: Tenant, run_id: str) -> None:
        """Remember that a run was settled, and forget what was long ago."""
        own.settled.add(run_id)
        forget, now_ms = self._forget, int(self._elapsed() * _MS)
        forget.append((now_ms + KEPT_SETTLED_MS, own.settled, run_id))
        if forget[0][0] <= now_ms or len(forget) > _MOST_SETTLED:
            self._prune_settled(now_ms)

    async def settle_all(self, ended: Sequence[Ended]) -> Sequence[StoreError | None]:
        """Settle several runs; returns what each failed with."""
        found: list[StoreError | None] = []
        for each in ended:
            try:
                await self.settle(*each)
            except StoreError as error:
                found.append(error)
            else:
                found.append(None)
        return found

    async def renew(self, tenant: str, run_ids: Sequence[str], lease_s: float) -> None:
        """Extend the leases of reservations that still run."""
        own, _ = self._enter(tenant)
        for run_id in run_ids:
            kept = own.reservations.get(run_id)
            if kept is not None:
                kept.lease_ms = self._lease_ms(lease_s)

    async def expired(self, tenant: str, limit: int) -> Sequence[Expired]:
        """Return reservations whose lease has ended, the oldest first."""
        own, _ = self._enter(tenant)
        now_ms = self._lease_ms(0)
        over = sorted(
            (kept.lease_ms, run_id)
            for run_id, kept in own.reservations.items()
            if kept.lease_ms <= now_ms
        )
        return [_expired(run_id, own.reservations[run_id]) for _, run_id in over[:limit]]

    async def used(self, tenant: str, holds: Sequence[Hold]) -> Sequence[int]:
        """Return spent plus held of counters."""
        self._enter(tenant)
        return [self._used(tenant, hold) for hold in holds]

    async def aclose(self) -> None:
        """Refuse further calls."""
        self._open = False

    def _enter(self, tenant: str) -> tuple[Tenant, int]:
        if not self._open:
            raise StoreError("state_unavailable", detail="the counters are closed")
        now_ms = int(self._wall() * _MS)
        if self._over and self._over[0][0] <= now_ms:
            self._prune(now_ms)
        if self._forget:
            self._prune_settled(int(self._elapsed() * _MS))
        own = self._tenants.get(tenant)
        if own is None:
            own = self._tenants[tenant] = Tenant(now_ms)
        return own, now_ms

    def _prune(self, now_ms: int) -> None:
        while self._over and self._over[0][0] <= now_ms:
            _, name = heapq.heappop(self._over)
            counter = self._counters[name]
            idle_ms = KEPT_EMPTY_MS if counter.is_empty else KEPT_IDLE_MS
            if name.window.end or counter.touched_ms + idle_ms <= now_ms:
                del self._counters[name]
                counter.let_go()
            else:
                heapq.heappush(self._over, (now_ms + KEPT_EMPTY_MS, name))

    def _prune_settled(self, now_ms: int) -> None:
        forget = self._forget
        while forget and (forget[0][0] <= now_ms or len(forget) > _MOST_SETTLED):
            _, settled, run_id = forget.popleft()
            settled.discard(run_id)

    def _touch(self, tenant: str, hold: Hold, now_ms: int) -> Tally:
        # A plain tuple finds what a named one named, and is made in a fraction of the time.
        counter = self._counters.get((tenant, hold.key, hold.window))
        if counter is None:
            name = _Id(tenant, hold.key, hold.window)
            counter = self._counters[name] = Tally()
            over_ms = hold.window.end * _MS + KEPT_OVER_MS
            if not hold.window.end:
                over_ms = now_ms + KEPT_EMPTY_MS
            heapq.heappush(self._over, (over_ms, name))
        counter.touched_ms = now_ms
        return counter

    def _used(self, tenant: str, hold: Hold) -> int:
        counter = self._counters.get((tenant, hold.key, hold.window))
        return counter.used if counter is not None else 0

    def _lacks(self, own: Tenant, tenant: str, hold: Hold) -> bool:
        if not hold.lifted or hold.base is not None or hold.window.start * _MS >= own.since_ms:
            return False
        counter = self._counters.get((tenant, hold.key, hold.window))
        return counter is None or counter.lifted_ms != own.since_ms

    def _lift(self, own: Tenant, tenant: str, hold: Hold, now_ms: int) -> None:
        if hold.lifted and hold.base is not None:
            counter = self._touch(tenant, hold, now_ms)
            counter.used += max(0, hold.base - counter.spent)
            counter.lifted_ms = own.since_ms

    def _first_full(
        self,
        tenant: str,
        holds: Sequence[Hold],
        more: Sequence[int],
        *,
        unchanged_fits: bool = False,
    ) -> int:
        """Return the place of the first hold without room for what it needs more, or -1."""
        added: dict[_Key, int] = {}
        for place, (hold, amount) in enumerate(zip(holds, more, strict=True)):
            name = (tenant, hold.key, hold.window)
            added[name] = added.get(name, 0) + amount
            if hold.limit is None or (unchanged_fits and not amount):
                continue
            if self._used(tenant, hold) + added[name] > hold.limit:
                return place
        return -1

    def _hold(self, tenant: str, holds: Sequence[Hold], more: Sequence[int], now_ms: int) -> None:
        for hold, amount in zip(holds, more, strict=True):
            counter = self._touch(tenant, hold, now_ms)
            counter.used += amount
            counter.held += amount

    def _verdict(
        self,
        tenant: str,
        holds: Sequence[Hold],
        now_ms: int,
        *,
        refused: int = -1,
        missing: tuple[int, ...] = (),
        stale: bool = False,
    ) -> Verdict:
        used = tuple([self._used(tenant, hold) for hold in holds])
        return Verdict(refused, used, now_ms, missing, stale)

    def _lease_ms(self, lease_s: float) -> int:
        return int((self._elapsed() + lease_s) * _MS)


def _is_stale(window: Window, now_ms: int) -> bool:
    return window.end != 0 and not window.start * _MS <= now_ms < window.end * _MS


def _expired(run_id: str, kept: Reservation) -> Expired:
    pairs = zip(kept.holds, kept.amounts, strict=True)
    note = kept.note() if callable(kept.note) else kept.note
    return Expired(run_id, tuple(hold._replace(amount=amount) for hold, amount in pairs), note)
