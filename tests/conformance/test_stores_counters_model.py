"""Redis against the counters in memory: the same answers to any history, calls repeated and connections cut or not."""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from gateway.core.counting import Counters, Expired, Hold, Verdict, Window
from gateway.core.scope import Scope
from gateway.stores.memory import MemoryCounters
from gateway.stores.redis.client import Client
from gateway.stores.redis.counters import RedisCounters
from tests.support.fault_proxy import FaultProxy, fault_proxy
from tests.support.redis_calls import PATIENT, using, works_after
from tests.support.redis_server import shared_url

DAY_S = 86_400
LEASES = (0.0, 3600.0)
EAGER = PATIENT._replace(pause_s=0.001)

ids = st.sampled_from(["r1", "r2", "r3", "r4"])
amounts = st.integers(0, 6)
cuts = st.one_of(
    st.none(),
    st.tuples(st.just("replies"), st.integers(0, 40)),
    st.tuples(st.just("requests"), st.integers(1, 600)),
)
bare = st.builds(
    Hold,
    key=st.sampled_from(["a", "b"]),
    amount=amounts,
    limit=st.none() | st.integers(0, 12),
    window=st.sampled_from(["none", "day", "past", "long"]),
    lifted=st.booleans(),
    base=st.none() | st.integers(0, 9),
)
hold_lists = st.lists(bare, max_size=3)


class Histories(RuleBasedStateMachine):
    """Does everything to both."""

    def __init__(self) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        self._scope = Scope(f"t-{uuid.uuid4().hex[:12]}")
        self._model = MemoryCounters()
        self._reserved: dict[str, Sequence[Hold]] = {}
        now = int(time.time())
        day = now // DAY_S * DAY_S
        self._windows = {
            "none": Window(),
            "day": Window(day - DAY_S, day + 2 * DAY_S),
            "past": Window(day - DAY_S, day - 1),
            "long": Window(now - 7, now + 400 * DAY_S),
        }
        self._proxy, self._client = self._runner.run(self._open())
        self._redis = RedisCounters(self._client)

    async def _open(self) -> tuple[FaultProxy, Client]:
        port = int(shared_url().rpartition(":")[2].partition("/")[0])
        proxy = await self._stack.enter_async_context(fault_proxy(port))
        client = await self._stack.enter_async_context(using(proxy.url, EAGER))
        return proxy, client

    def teardown(self) -> None:
        self._runner.run(self._stack.aclose())
        self._runner.close()

    def _holds(self, drawn: Sequence[Hold]) -> tuple[Hold, ...]:
        return tuple(
            hold._replace(
                key=self._scope.key("count", hold.key), window=self._windows[str(hold.window)]
            )
            for hold in drawn
        )

    def _both(
        self,
        call: Callable[[Counters], Awaitable[Any]],
        cut: tuple[str, int] | None,
        *,
        twice: bool,
    ) -> Any:
        """Return what both say, which is the same."""

        async def run() -> tuple[Any, Any]:
            expected = await call(self._model)
            if cut:
                await works_after(self._client)
                self._proxy.cut_after(**{cut[0]: cut[1]})
            found = await call(self._redis)
            self._proxy.heal()
            return expected, found

        expected, found = map(_plain, self._runner.run(run()))
        assert found == expected
        if twice:
            again, once_more = map(_plain, self._runner.run(run()))
            assert once_more == again
        return expected

    @initialize()
    def begin(self) -> None:
        """Begin the memory of both at about one time."""
        self._both(
            lambda one: one.reserve(self._scope.tenant, "first", (), 3600), None, twice=False
        )

    @rule(
        run=ids, drawn=hold_lists, lease=st.sampled_from(LEASES), twice=st.booleans(), cut=cuts,
        note=st.binary(max_size=8),
    )  # fmt: skip
    def reserve(
        self, run: str, drawn: list[Hold], lease: float, twice: bool, cut: Any, note: bytes
    ) -> None:
        holds = self._holds(drawn)
        granted = self._both(
            lambda one: one.reserve(self._scope.tenant, run, holds, lease, note), cut, twice=twice
        )
        if granted.granted:
            self._reserved.setdefault(run, holds)

    @rule(run=ids, totals=st.lists(amounts, max_size=3), twice=st.booleans(), cut=cuts)
    def extend(self, run: str, totals: list[int], twice: bool, cut: Any) -> None:
        self._both(lambda one: one.extend(self._scope.tenant, run, totals), cut, twice=twice)

    @rule(run=ids, totals=st.lists(amounts, min_size=3, max_size=3), cut=cuts)
    def extend_what_is_held(self, run: str, totals: list[int], cut: Any) -> None:
        totals = totals[: len(self._reserved.get(run, ()))]
        self._both(lambda one: one.extend(self._scope.tenant, run, totals), cut, twice=True)

    @rule(run=ids, drawn=hold_lists, actual=st.lists(amounts, min_size=3, max_size=3), cut=cuts)
    def settle(self, run: str, drawn: list[Hold], actual: list[int], cut: Any) -> None:
        holds = self._reserved.get(run) or self._holds(drawn)
        used = actual[: len(holds)]
        if cut is None:
            self._both(
                lambda one: one.settle(self._scope.tenant, run, holds, used), None, twice=True
            )
            return
        # A settlement whose reply is lost is sent again and then says that it had been settled.
        self._runner.run(self._settle_cut(run, holds, used, cut))
        self.look(drawn)

    async def _settle_cut(
        self, run: str, holds: Sequence[Hold], used: Sequence[int], cut: tuple[str, int]
    ) -> None:
        await self._model.settle(self._scope.tenant, run, holds, used)
        await works_after(self._client)
        self._proxy.cut_after(**{cut[0]: cut[1]})
        await self._redis.settle(self._scope.tenant, run, holds, used)
        self._proxy.heal()

    @rule(runs=st.lists(ids, max_size=3), lease=st.sampled_from(LEASES), cut=cuts)
    def renew(self, runs: list[str], lease: float, cut: Any) -> None:
        self._both(lambda one: one.renew(self._scope.tenant, runs, lease), cut, twice=False)

    @rule(cut=cuts)
    def expire(self, cut: Any) -> None:
        self._both(lambda one: one.expired(self._scope.tenant, 100), cut, twice=False)

    @rule(drawn=hold_lists)
    def look(self, drawn: list[Hold]) -> None:
        known = [hold for holds in self._reserved.values() for hold in holds]
        holds = (*self._holds(drawn), *known)
        self._both(lambda one: one.used(self._scope.tenant, holds), None, twice=False)


def _plain(said: Any) -> Any:
    """Leave out what differs between two clocks."""
    if isinstance(said, Verdict):
        return said._replace(now_ms=0)
    if isinstance(said, list):
        items = cast("list[object]", said)
        return sorted(one for one in items if isinstance(one, Expired)) or items
    return said


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.bug("K14", "K15", "K17", "K18")
@pytest.mark.fault("RS-2")
class TestHistories(Histories.TestCase):
    settings = settings(
        max_examples=50, stateful_step_count=25, deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )  # fmt: skip
