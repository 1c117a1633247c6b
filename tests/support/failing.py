"""A provider whose answers change while a gateway runs before it, and what the gateway knows of its health."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.support.faulty import GOOD, PATIENT
from tests.support.scripted_upstream import Peer, ScriptedUpstream, ok, until, upstream
from tests.support.serving import CHAT, Serving, config_for, serving

BREAKER = {"failures": 3, "open_s": 0.3, "max_open_s": 0.6}
FIRST_KEY, SECOND_KEY = "sk-first-0123456789abcdef", "sk-second-0123456789abcdef"


def status(line: str, body: str = "{}", *headers: str) -> bytes:
    """Write an error answer."""
    lines = "".join(f"{header}\r\n" for header in (*headers, "content-type: application/json"))
    return f"HTTP/1.1 {line}\r\n{lines}content-length: {len(body)}\r\n\r\n{body}".encode()


DOWN = status("500 Oops")
FINE = ok(GOOD)


class Provider:
    """A provider whose answer can be changed, and held back, while it runs."""

    def __init__(self, answer: bytes = FINE) -> None:
        self.answer = answer
        self.by_key: dict[bytes, bytes] = {}
        self.go = asyncio.Event()
        self.go.set()
        self.calls = 0
        self.running = 0

    async def script(self, peer: Peer) -> None:
        """Answer every request of a connection."""
        while True:
            asked = await peer.request()
            key = (asked.header(b"authorization") or b"").removeprefix(b"Bearer ")
            self.calls += 1
            self.running += 1
            try:
                await self.go.wait()
            finally:
                self.running -= 1
            await peer.send(self.by_key.get(key, self.answer))


def url(served: ScriptedUpstream) -> str:
    return f"http://127.0.0.1:{served.port}/v1"


def settings(served: ScriptedUpstream, **more: Any) -> dict[str, Any]:
    """Return a configuration of one provider; `provider` adds to it, `chain` is the caller's."""
    provider = {"timeout": PATIENT, "breaker": BREAKER, **more.pop("provider", {})}
    chain = more.pop("chain", [])
    config = config_for(url(served), provider=provider, **more)
    config["tenants"]["acme"]["chain"] = chain
    return config


@asynccontextmanager
async def before(folder: Path, provider: Provider, /, **more: Any) -> AsyncGenerator[Serving]:
    """Serve a gateway before one provider."""
    async with (
        upstream(provider.script) as served,
        serving(settings(served, **more), folder) as gateway,
    ):
        yield gateway
        provider.go.set()
        await until(lambda: not gateway.running)
        targets = gateway.worker.health.describe()["targets"]
        assert [each["in_flight"] for each in targets] == [0] * len(targets)


@asynccontextmanager
async def before_two(
    folder: Path, one: Provider, other: Provider, **more: Any
) -> AsyncGenerator[Serving]:
    """Serve a gateway whose model has two targets of equal weight; `provider` adds to both."""
    balance, dead = more.pop("balance", "weighted"), more.pop("dead", None)
    async with upstream(one.script) as first, upstream(other.script) as second:
        config = settings(first, **more)
        config["models"]["m"]["balance"] = balance
        account = config["providers"]["up"]
        config["providers"]["other"] = {**account, "base_url": url(second)}
        account["base_url"] = dead or url(first)
        config["models"]["m"]["targets"].append({"provider": "other", "model": "m-upstream"})
        async with serving(config, folder) as gateway:
            yield gateway


def health(gateway: Serving, provider: str = "up") -> dict[str, Any]:
    """Return what is known of a provider's model."""
    targets = gateway.worker.health.describe()["targets"]
    return next(each for each in targets if each["provider"] == provider)


async def post(gateway: Serving, times: int, body: dict[str, Any] = CHAT) -> list[int]:
    """Send calls one after the other; returns their statuses."""
    return [(await gateway.post(body)).status_code for _ in range(times)]


async def post_at_once(gateway: Serving, times: int) -> list[httpx2.Response]:
    return await asyncio.gather(*(gateway.post(CHAT) for _ in range(times)))


async def opened(gateway: Serving, provider: Provider, answer: bytes = DOWN) -> None:
    """Have a provider fail until it is left alone."""
    provider.answer = answer
    assert await post(gateway, 3) == [500] * 3
    assert health(gateway)["state"] == "open"


async def due(gateway: Serving, provider: str = "up") -> None:
    """Wait until a target may be tried again."""
    await until(lambda: not health(gateway, provider)["retry_in_s"])


async def until_open(gateway: Serving) -> None:
    """Call a provider that fails until it is left alone."""
    while health(gateway)["state"] != "open":
        await gateway.post(CHAT)


async def recovers(gateway: Serving) -> None:
    """Call a provider that is well until the gateway knows it."""
    while health(gateway)["state"] != "closed":
        await gateway.post(CHAT)


def refusal(answer: httpx2.Response) -> str:
    """Check a refusal that was made without a call; returns its message."""
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "upstream_unavailable"
    assert int(answer.headers["retry-after"]) >= 1
    assert "x-gateway-attempts" not in answer.headers
    message: str = answer.json()["error"]["message"]
    return message


async def call(gateway: Serving, number: int) -> httpx2.Response:
    """Send a call of one of many sessions."""
    return await gateway.post(CHAT, x_gateway_session=f"s{number}")
