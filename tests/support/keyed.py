"""A gateway whose requests carry idempotency keys: asked, and looked at from the provider's side."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

from gateway.core.errors import StoreError
from gateway.core.receipts import Holder, Receipt, Receipts
from gateway.stores.receipts import MemoryReceipts
from tests.support.faulty import GOOD, configured
from tests.support.scripted_upstream import Peer, Script, ScriptedUpstream, ok, upstream
from tests.support.serving import CHAT, Serving, serving

RIVAL = "test-rival-0123456789abcdef"
SECOND = "test-second-0123456789abcdef"
OPEN = {"stores": {"database": "memory", "on_state_down": "open"}}
Scene = tuple[Serving, ScriptedUpstream]
Open = Callable[..., AbstractAsyncContextManager[Scene]]


def opening(mode: str, folder: Path) -> Open:
    """Return how to serve a gateway before scripts; `receipts` are those of several gateways."""
    count = iter(range(100))

    @asynccontextmanager
    async def opened(
        *scripts: Script, receipts: Receipts | None = None, **more: Any
    ) -> AsyncGenerator[Scene]:
        own = folder / str(next(count))
        own.mkdir()
        async with upstream(*scripts) as served:
            config = configured(served, **more)
            config["tenants"]["acme"]["keys"].append({"id": "k2", "secret": SECOND})
            config["tenants"]["acme"]["providers"] = ["up"]
            config["tenants"]["rival"] = {
                "keys": [{"id": "k", "secret": RIVAL}],
                "models": ["m"],
            }
            async with serving(config, own, mode=mode, receipts=receipts) as gateway:
                yield gateway, served

    return opened


async def ask(gateway: Serving, key: str, body: Any = CHAT, **headers: str) -> httpx2.Response:
    """Send a request with a key."""
    return await gateway.post(body, idempotency_key=key, **headers)


def code_of(answer: httpx2.Response) -> str:
    """Return the machine code of an error."""
    return str(answer.json()["error"]["code"])


def is_replay(answer: httpx2.Response) -> bool:
    """Tell whether an answer was given before."""
    return answer.headers.get("idempotent-replayed") == "true"


class Gate:
    """A provider that answers when it is told to."""

    def __init__(self, answer: bytes = ok(GOOD), before: bytes = b"") -> None:
        self.open = asyncio.Event()
        self.answer = answer
        self.before = before

    async def __call__(self, peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(self.before)
            await self.open.wait()
            await peer.send(self.answer)


class Down(MemoryReceipts):
    """A store that does not answer when told so."""

    is_down = False

    async def claim(self, holder: Holder, fingerprint: str, lease_s: float) -> Receipt:
        self._check()
        return await super().claim(holder, fingerprint, lease_s)

    async def calling(self, holder: Holder, lease_s: float) -> bool:
        self._check()
        return await super().calling(holder, lease_s)

    async def finish(self, holder: Holder, fingerprint: str, answer: Any) -> bool:
        self._check()
        return await super().finish(holder, fingerprint, answer)

    def _check(self) -> None:
        if self.is_down:
            raise StoreError("state_unavailable")
