"""Rows of a ledger for tests, and what a ledger says of them."""

from collections.abc import Callable, Sequence

from gateway.core.ledger import (
    EXACT,
    LEASE_EXPIRED,
    Ledger,
    LedgerRow,
    Owner,
    Total,
    UsageQuery,
    UsageRow,
)

Open = Callable[[], Ledger]
NOON = 1_790_000_000_000
DAY_MS = 86_400_000
EVER = 4_000_000_000_000
ROW = LedgerRow(
    run_id="run_1", attempt=1, at_ms=NOON, tenant="acme", key_id="web", user="u1", session="s1",
    agent="bot", model="fast", endpoint="chat", provider="openai", served="gpt-9", kind=EXACT,
    input=100, output=20, cached=40, cache_write=5, reasoning=7, cost_micro=1234, priced=True,
    request_id="req_1", tags=("a", "b"),
)  # fmt: skip
EXPIRED = ROW._replace(kind=LEASE_EXPIRED, cost_micro=9_000, output=500, tags=())


def runs(count: int, **changes: object) -> list[LedgerRow]:
    return [ROW._replace(run_id=f"run_{n:06}", **changes) for n in range(count)]


async def all_of(ledger: Ledger, tenant: str = "acme") -> Total:
    return await ledger.total(Owner(tenant), 0, 0)


async def usage(ledger: Ledger, *by: str, **changes: object) -> Sequence[UsageRow]:
    return await ledger.usage(UsageQuery(0, EVER, by)._replace(**changes))
