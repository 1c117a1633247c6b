"""What middleware is given of the world outside: ports, made by the composition root."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from gateway.core.caching import CacheStore
from gateway.core.counting import Counters, Hold
from gateway.core.latency import Latencies
from gateway.core.ledger import Ledger
from gateway.core.ports import OpaqueStore, OpenService
from gateway.core.repeats import RepeatBudgets
from gateway.telemetry.metrics import Metrics

Spawn = Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]
"""Starts background work under a name; it ends with the process at the latest."""


class Settler(Protocol):
    """Ends reservations off the request path: tried again until the store takes it, kept when the process stops."""

    @property
    def lease_s(self) -> float:
        """How long a reservation outlives its process."""
        ...

    async def run(self) -> None:
        """Settle until cancelled."""
        ...

    def watch(self, tenant: str) -> None:
        """Look for reservations of this tenant whose process died."""
        ...

    def hold(self, tenant: str, run_id: str) -> None:
        """Keep a reservation's lease alive until it is settled."""
        ...

    def settle(
        self, tenant: str, run_id: str, holds: Sequence[Hold], actual: Sequence[int]
    ) -> None:
        """Take a reservation and what was really used; returns at once."""
        ...


class Offline(NamedTuple):
    """Counters of this process alone, for the time in which the shared ones do not answer."""

    counters: Counters
    settler: Settler


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of one process, kept over reloads. `on_state_down` is `closed` or `open`.

    `open_service` opens services that layers ask; None where nothing is ever asked.
    """

    metrics: Metrics
    counters: Counters
    ledger: Ledger
    settler: Settler
    on_state_down: str = "closed"
    repeats: RepeatBudgets = field(default_factory=RepeatBudgets)
    latencies: Latencies = field(default_factory=Latencies)
    offline: Offline | None = None
    open_service: OpenService | None = None
    cache: CacheStore | None = None
    opaque: OpaqueStore | None = None
    spawn: Spawn | None = None
