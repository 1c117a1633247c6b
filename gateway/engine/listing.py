"""The names behind patterns: what a provider lists itself, kept for minutes; a slow provider lists nothing."""

import asyncio
from typing import Any

from gateway.chain.plan import Account, Pattern, Principal
from gateway.core import clock, codec
from gateway.core.errors import UpstreamError

_FRESH_S = 300.0
_RETRY_S = 30.0
_WAIT_S = 2.0
_MAX_BYTES = 8 << 20
_MAX_NAMES = 5000
_OK = 200


class _Row(codec.Struct):
    id: Any = None


class _Listed(codec.Struct):
    data: list[_Row]


_decode = codec.Decoder(_Listed).decode


class Listing:
    """Asks providers for their models; one per process, keyed by the operator's name of the account."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[float, tuple[str, ...]]] = {}

    async def names(self, principal: Principal) -> list[tuple[str, Pattern]]:
        """Return the names that a caller's patterns stand for, as far as providers tell them."""
        wide = [p for p in principal.patterns if p.model.targets[0].model == "*"]
        accounts = {p.model.targets[0].account.name: p.model.targets[0].account for p in wide}
        lists = await asyncio.gather(*(self._list(account) for account in accounts.values()))
        known = dict(zip(accounts, lists, strict=True))
        found: list[tuple[str, Pattern]] = []
        for pattern in wide:
            lead = pattern.model.prefix[: pattern.model.prefix.rfind("/") + 1]
            names = (lead + own for own in known[pattern.model.targets[0].account.name])
            found.extend((name, pattern) for name in names if pattern.fits(name))
        return found

    async def _list(self, account: Account) -> tuple[str, ...]:
        if account.row.is_local or "models" not in account.row.endpoints:
            return ()
        now = clock.monotonic()
        until, names = self._kept.get(account.name, (0.0, ()))
        if now < until:
            return names
        try:
            names, fresh_s = await _ask(account, now + _WAIT_S), _FRESH_S
        except (UpstreamError, codec.JSONError):
            fresh_s = _RETRY_S
        self._kept[account.name] = (now + fresh_s, names)
        return names


async def _ask(account: Account, deadline: float) -> tuple[str, ...]:
    path = account.row.target_path(account.base_path, b"/models", "", account.api_version)
    answer = await account.keys[0].door.send(b"GET", path, (), None, deadline)
    if answer.status != _OK:
        answer.abort()
        return ()
    listed = _decode(await answer.read_all(_MAX_BYTES))
    names = (row.id for row in listed.data[:_MAX_NAMES])
    return tuple(name for name in names if isinstance(name, str) and name.isprintable())
