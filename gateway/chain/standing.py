"""How far the caps of every tenant are used up, for those whose owners the configuration names."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from gateway.chain.compiled import Chain
from gateway.chain.layers import check_chains
from gateway.config.patterns import covers
from gateway.config.schema import Tree
from gateway.config.tenants import Tenant
from gateway.core import clock
from gateway.core.counting import Counters, Hold
from gateway.core.errors import StoreError
from gateway.core.lease import MICRO
from gateway.core.ledger import Ledger
from gateway.core.scope import Scope
from gateway.core.standing import Standing
from gateway.middleware.admitting import Admitting
from gateway.middleware.caps import Cap


class ChainStandings:
    """See `core.standing.Standings`; `tree` returns the configuration in force.

    What users and sessions have used is known to the store alone, so that it is not shown. Counters that begin anew
    know of nothing until their owner calls: of budgets the ledger's sum is shown where it is more. `ledger` None:
    there is none to ask.
    """

    def __init__(self, tree: Callable[[], Tree], counters: Counters, ledger: Ledger | None) -> None:
        self._tree = tree
        self._counters = counters
        self._ledger = ledger
        self._seen: Tree | None = None
        self._caps: dict[str, tuple[Cap, ...]] = {}

    async def __call__(self, tenant: str) -> Sequence[Standing]:
        """Return the caps of a tenant, or of all when it is empty."""
        tree = self._tree()
        if tree is not self._seen:
            built = check_chains(tree).built
            self._caps = {name: _caps_of(built[name]) for name in tree.tenants}
            self._seen = tree
        found: list[Standing] = []
        spent = _Spent(self._ledger)
        for name in sorted(self._caps):
            if tenant in {"", name}:
                found += await self._of(tree, name, spent)
        return found

    async def _of(self, tree: Tree, tenant: str, spent: "_Spent") -> Sequence[Standing]:
        scope, now_s = Scope(tenant), clock.wall()
        rows: list[tuple[Cap, str, Hold]] = [
            (cap, owner, cap.held_by(owner, scope, now_s))
            for cap in self._caps[tenant]
            for owner in _owners(cap.scope, tree, tree.tenants[tenant])
        ]
        used = await self._counters.used(tenant, [hold for _, _, hold in rows])
        found: list[Standing] = []
        for (cap, owner, hold), counted in zip(rows, used, strict=True):
            written = await spent.by(cap, tenant, owner, hold) if hold.lifted else 0
            found.append(
                Standing(
                    tenant, cap.kind, cap.layer, cap.scope, owner, cap.word, cap.per, hold.window,
                    cap.limit, max(counted, written or 0), cap.enforced, written is not None,
                )
            )  # fmt: skip
        return found


class _Spent:
    """What the ledger knows; once it does not answer it is not asked again, so that nobody waits for each row."""

    def __init__(self, ledger: Ledger | None) -> None:
        self._ledger = ledger

    async def by(self, cap: Cap, tenant: str, owner: str, hold: Hold) -> int | None:
        """Return what an owner spent in a window, in the cap's unit; None: not known."""
        if self._ledger is None:
            return None
        window = hold.window
        try:
            total = await self._ledger.total(
                cap.owner_named(tenant, owner), window.start * 1000, window.end * 1000
            )
        except StoreError:
            self._ledger = None
            return None
        return total.cost_micro if cap.unit == MICRO else total.tokens


def _caps_of(chain: Chain) -> tuple[Cap, ...]:
    layers = (layer.middleware for layer in chain.layers)
    return tuple(cap for layer in layers if isinstance(layer, Admitting) for cap in layer.part.caps)


def _owners(scope: str, tree: Tree, tenant: Tenant) -> Iterable[str]:
    match scope:
        case "tenant":
            return ("",)
        case "key":
            return [key.id for key in tenant.keys]
        case "model":
            return _models(tree, tenant)
        case "agent":
            return sorted(tenant.agents)
        case _:
            return ()


def _models(tree: Tree, tenant: Tenant) -> Iterator[str]:
    for name in sorted(tree.models):
        if any(covers(each, name) or covers(name, each) for each in tenant.models):
            yield name
