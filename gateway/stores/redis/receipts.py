"""Receipts in Redis: one script, one round trip for each call."""

from typing import Final

from gateway.core.receipts import KEEP_S, Answer, Holder, Receipt, State, pack, unpack
from gateway.core.scope import Scope
from gateway.stores.redis.client import Client

_MS: Final = 1000
_STATES: Final[dict[bytes, State]] = {
    b"new": "new",
    b"running": "running",
    b"done": "done",
    b"lost": "lost",
}


class RedisReceipts:
    """Receipts that all processes share, for `keep_s` seconds. Time is the server's own.

    Closing it closes the client.
    """

    def __init__(self, client: Client, keep_s: float = KEEP_S) -> None:
        self._client = client
        self._keep_ms = int(keep_s * _MS)

    async def claim(self, holder: Holder, fingerprint: str, lease_s: float) -> Receipt:
        """Take a key that is free, or tell what is known of it."""
        args = (holder.token, fingerprint, int(lease_s * _MS))
        state, first, answer = await self._client.script("receipt_claim", _key(holder), args)
        return Receipt(_STATES[state], first.decode(), unpack(answer) if answer else None)

    async def calling(self, holder: Holder, lease_s: float) -> bool:
        """Note that a provider is about to be called."""
        args = (holder.token, int(lease_s * _MS), self._keep_ms)
        return bool(await self._client.script("receipt_calling", _key(holder), args))

    async def finish(self, holder: Holder, fingerprint: str, answer: Answer | None) -> bool:
        """Keep the answer, or None for one that is lost."""
        state, packed = ("lost", b"") if answer is None else ("done", pack(answer))
        args = (holder.token, self._keep_ms, fingerprint, state, packed)
        return bool(await self._client.script("receipt_finish", _key(holder), args))

    async def release(self, holder: Holder) -> None:
        """Set a key free."""
        await self._client.script("receipt_release", _key(holder), (holder.token,))

    async def renew(self, holder: Holder, lease_s: float) -> None:
        """Extend the lease of a request that still runs."""
        args = (holder.token, int(lease_s * _MS))
        await self._client.script("receipt_renew", _key(holder), args)

    async def aclose(self) -> None:
        """Close the client."""
        await self._client.aclose()


def _key(holder: Holder) -> tuple[str]:
    return (Scope(holder.tenant).key("receipt", holder.name),)
