"""Counters in Redis: one script, one round trip for each call."""

from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from struct import pack
from typing import Any, Final, NamedTuple

from gateway.core.counting import Expired, Hold, Note, Verdict, Window
from gateway.core.scope import Scope
from gateway.stores.bounds import MAX_AMOUNT, check_amounts
from gateway.stores.redis.client import Client
from gateway.stores.redis.wire import Reply

_MS: Final = 1000
_REMEMBERED: Final = 100_000
_FIELDS: Final = 6
_NO_LIMIT: Final = -(2**62)
_NO_BASE: Final = -1
_NOT_LIFTED: Final = -2


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
        if amounts is not None:
            holds = [
                hold._replace(amount=amount) for hold, amount in zip(holds, amounts, strict=True)
            ]
        note = note() if callable(note) else note
        check_amounts([hold.amount for hold in holds])
        scope = _scope(tenant)
        counters = [_counter(hold) for hold in holds]
        keys = (scope.since, scope.leases, scope.runs + run_id, *counters)
        args = (run_id, int(lease_s * _MS), note, _packed(holds))
        verdict = _verdict(await self._client.script("reserve", keys, args, identified=True))
        if verdict.granted:
            self._remember(run_id, tuple(counters))
        return verdict

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
        check_amounts(actual)
        scope = _scope(tenant)
        keys = (scope.leases, scope.runs + run_id, *map(_counter, holds))
        numbers: list[int] = []
        for hold, amount in zip(holds, actual, strict=True):
            numbers += (hold.window.end, amount)
        packed = pack(f"<{len(numbers)}q", *numbers)
        settled = await self._client.script("settle", keys, (run_id, packed))
        self._running.pop(run_id, None)
        return bool(settled)

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


def _packed(holds: Sequence[Hold]) -> bytes:
    """Write what the script needs of each hold beside its key."""
    numbers: list[int] = []
    for _, amount, limit, (start, end), lifted, base in holds:
        most = _NO_LIMIT if limit is None else min(limit, MAX_AMOUNT)
        given = _NO_BASE if base is None else min(base, MAX_AMOUNT)
        numbers += (start, end, most, given if lifted else _NOT_LIFTED, amount)
    return pack(f"<{len(numbers)}q", *numbers)


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
