"""What limits and budgets cap: units, windows, owners; and the counters that stand for them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from gateway.core.call import Run
from gateway.core.counting import Hold, Holds, Window
from gateway.core.lease import MICRO, REQUESTS, RUNNING, TOKENS
from gateway.core.ledger import Owner
from gateway.core.scope import Scope, digest
from gateway.middleware.windows import ENDLESS, Calendar

WORDS: Final = {REQUESTS: "requests", TOKENS: "tokens", MICRO: "usd", RUNNING: "concurrent"}
_MOST_KEPT = 4096
_MILLION = 1_000_000
_ALWAYS = (float("-inf"), float("inf"))


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
    owner_of: Callable[[Run], str] = field(init=False)

    def __post_init__(self) -> None:
        self.owner_of = _OWNERS[self.scope]

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

    def held_by(self, owner: str, tenant: Scope, now_s: float) -> Hold:
        """Return a hold of one for an owner by name."""
        key = tenant.key(self.kind, self.layer, self.unit, self.per or "now", self.scope, owner)
        # Of those who do not say who they are the ledger cannot tell what they spent.
        lifted = self.kind == "budget" and self.is_sized and (owner != "" or self.scope == "tenant")
        limit = self.limit if self.enforced else None
        return Hold(key, 1, limit, self.window(now_s), lifted)

    def owner(self, run: Run) -> Owner:
        """Return whose rows of the ledger count."""
        return self.owner_named(run.tenant, self.owner_of(run))

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


class Held:
    """What runs hold of several caps together: made once for each owner, and anew when a window begins."""

    __slots__ = ("_caps", "_kept", "_tenant", "_whose")

    def __init__(self, caps: Sequence[Cap], tenant: Scope) -> None:
        self._caps = caps
        self._tenant = tenant
        self._kept: dict[object, tuple[float, float, Holds]] = {}
        self._whose = _whose({cap.scope for cap in caps})

    def of(self, run: Run, now_s: float) -> Holds:
        """Return the holds of a run, of one each, at a moment of the store's clock."""
        owners = self._whose(run)
        kept = self._kept.get(owners)
        if kept is not None and kept[0] <= now_s < kept[1]:
            return kept[2]
        holds = Holds([cap.held_by(cap.owner_of(run), self._tenant, now_s) for cap in self._caps])
        windows = [hold.window for hold in holds if hold.window.end]
        start = max((window.start for window in windows), default=_ALWAYS[0])
        end = min((window.end for window in windows), default=_ALWAYS[1])
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        self._kept[owners] = (start, end, holds)
        return holds


def _whose(scopes: set[str]) -> Callable[[Run], object]:
    """Return what tells the owners of these scopes from all others."""
    found = [_OWNERS[scope] for scope in sorted(scopes - {"tenant"})]
    if not found:
        return _OWNERS["tenant"]
    if len(found) == 1:
        return found[0]
    return lambda run: tuple([owner(run) for owner in found])


@dataclass(frozen=True, slots=True)
class RunCap:
    """A limit of one run (W-BUD-1): `limit` tokens or micro-dollars, strictly more is too much."""

    unit: str
    limit: int

    def shown(self, amount: int) -> float | int:
        """Return an amount as callers read it: dollars for money."""
        return amount / _MILLION if self.unit == MICRO else amount
