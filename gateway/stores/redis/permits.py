"""Leases of probes in Redis, so that all replicas send one probe between them; without Redis each asks itself."""

import asyncio
from typing import Final

from gateway.core.errors import StoreError
from gateway.core.ids import new_request_id
from gateway.core.probing import LocalPermits
from gateway.core.scope import common_key
from gateway.stores.redis.client import Client
from gateway.stores.redis.node import Spawn

_MS: Final = 1000


class RedisPermits:
    """Leases that all processes share; each names its holder, so that a lost reply may be asked for again.

    Closing it closes the client.
    """

    def __init__(self, client: Client, spawn: Spawn) -> None:
        self._client = client
        self._spawn = spawn
        self._local = LocalPermits()
        self._held: dict[str, str] = {}

    async def permit(self, target_key: str, ttl_s: float) -> bool:
        """Take the lease; while Redis does not answer, among the calls of this process alone."""
        if not await self._local.permit(target_key, ttl_s):
            return False
        key, token = common_key("probe", target_key), new_request_id()
        self._held[target_key] = token
        try:
            holder = await self._client.command(
                key, "SET", key, token, "NX", "GET", "PX", int(ttl_s * _MS)
            )
        except StoreError:
            return True
        except asyncio.CancelledError:
            self.release(target_key)
            raise
        if holder is None or holder == token.encode():
            return True
        self._local.release(target_key)
        return False

    def release(self, target_key: str) -> None:
        """Give the lease back, in the background."""
        self._local.release(target_key)
        token = self._held.pop(target_key, "")
        self._spawn(self._give_back(common_key("probe", target_key), token), "end of a probe")

    async def _give_back(self, key: str, token: str) -> None:
        try:
            await self._client.script("permit_release", (key,), (token,))
        except StoreError:
            return  # it ends by itself

    async def aclose(self) -> None:
        """Close the client."""
        await self._client.aclose()
