"""Counters in Redis: one script, one round trip for each call."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final

from gateway.core.counting import Expired, Hold, Verdict, Window
from gateway.core.scope import Scope
from gateway.stores.bounds import check_amounts
from gateway.stores.redis.client import Client
from gateway.stores.redis.wire import Part, Reply

_MS: Final = 1000
_REMEMBERED: Final = 100_000
_FIELDS: Final = 6


class RedisCounters:
    """Exact counters that all processes share. Time is the server's own.

    Closing it closes the client.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        # Which counters a run holds: a script has to name its keys before it runs.
        self._running: OrderedDict[str, tuple[str, ...]] = OrderedDict()

    async def reserve(
        self, tenant: str, run_id: str, holds: Sequence[Hold], lease_s: float, note: bytes = b""
    ) -> Verdict:
        """Reserve all or nothing; a second call with the same id returns the first one's success."""
        check_amounts(hold.amount for hold in holds)
        scope = Scope(tenant)
        counters = [_counter(hold) for hold in holds]
        keys = (_since(scope), _leases(scope), _run(scope, run_id), *counters)
        args: list[Part] = [run_id, int(lease_s * _MS), note]
        for hold in holds:
            limit = "" if hold.limit is None else hold.limit
            base = "" if not hold.lifted else "-" if hold.base is None else hold.base
            args += (hold.window.start, hold.window.end, limit, base, hold.amount)
        verdict = _verdict(await self._client.script("reserve", keys, args, identified=True))
        if verdict.granted:
            self._remember(run_id, tuple(counters))
        return verdict

    async def extend(self, tenant: str, run_id: str, amounts: Sequence[int]) -> Verdict:
        """Raise the amounts of a reservation to these totals, all or nothing."""
        check_amounts(amounts)
        scope = Scope(tenant)
        counters = self._running.get(run_id)
        if counters is None:
            counters = await self._look_up(scope, run_id)
        keys = (_run(scope, run_id), *counters)
        return _verdict(await self._client.script("extend", keys, amounts))

    async def settle(
        self, tenant: str, run_id: str, holds: Sequence[Hold], actual: Sequence[int]
    ) -> bool:
        """Turn a reservation into what was really used; False when it had been settled before."""
        check_amounts(actual)
        scope = Scope(tenant)
        keys = (_leases(scope), _run(scope, run_id), *map(_counter, holds))
        args: list[Part] = [run_id]
        for hold, amount in zip(holds, actual, strict=True):
            args += (hold.window.end, amount)
        settled = await self._client.script("settle", keys, args)
        self._running.pop(run_id, None)
        return bool(settled)

    async def renew(self, tenant: str, run_ids: Sequence[str], lease_s: float) -> None:
        """Extend the leases of reservations that still run."""
        keys = (_leases(Scope(tenant)),)
        await self._client.script("renew", keys, (int(lease_s * _MS), *run_ids))

    async def expired(self, tenant: str, limit: int) -> Sequence[Expired]:
        """Return reservations whose lease has ended, the oldest first."""
        scope = Scope(tenant)
        due: list[bytes] = await self._client.script("due", (_leases(scope),), (limit,))
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

    async def _runs(self, scope: Scope, ids: Sequence[str]) -> list[tuple[str, bytes, list[Any]]]:
        """Return id, note and the fields of each hold of runs that are not settled."""
        if not ids:
            return []
        keys = (_leases(scope), *(_run(scope, run_id) for run_id in ids))
        found: list[Any] = await self._client.script("runs", keys, ids)
        return [
            (run_id.decode(), fields[0], [fields[at : at + _FIELDS] for at in range(1, len(fields), _FIELDS)])
            for run_id, fields in found
        ]  # fmt: skip

    async def _look_up(self, scope: Scope, run_id: str) -> tuple[str, ...]:
        """Ask which counters a run holds that another process made."""
        for _, _, holds in await self._runs(scope, [run_id]):
            self._remember(run_id, tuple(bytes(fields[0]).decode() for fields in holds))
        return self._running.get(run_id, ())

    def _remember(self, run_id: str, counters: tuple[str, ...]) -> None:
        self._running[run_id] = counters
        if len(self._running) > _REMEMBERED:
            self._running.popitem(last=False)


def _since(scope: Scope) -> str:
    return scope.key("counters", "since")


def _leases(scope: Scope) -> str:
    return scope.key("counters", "leases")


def _run(scope: Scope, run_id: str) -> str:
    return scope.key("counters", "run", run_id)


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
    window = Window(int(start), int(end))
    key = bytes(counter).decode().removesuffix(_suffix(window))
    return Hold(key, int(amount), None if limit == b"" else int(limit), window, bool(lifted))
