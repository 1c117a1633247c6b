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
        self._seen: int | None = None
        self._is_down = False

    def first(self) -> Iterable[StoredKey] | None:
        """Return the rows as they are now, or None when the store does not answer; later changes go to `swap`."""
        try:
            # The number goes first: a change between the two is then seen as one.
            seen = self._store.version()
            rows = self._store.load()
        except StoreError as error:
            self._tell(error)
            return None
        self._seen = seen
        return rows

    async def run(self) -> None:
        """Follow until cancelled; while the store does not answer, the keys stay as they are (T-30)."""
        while True:
            await asyncio.sleep(self._poll_s)
            try:
                await self._follow()
            except StoreError as error:
                self._tell(error)
            else:
                self._tell(None)

    async def _follow(self) -> None:
        version = await asyncio.to_thread(self._store.version)
        if version != self._seen:
            await asyncio.to_thread(self._renew)
            self._seen = version

    def _renew(self) -> None:
        self._swap(self._store.load())

    def _tell(self, error: StoreError | None) -> None:
        """Log when the store stops or starts to answer, not every time it is asked."""
        if error is not None and not self._is_down:
            _log.warning("the key store does not answer: %s", error.detail)
        elif error is None and self._is_down:
            _log.info("the key store answers again")
        self._is_down = error is not None
