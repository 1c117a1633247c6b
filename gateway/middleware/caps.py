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


@dataclass(frozen=True, slots=True)
class Cap:
    """One limit of one layer, over a window and for each owner of its scope.

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
    _keys: dict[str, str] = field(default_factory=dict[str, str], compare=False)

    @property
    def word(self) -> str:
        """The unit as callers read it."""
        return WORDS[self.unit]

    @property
    def lifted(self) -> bool:
        """Whether the ledger knows what was spent."""
        return self.kind == "budget" and self.unit in {TOKENS, MICRO}

    def window(self, now_s: float) -> Window:
        """Return its window at a moment of the store's clock."""
        return self.calendar.window(self.per, now_s) if self.per else ENDLESS

    def hold(self, run: Run, tenant: Scope, amount: int, now_s: float) -> Hold:
        """Return what a run holds of it."""
        if self.is_rate and amount > self.limit:
            amount = self.limit
        limit = self.limit if self.enforced else None
        owner = _OWNERS[self.scope](run)
        # Of those who do not say who they are the ledger cannot tell what they spent.
        lifted = self.lifted and (owner != "" or self.scope == "tenant")
        return Hold(self._key(owner, tenant), amount, limit, self.window(now_s), lifted)

    def _key(self, owner: str, tenant: Scope) -> str:
        key = self._keys.get(owner)
        if key is None:
            per = self.per or "now"
            key = tenant.key(self.kind, self.layer, self.unit, per, self.scope, owner)
            if len(self._keys) >= _MOST_KEPT:
                self._keys.clear()
            self._keys[owner] = key
        return key

    def owner(self, run: Run) -> Owner:
        """Return whose rows of the ledger count."""
        if self.scope == "tenant":
            return Owner(run.tenant)
        field_name = "key_id" if self.scope == "key" else self.scope
        return Owner(run.tenant, **{field_name: _OWNERS[self.scope](run)})

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
SCOPES = tuple(_OWNERS)


@dataclass(frozen=True, slots=True)
class RunCap:
    """A limit of one run (W-BUD-1): `limit` tokens or micro-dollars, strictly more is too much."""

    unit: str
    limit: int

    def shown(self, amount: int) -> float | int:
        """Return an amount as callers read it: dollars for money."""
        return amount / _MILLION if self.unit == MICRO else amount
