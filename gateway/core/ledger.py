"""The ledger: what every upstream call cost, written once, never changed but from estimate to truth (K15)."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

EXACT = "exact"
"""The provider reported the usage (A4)."""
ESTIMATED = "estimated"
"""The answer began and was cut before its usage: prompt estimate and counted output (A3)."""
UNCERTAIN = "uncertain"
"""Sent, never answered: the prompt estimate (A2)."""
LEASE_EXPIRED = "lease_expired"
"""The process died: the whole reservation, until a row of the call itself takes its place (A5)."""


class LedgerRow(NamedTuple):
    """One upstream call. Unique by `run_id` and `attempt`; a row `lease_expired` has attempt 1.

    `at_ms` is milliseconds since the epoch, `cost_micro` micro-dollars; `priced` False: no price was known.
    `model` is the configured name; `served` the provider's own. `input` counts all prompt tokens, `cached` and
    `cache_write` are parts of it, `reasoning` is a part of `output`. `user` and `session` are digests.
    """

    run_id: str
    attempt: int
    at_ms: int
    tenant: str
    key_id: str
    user: str
    session: str
    agent: str
    model: str
    endpoint: str
    provider: str
    served: str
    kind: str
    input: int
    output: int
    cached: int
    cache_write: int
    reasoning: int
    cost_micro: int
    priced: bool
    request_id: str
    tags: tuple[str, ...] = ()


class Owner(NamedTuple):
    """Whose rows to add up: a tenant's, narrowed by whatever is not empty."""

    tenant: str
    key_id: str = ""
    user: str = ""
    session: str = ""
    model: str = ""
    agent: str = ""


class Total(NamedTuple):
    """Sums over rows."""

    cost_micro: int
    tokens: int
    calls: int


class UsageQuery(NamedTuple):
    """What `GET /admin/usage` asks. Times are milliseconds since the epoch, end excluded.

    `by` lists what to group by, of: tenant, key, user, session, model, provider, served, day. `limit`: at most so
    many groups, 0 all of them.
    """

    start_ms: int
    end_ms: int
    by: tuple[str, ...]
    tenant: str = ""
    key_id: str = ""
    model: str = ""
    limit: int = 0


class UsageRow(NamedTuple):
    """One group of a usage report: the values of `by` in its order, and the sums.

    `uncertain` counts calls of another kind than `exact`, `unpriced` those without a known price.
    """

    group: tuple[str, ...]
    calls: int
    input: int
    output: int
    cached: int
    cache_write: int
    reasoning: int
    cost_micro: int
    uncertain: int
    unpriced: int


class Ledger(Protocol):
    """Where rows are kept. Raises StoreError `state_unavailable` within its deadline."""

    async def append(self, rows: Sequence[LedgerRow]) -> None:
        """Write rows; those that are there already change nothing, except that a real row replaces `lease_expired`.

        A row is known by tenant, run and attempt. `lease_expired` is dropped where its run has real rows. Raises
        ValueError, before anything is written, for negative numbers and amounts above 10 ** 15.
        """
        ...

    async def total(self, owner: Owner, start_ms: int, end_ms: int) -> Total:
        """Add up the rows of an owner in a stretch of time, end excluded; `end_ms` 0: without end."""
        ...

    async def of_run(self, tenant: str, run_id: str) -> Sequence[LedgerRow]:
        """Return the rows of one run."""
        ...

    async def usage(self, query: UsageQuery) -> Sequence[UsageRow]:
        """Return sums by group, in the order of the groups."""
        ...

    async def aclose(self) -> None:
        """Let go of connections and files."""
        ...


class Book(Protocol):
    """Where rows go on the request path: at once, without waiting."""

    def write(self, row: LedgerRow) -> None:
        """Take a row; it reaches the ledger within a second."""
        ...
