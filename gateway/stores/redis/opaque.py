"""Sealed state of providers in Redis: one trip to look up, one to keep; without Redis nothing is known."""

from collections.abc import Mapping, Sequence
from typing import Final

from gateway.core.errors import StoreError
from gateway.core.scope import Scope, digest
from gateway.stores.redis.client import Client

_MS: Final = 1000
_MOST_AT_ONCE: Final = 500
"""Keys of one command: a script takes no more than its stack holds."""


class RedisOpaque:
    """Sealed state that all processes share. Closing it closes the client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def get_many(
        self, tenant: str, ids: Sequence[str], renew_s: float = 0.0
    ) -> Mapping[str, bytes] | None:
        """Return what is kept under these ids; None when Redis did not answer in time."""
        renew_ms = int(renew_s * _MS)
        found: dict[str, bytes] = {}
        try:
            for some in _batches(ids):
                keys = _keys(tenant, some)
                values = await self._read(keys, renew_ms)
                found.update((i, v) for i, v in zip(some, values, strict=True) if v is not None)
        except StoreError:
            return None
        return found

    async def _read(self, keys: Sequence[str], renew_ms: int) -> list[bytes | None]:
        if renew_ms > 0:
            return await self._client.script("opaque_use", keys, (renew_ms,))
        return await self._client.command(keys[0], "MGET", *keys)

    async def put_many(self, tenant: str, items: Mapping[str, bytes], ttl_s: float) -> bool:
        """Keep items for `ttl_s` seconds; False when Redis did not answer in time."""
        ttl_ms = max(int(ttl_s * _MS), 1)
        try:
            for some in _batches(list(items)):
                values = [items[each] for each in some]
                await self._client.script("opaque_put", _keys(tenant, some), (ttl_ms, *values))
        except StoreError:
            return False
        return True

    async def aclose(self) -> None:
        """Close the client."""
        await self._client.aclose()


def _batches(ids: Sequence[str]) -> Sequence[Sequence[str]]:
    return [ids[at : at + _MOST_AT_ONCE] for at in range(0, len(ids), _MOST_AT_ONCE)]


def _keys(tenant: str, ids: Sequence[str]) -> list[str]:
    scope = Scope(tenant)
    return [scope.key("opaque", digest(each)) for each in ids]
