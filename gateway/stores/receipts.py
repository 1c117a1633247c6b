"""Receipts in the memory of one process: gone when it ends, bounded for each tenant."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.core import clock
from gateway.core.errors import StoreError
from gateway.core.receipts import KEEP_S, Answer, Holder, Receipt

MAX_KEYS = 100_000
"""Keys of one tenant; when so many are in force, new ones are refused rather than old ones forgotten."""
MAX_BYTES = 64 << 20
"""Bytes of one tenant's answers; the oldest are lost first."""


@dataclass(slots=True)
class _Row:
    token: str
    fingerprint: str
    until: float  # of the lease, then of the receipt
    state: str = "claimed"
    answer: Answer | None = None


@dataclass(slots=True)
class _Shelf:
    """One tenant's receipts, the longest unchanged first; `sizes` are the bytes of those with an answer."""

    rows: OrderedDict[str, _Row] = field(default_factory=OrderedDict[str, _Row])
    sizes: OrderedDict[str, int] = field(default_factory=OrderedDict[str, int])
    total: int = 0


class MemoryReceipts:
    """Receipts of this process. `keep_s` in seconds; `now` returns seconds that never go back."""

    def __init__(
        self,
        keep_s: float = KEEP_S,
        *,
        max_keys: int = MAX_KEYS,
        max_bytes: int = MAX_BYTES,
        now: Callable[[], float] = clock.monotonic,
    ) -> None:
        self._keep_s = keep_s
        self._max_keys = max_keys
        self._max_bytes = max_bytes
        self._now = now
        self._shelves: dict[str, _Shelf] = {}

    async def claim(self, holder: Holder, fingerprint: str, lease_s: float) -> Receipt:
        """Take a key that is free, or tell what is known of it; StoreError when the tenant has too many."""
        shelf = self._shelf(holder)
        row = self._row(shelf, holder.name)
        if row is None:
            if len(shelf.rows) >= self._max_keys:
                raise StoreError("state_unavailable", detail="too many idempotency keys in memory")
            row = shelf.rows[holder.name] = _Row(holder.token, fingerprint, self._now() + lease_s)
        if row.state in {"done", "lost"}:
            state = "done" if row.answer is not None else "lost"
            return Receipt(state, row.fingerprint, row.answer)
        return Receipt("new" if row.token == holder.token else "running", row.fingerprint)

    async def calling(self, holder: Holder, lease_s: float) -> bool:
        """Note that a provider is about to be called."""
        row = self._own(holder)
        if row is None or row.state not in {"claimed", "calling"}:
            return False
        row.state = "calling"
        row.until = self._now() + lease_s
        return True

    async def finish(self, holder: Holder, fingerprint: str, answer: Answer | None) -> bool:
        """Keep the answer, or None for one that is lost."""
        shelf = self._shelf(holder)
        row = shelf.rows.get(holder.name)
        if row is not None and row.token != holder.token:
            return False
        self._drop(shelf, holder.name)
        state = "lost" if answer is None else "done"
        until = self._now() + self._keep_s
        shelf.rows[holder.name] = _Row(holder.token, fingerprint, until, state, answer)
        if answer is not None:
            shelf.sizes[holder.name] = len(answer.body)
            shelf.total += len(answer.body)
        while shelf.total > self._max_bytes:
            self._lose_oldest(shelf)
        return True

    async def release(self, holder: Holder) -> None:
        """Set a key free."""
        row = self._own(holder)
        if row is not None and row.answer is None:
            self._drop(self._shelf(holder), holder.name)

    async def renew(self, holder: Holder, lease_s: float) -> None:
        """Extend the lease of a request that still runs."""
        row = self._own(holder)
        if row is not None and row.state in {"claimed", "calling"}:
            row.until = self._now() + lease_s

    async def aclose(self) -> None:
        """Forget everything."""
        self._shelves.clear()

    def _shelf(self, holder: Holder) -> _Shelf:
        shelf = self._shelves.get(holder.tenant)
        if shelf is None:
            shelf = self._shelves[holder.tenant] = _Shelf()
        while shelf.rows and self._row(shelf, next(iter(shelf.rows))) is None:
            pass
        return shelf

    def _own(self, holder: Holder) -> _Row | None:
        row = self._row(self._shelf(holder), holder.name)
        return row if row is not None and row.token == holder.token else None

    def _row(self, shelf: _Shelf, name: str) -> _Row | None:
        """Return what is still in force of a key: past its time a claim is nothing, and a call is lost."""
        row = shelf.rows.get(name)
        if row is None or self._now() < row.until:
            return row
        if row.state != "calling":
            self._drop(shelf, name)
            return None
        row.state = "lost"
        row.until += self._keep_s
        shelf.rows.move_to_end(name)
        return row

    @staticmethod
    def _drop(shelf: _Shelf, name: str) -> None:
        shelf.rows.pop(name, None)
        shelf.total -= shelf.sizes.pop(name, 0)

    @staticmethod
    def _lose_oldest(shelf: _Shelf) -> None:
        """Give up an answer, not its key: the request has had its effect."""
        name, size = shelf.sizes.popitem(last=False)
        shelf.total -= size
        shelf.rows[name].answer = None
        shelf.rows[name].state = "lost"
