"""Calls to a ledger in Postgres that may fail: refused in time, and answered again."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gateway.core.errors import StoreError
from gateway.core.ledger import Ledger, Owner

BOUNDED_S = 4.0
BACK_S = 5.0


async def calls(ledger: Ledger) -> int:
    return (await ledger.total(Owner("acme"), 0, 0)).calls


async def refused(work: Awaitable[object], within_s: float = BOUNDED_S) -> str:
    """Await a refusal that comes in time; return its private words."""
    start = time.monotonic()
    with pytest.raises(StoreError) as caught:
        await work
    assert time.monotonic() - start < within_s
    assert caught.value.code == "state_unavailable"
    assert "postgres" not in caught.value.message.lower()
    return caught.value.detail


async def comes_back(work: Callable[[], Awaitable[Any]]) -> Any:
    """Repeat a call until it is answered."""
    async with asyncio.timeout(BACK_S):
        while True:
            try:
                return await work()
            except StoreError:
                await asyncio.sleep(0.05)
