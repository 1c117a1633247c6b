"""Following a key store: no change is missed, whenever it happens."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace

import pytest

from gateway.core.errors import StoreError
from gateway.core.ports import StoredKey
from gateway.lifecycle.keys import KeyFollower
from gateway.stores.keys import MemoryKeys

POLL_S = 0.01
ROW = StoredKey("acme", "k", "sha256:" + "0" * 64, "0000", None, None, 0.0)


class Busy(MemoryKeys):
    """A store that somebody changes in the very moment after it was read."""

    def __init__(self) -> None:
        super().__init__()
        self.create(ROW)
        self.fails = False

    def load(self) -> tuple[StoredKey, ...]:
        if self.fails:
            raise StoreError("state_unavailable")
        rows = super().load()
        self.revoke("acme", "k")
        return rows


async def test_a_key_revoked_while_the_gateway_starts_does_not_stay_in_force() -> None:
    seen: list[Iterable[StoredKey]] = []
    changed = asyncio.Event()
    loop = asyncio.get_running_loop()

    def swap(rows: Iterable[StoredKey]) -> None:
        seen.append(tuple(rows))
        loop.call_soon_threadsafe(changed.set)

    follower = KeyFollower(Busy(), swap, POLL_S)
    assert list(follower.first() or ()) == [ROW]
    task = asyncio.ensure_future(follower.run())
    await asyncio.wait_for(changed.wait(), 2)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert seen[0] == (replace(ROW, revoked=True),)


async def test_a_store_that_fails_for_a_while_is_followed_afterwards() -> None:
    store = Busy()
    changed = asyncio.Event()
    loop = asyncio.get_running_loop()

    def swap(rows: Iterable[StoredKey]) -> None:
        loop.call_soon_threadsafe(changed.set)

    follower = KeyFollower(store, swap, POLL_S)
    store.fails = True
    store.revoke("acme", "k")
    task = asyncio.ensure_future(follower.run())
    await asyncio.sleep(0.1)
    assert not changed.is_set()
    store.fails = False
    await asyncio.wait_for(changed.wait(), 2)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.fault("P-1")
async def test_a_store_that_is_down_at_the_start_is_followed_once_it_answers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = Busy()
    store.fails = True
    changed = asyncio.Event()
    loop = asyncio.get_running_loop()

    def swap(rows: Iterable[StoredKey]) -> None:
        loop.call_soon_threadsafe(changed.set)

    follower = KeyFollower(store, swap, POLL_S)
    assert follower.first() is None
    task = asyncio.ensure_future(follower.run())
    await asyncio.sleep(0.1)
    assert not changed.is_set()
    store.fails = False
    await asyncio.wait_for(changed.wait(), 2)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    said = [record.message for record in caplog.records if "does not answer" in record.message]
    assert len(said) == 1, "once, not each time"
