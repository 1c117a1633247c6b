"""Follows the key store, so that a key made or revoked elsewhere counts here within seconds (I6)."""

import asyncio
import logging
from collections.abc import Callable, Iterable

from gateway.core.errors import StoreError
from gateway.core.ports import KeyStore, StoredKey

_log = logging.getLogger("gateway")
_POLL_S = 1.0


class KeyFollower:
    """Looks for changes of a key store and hands the rows to `swap`, off the loop: many keys take time."""

    def __init__(
        self,
        store: KeyStore,
        swap: Callable[[Iterable[StoredKey]], None],
        poll_s: float = _POLL_S,
    ) -> None:
        self._poll_s = poll_s
        self._store = store
        self._swap = swap
        # Before any row is read: a change in between is then seen as one.
        self._seen = store.version()

    def first(self) -> Iterable[StoredKey]:
        """Return the rows as they are now; later changes go to `swap`."""
        return self._store.load()

    async def run(self) -> None:
        """Follow until cancelled; while the store does not answer, the keys stay as they are (T-30)."""
        while True:
            await asyncio.sleep(self._poll_s)
            try:
                await self._follow()
            except StoreError as error:
                _log.warning("the key store does not answer: %s", error.detail)

    async def _follow(self) -> None:
        version = await asyncio.to_thread(self._store.version)
        if version != self._seen:
            await asyncio.to_thread(self._renew)
            self._seen = version

    def _renew(self) -> None:
        self._swap(self._store.load())
