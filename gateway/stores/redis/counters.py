"""Counters in Redis: one script, one round trip for each call."""

from asyncio import gather
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache
from struct import Struct, pack
from typing import Any, Final, NamedTuple, cast

from gateway.core.counting import Ended, Expired, Hold, Holds, Note, Verdict, Window
from gateway.core.errors import StoreError
from gateway.core.scope import Scope
from gateway.stores.bounds import MAX_AMOUNT, check_amounts
from gateway.stores.redis.client import Client
from gateway.stores.redis.scripts import load
from gateway.stores.redis.wire import Reply

_MS: Final = 1000
_REMEMBERED: Final = 100_000
_FIELDS: Final = 6
_NO_LIMIT: Final = -(2**62)
_NO_BASE: Final = -1
_NOT_LIFTED: Final = -2
_RESERVE: Final = load("reserve")
_SETTLE: Final = load("settle")


class _Keys(NamedTuple):
    """The keys of a tenant, but for its counters; that of a run begins with `runs`."""

    since: str
    leases: str
    runs: str


@lru_cache(4096)
def _scope(tenant: str) -> _Keys:
    scope = Scope(tenant)
    names = (("since",), ("leases",), ("run", ""))
    return _Keys(*(scope.key("counters", *name) for name in names))


class RedisCounters:
    """Exact counters that all processes share. Time is the server's own.

    Closing it closes the client.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        # Which counters a run holds: a script has to name its keys before it runs.
        self._running: OrderedDict[str, tuple[str, ...]] = OrderedDict()

    async def reserve(
        self,
        tenant: str,
        run_id: str,
        holds: Sequence[Hold],
        lease_s: float,
        note: Note = b"",
        amounts: Sequence[int] | None = None,
    ) -> Verdict:
        """Reserve all or nothing; a second call with the same id returns the first one's success."""
        if amounts is None:
            amounts = [hold.amount for hold in holds]
        check_amounts(amounts)
        scope, known = _scope(tenant), self._known(holds)
        counters = known.counters
        parts = (
            "EVALSHA", _RESERVE.sha, 3 + len(counters), scope.since, scope.leases, scope.runs + run_id, *counters,
            "", run_id, int(lease_s * _MS), note() if callable(note) else note, known.holds, known.pack(*amounts),
        )  # fmt: skip
        reply = await self._client.call(
            scope.since, parts, server_at=6 + len(counters), script=_RESERVE
        )
        verdict = _verdict(reply)
        if verdict.granted:
            self._remember(run_id, counters)
        return verdict

    def _known(self, holds: Sequence[Hold]) -> "_Known":
        """Return what is sent of holds; worked out once for those that runs share."""
        if type(holds) is not Holds:
            return _known_of(holds)
        memo = holds.memo
        if memo is None or memo[0] is not self:
            memo = holds.memo = (self, _known_of(holds))
        return cast("_Known", memo[1])

    async def extend(self, tenant: str, run_id: str, amounts: Sequence[int]) -> Verdict:
        """Raise the amounts of a reservation to these totals, all or nothing."""
        check_amounts(amounts)
        scope = _scope(tenant)
        counters = self._running.get(run_id)
        if counters is None:
            counters = await self._look_up(scope, run_id)
        keys = (scope.runs + run_id, *counters)
        return _verdict(await self._client.script("extend", keys, amounts))

    async def settle(
        self, tenant: str, run_id: str, holds: Sequence[Hold], actual: Sequence[int]
    ) -> bool:
        """Turn a reservation into what was really used; False when it had been settled before."""
        [settled] = await self._settle(tenant, [Ended(tenant, run_id, holds, actual)])
        return bool(settled)

    async def settle_all(self, ended: Sequence[Ended]) -> Sequence[StoreError | None]:
        """Settle several runs, those of a tenant in one call; returns what each failed with.

        Where the server refuses a call, each of its runs is settled by itself: one must not keep out the others.
        """
        first = ended[0].tenant if ended else ""
        if all(each.tenant == first for each in ended):
            return await self._settle_those(first, ended)
        by_tenant: dict[str, list[Ended]] = {}
        for each in ended:
            by_tenant.setdefault(each.tenant, []).append(each)
        found = await gather(*(self._settle_those(*one) for one in by_tenant.items()))
        errors = dict(zip(by_tenant, map(iter, found), strict=True))
        return [next(errors[each.tenant]) for each in ended]

    async def _settle_those(
        self, tenant: str, ended: Sequence[Ended]
    ) -> Sequence[StoreError | None]:
        try:
            await self._settle(tenant, ended)
        except StoreError as error:
            if error.reason != "refused" or len(ended) == 1:
                return [error] * len(ended)
            return [(await self._settle_those(tenant, [each]))[0] for each in ended]
        return [None] * len(ended)

    async def _settle(self, tenant: str, ended: Sequence[Ended]) -> Sequence[int]:
        if not ended:
            return []
        scope = _scope(tenant)
        keys, args = [scope.leases], list[str | bytes]()
        for _, run_id, holds, actual in ended:
            check_amounts(actual)
            counters, _, _, ends = self._known(holds)
            keys += (scope.runs + run_id, *counters)
            numbers = [len(counters)]
            for pair in zip(ends, actual, strict=True):
                numbers += pair
            args += (run_id, pack(f"<{len(numbers)}q", *numbers))
        parts = ("EVALSHA", _SETTLE.sha, len(keys), *keys, *args)
        settled: Sequence[int] = await self._client.call(scope.leases, parts, script=_SETTLE)
        for each in ended:
            self._running.pop(each.run_id, None)
        return settled

    async def renew(self, tenant: str, run_ids: Sequence[str], lease_s: float) -> None:
        """Extend the leases of reservations that still run."""
        keys = (_scope(tenant).leases,)
        await self._client.script("renew", keys, (int(lease_s * _MS), *run_ids))

    async def expired(self, tenant: str, limit: int) -> Sequence[Expired]:
        """Return reservations whose lease has ended, the oldest first."""
        scope = _scope(tenant)
        due: list[bytes] = await self._client.script("due", (scope.leases,), (limit,))
        return [
            Expired(run_id, tuple(_hold(fields) for fields in holds), note)
            for run_id, note, holds in await self._runs(scope, [name.decode() for name in due])
        ]

    async def used(self, tenant: str, holds: Sequence[Hold]) -> Sequence[int]:
        """Return spent plus held of counters."""
        if not holds:
            return []
        return list(await self._client.script("used", [_counter(hold) for hold in holds], ()))

    async def aclose(self) -> None:
        """Close the client."""
        await self._client.aclose()

    async def _runs(self, scope: _Keys, ids: Sequence[str]) -> list[tuple[str, bytes, list[Any]]]:
        """Return id, note and the fields of each hold of runs that are not settled."""
        if not ids:
            return []
        keys = (scope.leases, *(scope.runs + run_id for run_id in ids))
        found: list[Any] = await self._client.script("runs", keys, ids)
        return [
            (run_id.decode(), fields[0], [fields[at : at + _FIELDS] for at in range(1, len(fields), _FIELDS)])
            for run_id, fields in found
        ]  # fmt: skip

    async def _look_up(self, scope: _Keys, run_id: str) -> tuple[str, ...]:
        """Ask which counters a run holds that another process made."""
        for _, _, holds in await self._runs(scope, [run_id]):
            self._remember(run_id, tuple(bytes(fields[0]).decode() for fields in holds))
        return self._running.get(run_id, ())

    def _remember(self, run_id: str, counters: tuple[str, ...]) -> None:
        self._running[run_id] = counters
        if len(self._running) > _REMEMBERED:
            self._running.popitem(last=False)


class _Known(NamedTuple):
    """What scripts are told of holds: the names of their counters, what never changes of each, the ends of windows.

    `pack` writes their amounts.
    """

    counters: tuple[str, ...]
    holds: bytes
    pack: Callable[..., bytes]
    ends: tuple[int, ...]


def _known_of(holds: Sequence[Hold]) -> _Known:
    numbers: list[int] = []
    for _, _, limit, (start, end), lifted, base in holds:
        most = _NO_LIMIT if limit is None else min(limit, MAX_AMOUNT)
        given = _NO_BASE if base is None else min(base, MAX_AMOUNT)
        numbers += (start, end, most, given if lifted else _NOT_LIFTED)
    return _Known(
        tuple([_counter(hold) for hold in holds]),
        pack(f"<{len(numbers)}q", *numbers),
        Struct(f"<{len(holds)}q").pack,
        tuple([hold.window.end for hold in holds]),
    )


def _counter(hold: Hold) -> str:
    return f"{hold.key}{_suffix(hold.window)}"


def _suffix(window: Window) -> str:
    return f":{window.start}-{window.end}"


def _verdict(reply: Reply) -> Verdict:
    refused, stale, now_ms, missing, used = reply
    return Verdict(refused, tuple(used), now_ms, tuple(missing), bool(stale))


def _hold(fields: Reply) -> Hold:
    """Read what a run kept of a hold: its counter, start, end, limit, whether it is lifted, amount."""
    counter, start, end, limit, lifted, amount = fields
    window = Window(start, end)
    key = bytes(counter).decode().removesuffix(_suffix(window))
    return Hold(key, amount, None if limit == _NO_LIMIT else limit, window, bool(lifted))
