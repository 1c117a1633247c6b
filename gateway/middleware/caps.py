"""What limits and budgets cap: units, windows, owners; and the counters that stand for them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from gateway.core.call import Run
from gateway.core.counting import Hold, Window
from gateway.core.lease import MICRO, REQUESTS, RUNNING, TOKENS
from gateway.core.ledger import Owner
from gateway.core.scope import Scope, digest
from gateway.middleware.windows import ENDLESS, Calendar

WORDS: Final = {REQUESTS: "requests", TOKENS: "tokens", MICRO: "usd", RUNNING: "concurrent"}
_MOST_KEPT = 4096
_MILLION = 1_000_000


@dataclass(eq=False, slots=True)
class Cap:
    """One limit of one layer, over a window and for each owner of its scope; never changed once built.

    `enforced` False: counted, never refused (shadow, warn). `strict`: reserved at the worst case. `is_rate`: a call
    that alone may be larger than the limit passes once nothing else counts.
    """

    kind: str
    layer: str
    unit: str
    limit: int
    per: str
    scope: str
    calendar: Calendar
    enforced: bool = True
    strict: bool = True
    is_rate: bool = False
    _held: dict[str, Hold] = field(default_factory=dict[str, Hold], init=False)
    _owner: Callable[[Run], str] = field(init=False)

    def __post_init__(self) -> None:
        self._owner = _OWNERS[self.scope]

    @property
    def word(self) -> str:
        """The unit as callers read it."""
        return WORDS[self.unit]

    @property
    def is_sized(self) -> bool:
        """Whether it counts how large calls are, not how many."""
        return self.unit in {TOKENS, MICRO}

    def window(self, now_s: float) -> Window:
        """Return its window at a moment of the store's clock."""
        return self.calendar.window(self.per, now_s) if self.per else ENDLESS

    def hold(self, run: Run, tenant: Scope, amount: int, now_s: float) -> Hold:
        """Return what a run holds of it."""
        owner = self._owner(run)
        hold = self._held.get(owner)
        if hold is None or (hold.window.end and not hold.window.start <= now_s < hold.window.end):
            hold = self._make(owner, tenant, now_s)
        if hold.amount == amount:
            return hold
        if self.is_rate and amount > self.limit:
            amount = self.limit
        return Hold(hold.key, amount, hold.limit, hold.window, hold.lifted)

    def held_by(self, owner: str, tenant: Scope, now_s: float) -> Hold:
        """Return a hold of one for an owner by name, to ask how much is used."""
        return self._make(owner, tenant, now_s)

    def _make(self, owner: str, tenant: Scope, now_s: float) -> Hold:
        """Return a hold of one, kept while its window lasts."""
        key = tenant.key(self.kind, self.layer, self.unit, self.per or "now", self.scope, owner)
        # Of those who do not say who they are the ledger cannot tell what they spent.
        lifted = self.kind == "budget" and self.is_sized and (owner != "" or self.scope == "tenant")
        limit = self.limit if self.enforced else None
        if len(self._held) >= _MOST_KEPT:
            self._held.clear()
        hold = self._held[owner] = Hold(key, 1, limit, self.window(now_s), lifted)
        return hold

    def owner(self, run: Run) -> Owner:
        """Return whose rows of the ledger count."""
        return self.owner_named(run.tenant, self._owner(run))

    def owner_named(self, tenant: str, name: str) -> Owner:
        """Return whose rows of the ledger count for an owner by name."""
        if self.scope == "tenant":
            return Owner(tenant)
        field_name = "key_id" if self.scope == "key" else self.scope
        return Owner(tenant, **{field_name: name})

    def shown(self, amount: int) -> float | int:
        """Return an amount as callers read it: dollars for money."""
        return amount / _MILLION if self.unit == MICRO else amount


_OWNERS: dict[str, Callable[[Run], str]] = {
    "tenant": lambda _: "",
    "key": lambda run: run.key_id,
    "user": lambda run: digest(run.user) if run.user else "",
    "session": lambda run: digest(run.session) if run.session else "",
    "model": lambda run: run.model,
    "agent": lambda run: run.agent,
}


@dataclass(frozen=True, slots=True)
class RunCap:
    """A limit of one run (W-BUD-1): `limit` tokens or micro-dollars, strictly more is too much."""

    unit: str
    limit: int

    def shown(self, amount: int) -> float | int:
        """Return an amount as callers read it: dollars for money."""
        return amount / _MILLION if self.unit == MICRO else amount
