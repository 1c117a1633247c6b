"""What a reservation says of itself, for whoever must end it when its own process no longer can (A5)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from gateway.core import codec
from gateway.core.ledger import LEASE_EXPIRED, LedgerRow

REQUESTS = "r"
TOKENS = "t"
MICRO = "u"
RUNNING = "c"
"""What a hold counts: requests, tokens, micro-dollars, calls that run now."""


class Note(NamedTuple):
    """Kept beside a reservation, as a JSON array of its fields in this order.

    `units` has one letter per hold, `tokens` and `cost_micro` are the worst case.
    """

    units: str
    run_id: str
    tenant: str
    key_id: str
    user: str
    session: str
    agent: str
    model: str
    endpoint: str
    request_id: str
    tokens: int
    cost_micro: int
    priced: bool

    def row(self, at_ms: int, tokens: int, cost_micro: int) -> LedgerRow:
        """Return the ledger row of a run that nobody saw end."""
        return LedgerRow(
            run_id=self.run_id,
            attempt=1,
            at_ms=at_ms,
            tenant=self.tenant,
            key_id=self.key_id,
            user=self.user,
            session=self.session,
            agent=self.agent,
            model=self.model,
            endpoint=self.endpoint,
            provider="",
            served="",
            kind=LEASE_EXPIRED,
            input=tokens,
            output=0,
            cached=0,
            cache_write=0,
            reasoning=0,
            cost_micro=cost_micro,
            priced=self.priced,
            request_id=self.request_id,
        )


def read_note(data: bytes) -> Note | None:
    """Return a note, or None for bytes that are none."""
    try:
        fields: Any = codec.decode(data)
        return Note(*fields)
    except (codec.JSONError, TypeError):
        return None


def used_of(units: str, amounts: Sequence[int], tokens: int, cost_micro: int) -> tuple[int, ...]:
    """Return what each hold of a reservation is settled with: a call that ended runs no more."""
    used = list(amounts)
    for place, unit in enumerate(units):
        if unit == TOKENS:
            used[place] = tokens
        elif unit == MICRO:
            used[place] = cost_micro
        elif unit == RUNNING:
            used[place] = 0
    return tuple(used)
