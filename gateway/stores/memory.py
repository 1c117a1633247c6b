"""Counters of one process: the embedded default, and the model that the shared back ends are compared with."""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from gateway.core import clock
from gateway.core.counting import Expired, Hold, Verdict, Window
from gateway.core.errors import StoreError
from gateway.stores.bounds import (
    KEPT_EMPTY_MS,
    KEPT_IDLE_MS,
    KEPT_OVER_MS,
    KEPT_SETTLED_MS,
    check_amounts,
)

_MS: Final = 1000


_Key = tuple[str, str, Window]


class _Id(NamedTuple):
    tenant: str
    key: str
    window: Window


@dataclass(slots=True)
class _Counter:
    """`lifted_ms`: up to which memory the ledger's sum is in `spent`; -1: it is not."""

    spent: int = 0
    held: int = 0
    lifted_ms: int = -1
    touched_ms: int = 0

    @property
    def used(self) -> int:
        return self.spent + self.held

    @property
    def is_empty(self) -> bool:
        return not self.used and self.lifted_ms < 0


@dataclass(slots=True)
class _Reservation:
    holds: tuple[Hold, ...]
    amounts: list[int]
    lease_ms: int
    note: bytes


@dataclass(slots=True)
class _Tenant:
    since_ms: int
    reservations: dict[str, _Reservation] = field(default_factory=dict[str, _Reservation])
    settled: set[str] = field(default_factory=set[str])


class MemoryCounters:
    """Exact counters of this process; they are gone when it ends.

    Windows go by `wall`, leases by `elapsed`, which no change of the clock moves. Both return seconds.
    """

    def __init__(
        self,
        wall: Callable[[], float] = clock.wall,
        elapsed: Callable[[], float] = clock.monotonic,
    ) -> None:
        self._wall = wall
        self._elapsed = elapsed
        self._tenants: dict[str, _Tenant] = {}
        self._counters: dict[_Key, _Counter] = {}
        self._over: list[tuple[int, _Id]] = []
        self._forget: list[tuple[int, str, str]] = []
        self._open = True

    async def reserve(
        self, tenant: str, run_id: str, holds: Sequence[Hold], lease_s: float, note: bytes = b""
    ) -> Verdict:
        """Reserve all or nothing; a second call with the same id returns the first one's success."""
        amounts = [hold.amount for hold in holds]
        check_amounts(amounts)
        own, now_ms = self._enter(tenant)
        if run_id in own.reservations or run_id in own.settled:
            return self._verdict(tenant, holds, now_ms)
        lifted = False
        for hold in holds:
            if hold.window.end and _is_stale(hold.window, now_ms):
                return self._verdict(tenant, holds, now_ms, stale=True)
            lifted = lifted or hold.lifted
        if lifted:
            missing = tuple(n for n, hold in enumerate(holds) if self._lacks(own, tenant, hold))
            if missing:
                return self._verdict(tenant, holds, now_ms, missing=missing)
            for hold in holds:
                self._lift(own, tenant, hold, now_ms)
        verdict = self._take_known(tenant, holds, amounts, now_ms)
        if verdict is None:
            refused = self._first_full(tenant, holds, amounts)
            if refused >= 0:
                return self._verdict(tenant, holds, now_ms, refused=refused)
            self._hold(tenant, holds, amounts, now_ms)
            verdict = self._verdict(tenant, holds, now_ms)
        kept = tuple([hold if hold.base is None else hold._replace(base=None) for hold in holds])
        own.reservations[run_id] = _Reservation(kept, amounts, self._lease_ms(lease_s), note)
        return verdict

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
        check_amounts(actual)
        own, now_ms = self._enter(tenant)
        if run_id in own.settled:
            return False
        own.settled.add(run_id)
        forget = int(self._elapsed() * _MS) + KEPT_SETTLED_MS
        heapq.heappush(self._forget, (forget, tenant, run_id))
        kept = own.reservations.pop(run_id, None)
        counters = [self._touch(tenant, hold, now_ms) for hold in holds]
        if kept is not None:
            held = counters
            if kept.holds != tuple(holds):
                held = [self._touch(tenant, hold, now_ms) for hold in kept.holds]
            for counter, amount in zip(held, kept.amounts, strict=True):
                counter.held = max(0, counter.held - amount)
        for counter, amount in zip(counters, actual, strict=True):
            counter.spent += amount
        return True

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

    def _enter(self, tenant: str) -> tuple[_Tenant, int]:
        if not self._open:
            raise StoreError("state_unavailable", detail="the counters are closed")
        now_ms = int(self._wall() * _MS)
        self._prune(now_ms)
        own = self._tenants.get(tenant)
        if own is None:
            own = self._tenants[tenant] = _Tenant(now_ms)
        return own, now_ms

    def _prune(self, now_ms: int) -> None:
        while self._over and self._over[0][0] <= now_ms:
            _, name = heapq.heappop(self._over)
            counter = self._counters[name]
            idle_ms = KEPT_EMPTY_MS if counter.is_empty else KEPT_IDLE_MS
            if name.window.end or counter.touched_ms + idle_ms <= now_ms:
                del self._counters[name]
            else:
                heapq.heappush(self._over, (now_ms + KEPT_EMPTY_MS, name))
        elapsed_ms = int(self._elapsed() * _MS) if self._forget else 0
        while self._forget and self._forget[0][0] <= elapsed_ms:
            _, tenant, run_id = heapq.heappop(self._forget)
            self._tenants[tenant].settled.discard(run_id)

    def _touch(self, tenant: str, hold: Hold, now_ms: int) -> _Counter:
        # A plain tuple finds what a named one named, and is made in a fraction of the time.
        counter = self._counters.get((tenant, hold.key, hold.window))
        if counter is None:
            name = _Id(tenant, hold.key, hold.window)
            counter = self._counters[name] = _Counter()
            over_ms = hold.window.end * _MS + KEPT_OVER_MS
            if not hold.window.end:
                over_ms = now_ms + KEPT_EMPTY_MS
            heapq.heappush(self._over, (over_ms, name))
        counter.touched_ms = now_ms
        return counter

    def _used(self, tenant: str, hold: Hold) -> int:
        counter = self._counters.get((tenant, hold.key, hold.window))
        return counter.spent + counter.held if counter is not None else 0

    def _lacks(self, own: _Tenant, tenant: str, hold: Hold) -> bool:
        if not hold.lifted or hold.base is not None or hold.window.start * _MS >= own.since_ms:
            return False
        counter = self._counters.get((tenant, hold.key, hold.window))
        return counter is None or counter.lifted_ms != own.since_ms

    def _lift(self, own: _Tenant, tenant: str, hold: Hold, now_ms: int) -> None:
        if hold.lifted and hold.base is not None:
            counter = self._touch(tenant, hold, now_ms)
            counter.spent = max(counter.spent, hold.base)
            counter.lifted_ms = own.since_ms

    def _take_known(
        self, tenant: str, holds: Sequence[Hold], amounts: Sequence[int], now_ms: int
    ) -> Verdict | None:
        """Hold what fits on counters that are there, each named once; None, and nothing done, in any other case.

        So it is nearly always: each counter is then looked up once.
        """
        counters = self._counters
        found = [counters.get((tenant, hold.key, hold.window)) for hold in holds]
        if len(set(map(id, found))) < len(found):
            return None
        used: list[int] = []
        for counter, hold, amount in zip(found, holds, amounts, strict=True):
            if counter is None:
                return None
            total = counter.spent + counter.held + amount
            if hold.limit is not None and total > hold.limit:
                return None
            used.append(total)
        for counter, amount in zip(found, amounts, strict=True):
            if counter is not None:
                counter.held += amount
                counter.touched_ms = now_ms
        return Verdict(-1, tuple(used), now_ms)

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
            self._touch(tenant, hold, now_ms).held += amount

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


def _expired(run_id: str, kept: _Reservation) -> Expired:
    pairs = zip(kept.holds, kept.amounts, strict=True)
    return Expired(run_id, tuple(hold._replace(amount=amount) for hold, amount in pairs), kept.note)
