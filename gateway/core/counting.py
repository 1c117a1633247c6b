"""Shared counters: the port that limits and budgets are decided on (K14, K15, K17, K18).

A reservation holds an amount on several counters at once, all or none, and is settled exactly once. Every call is
idempotent by the reservation's id, so that a lost reply may be repeated. Amounts are whole numbers: requests,
tokens or micro-dollars.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeGuard

from gateway.core.errors import StoreError

Note = bytes | Callable[[], bytes]
"""What is kept beside a reservation, 4 KB at most, or what returns it, for stores that seldom need it."""


class Window(NamedTuple):
    """A stretch of the store's clock in seconds since the epoch, end excluded; both 0: without end."""

    start: int = 0
    end: int = 0


class Hold(NamedTuple):
    """One counter in one reservation.

    `key` is made by `core.scope.Scope` and names the counter without its window. `limit` None: counted, never
    refused. `lifted`: what was spent in this window before the store's memory began must come from the ledger;
    `base` is that sum, None until it was asked for.
    """

    key: str
    amount: int
    limit: int | None
    window: Window = Window()
    lifted: bool = False
    base: int | None = None


class Holds(tuple[Hold, ...]):  # noqa: SLOT001  a tuple takes no further slots
    """Holds that many reservations share, which differ in their amounts alone.

    `memo` is where a store keeps what it has worked out of them, together with itself.
    """

    memo: tuple[object, object] | None = None


class Verdict(NamedTuple):
    """What came of `reserve` or `extend`.

    Exactly one of these holds: everything was reserved (`refused` is -1, `missing` empty, not `stale`); the hold at
    `refused` had no room; the holds at `missing` need their `base`; `stale`: a window does not hold the store's
    time. In all but the first case no counter has changed. `used` is spent plus held of each counter, this
    reservation included when it was made. `now_ms` is the store's clock.
    """

    refused: int
    used: tuple[int, ...]
    now_ms: int
    missing: tuple[int, ...] = ()
    stale: bool = False

    @property
    def granted(self) -> bool:
        """Whether everything was reserved."""
        return self.refused < 0 and not self.missing and not self.stale


class Ended(NamedTuple):
    """A run that is to be settled: its reservation, and what was really used of each of its holds."""

    tenant: str
    run_id: str
    holds: Sequence[Hold]
    actual: Sequence[int]


class Expired(NamedTuple):
    """A reservation whose lease ended before it was settled; `note` is what `reserve` was given."""

    id: str
    holds: tuple[Hold, ...]
    note: bytes


class Counters(Protocol):
    """Counters of all tenants. Raises StoreError `state_unavailable` within its deadline, never hangs."""

    async def reserve(
        self,
        tenant: str,
        run_id: str,
        holds: Sequence[Hold],
        lease_s: float,
        note: Note = b"",
        amounts: Sequence[int] | None = None,
    ) -> Verdict:
        """Reserve all or nothing; a second call with the same id returns the first one's success.

        A hold fits when spent + held + amount <= limit. `note` comes back from `expired`. `amounts` take the place
        of what the holds say.
        """
        ...

    async def extend(self, tenant: str, run_id: str, amounts: Sequence[int]) -> Verdict:
        """Raise the amounts of a reservation to these totals, all or nothing, in the order of its holds.

        An amount lower than what is held changes nothing. An unknown reservation is refused (`refused` 0).
        """
        ...

    async def settle(
        self, tenant: str, run_id: str, holds: Sequence[Hold], actual: Sequence[int]
    ) -> bool:
        """Turn a reservation into what was really used; False when it had been settled before.

        The counters change by the first call alone. A reservation that the store does not know (lost data, a
        reservation made elsewhere) is counted all the same.
        """
        ...

    async def settle_all(self, ended: Sequence[Ended]) -> Sequence[StoreError | None]:
        """Settle several runs as `settle` does, with as few calls as may be; returns what each failed with."""
        ...

    async def renew(self, tenant: str, run_ids: Sequence[str], lease_s: float) -> None:
        """Extend the leases of reservations that still run."""
        ...

    async def expired(self, tenant: str, limit: int) -> Sequence[Expired]:
        """Return reservations whose lease has ended; `settle` ends them."""
        ...

    async def used(self, tenant: str, holds: Sequence[Hold]) -> Sequence[int]:
        """Return spent plus held of counters, for display; limits and amounts are not looked at."""
        ...

    async def aclose(self) -> None:
        """Let go of connections."""
        ...


class AtOnce(Counters, Protocol):
    """Counters that never wait: the same calls, for whoever need not wait either."""

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
        ...

    def settle_now(
        self, tenant: str, run_id: str, holds: Sequence[Hold], actual: Sequence[int]
    ) -> bool:
        """See `settle`."""
        ...


def answers_at_once(counters: Counters | None) -> TypeGuard[AtOnce]:
    """Tell whether counters can be asked without waiting."""
    return getattr(counters, "answers_at_once", False)
