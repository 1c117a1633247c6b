"""How far caps are used up: what `GET /admin/budgets` shows."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from gateway.core.counting import Window


class Standing(NamedTuple):
    """One cap for one owner. `used` is spent plus held, in the cap's unit; money is micro-dollars.

    `kind` and `layer` are the middleware and its id, `unit` is usd, tokens, requests or concurrent, `per` the word
    for the window, `scope` tenant, key, user, session, model or agent, `owner` which one (a digest of users and
    sessions, empty for the tenant). `enforced` False: counted, never refused. `complete` False: the ledger could
    not be asked, what was spent before the counters began may be missing.
    """

    tenant: str
    kind: str
    layer: str
    scope: str
    owner: str
    unit: str
    per: str
    window: Window
    limit: int
    used: int
    enforced: bool = True
    complete: bool = True


class Standings(Protocol):
    """Finds them. Raises StoreError `state_unavailable`."""

    async def __call__(self, tenant: str) -> Sequence[Standing]:
        """Return the caps of a tenant, or of all when it is empty, whose owners are known; in a steady order."""
        ...
