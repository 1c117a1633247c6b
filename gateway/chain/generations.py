"""The snapshot in force, the one that may follow it, and older ones whose requests still run (L-12, L-13)."""

import threading
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from gateway.chain.snapshot import Current, Snapshot
from gateway.config.schema import Tree
from gateway.core.call import Run
from gateway.core.ports import StoredKey
from gateway.lifecycle.tune import giving_way
from gateway.upstream.client import Endpoint

Rows = tuple[StoredKey, ...]
Compile = Callable[[Tree, Iterable[StoredKey], int], Snapshot]
Retain = Callable[[Iterable[Endpoint]], None]


@dataclass(frozen=True, slots=True)
class _Offer:
    """A snapshot that is ready, and what it was made of."""

    tree: Tree
    rows: Rows | None
    snapshot: Snapshot


@dataclass(slots=True)
class _Old:
    """Snapshots that were replaced: their connections, and the requests that may still use them."""

    count: int
    endpoints: tuple[Endpoint, ...]
    runs: set[Run]


class Generations:
    """Swaps snapshots whole, by one assignment, whether files or stored keys have changed.

    `prepare`, `commit` and `take_keys` take time and belong off the loop, `retire` on it. `runs` returns the
    running requests; `retain` is told whose connections are still of use.
    """

    def __init__(
        self, compile_: Compile, retain: Retain, runs: Callable[[], Collection[Run]]
    ) -> None:
        self._compile = compile_
        self._retain = retain
        self._runs = runs
        self._lock = threading.Lock()
        self._rows: Rows | None = None
        self._offer: _Offer | None = None
        self._left: list[Snapshot] = []
        self._old: list[_Old] = []

    def begin(self, tree: Tree, rows: Iterable[StoredKey] | None, generation: int) -> Current:
        """Compile the first snapshot; returns the holder of the one in force. Raises ConfigError.

        `rows` None: the stored keys are not known yet, `take_keys` brings them.
        """
        self.tree = tree
        self._rows = None if rows is None else tuple(rows)
        self.current = Current(self._make(tree, self._rows, generation))
        return self.current

    @property
    def generation(self) -> int:
        """The number of the snapshot in force."""
        return self.current.snapshot.generation

    def prepare(self, tree: Tree, generation: int) -> None:
        """Compile what may follow; raises ConfigError, and nothing has changed then."""
        with self._lock, giving_way:
            self._offer = None
            snapshot = self._make(tree, self._rows, generation)
            self._offer = _Offer(tree, self._rows, snapshot)

    def commit(self) -> None:
        """Put what was prepared in force; without anything prepared nothing happens."""
        with self._lock, giving_way:
            offer, self._offer = self._offer, None
            if offer is None:
                return
            snapshot = offer.snapshot
            if offer.rows is not self._rows:
                # A key was made or revoked meanwhile: it must not come back.
                snapshot = self._make(offer.tree, self._rows, snapshot.generation)
            self.tree = offer.tree
            self._swap(snapshot)

    def drop(self) -> None:
        """Forget what was prepared."""
        with self._lock:
            self._offer = None

    def take_keys(self, rows: Iterable[StoredKey]) -> None:
        """Put a snapshot with these stored keys in force."""
        with self._lock, giving_way:
            self._rows = tuple(rows)
            self._swap(self._make(self.tree, self._rows, self.generation))

    def _make(self, tree: Tree, rows: Rows | None, generation: int) -> Snapshot:
        snapshot = self._compile(tree, rows or (), generation)
        return snapshot if rows is not None else replace(snapshot, has_all_keys=False)

    def _swap(self, snapshot: Snapshot) -> None:
        self._left.append(self.current.snapshot)
        self.current.snapshot = snapshot

    def retire(self) -> int:
        """Let go of connections that no running request can need; returns how many snapshots are still needed.

        What is being compiled may have found some of them: then it waits for the next call.
        """
        if not (self._left or self._old) or not self._lock.acquire(blocking=False):
            return self.retiring
        try:
            self._take_leave()
            kept = [*self.current.snapshot.endpoints]
            for each in self._old:
                kept += each.endpoints
            if self._offer is not None:
                kept += self._offer.snapshot.endpoints
            self._retain(kept)
        finally:
            self._lock.release()
        return self.retiring

    @property
    def retiring(self) -> int:
        """How many replaced snapshots running requests may still use."""
        return len(self._left) + sum(each.count for each in self._old)

    def _take_leave(self) -> None:
        """Sort the running requests by the snapshots they may have begun on."""
        running = set(self._runs())
        for each in self._old:
            each.runs &= running
        if self._left:
            # A request that began since the swap is counted too: that only makes them wait longer.
            for each in self._old:
                running -= each.runs
            endpoints = tuple(
                {id(end): end for old in self._left for end in old.endpoints}.values()
            )
            self._old.append(_Old(len(self._left), endpoints, running))
            self._left.clear()
        self._old = [each for each in self._old if each.runs]
