"""Replacing replicas behind a balancer: no request is lost, and the ledger of both has every one (G-3)."""

import asyncio
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.balancer import Replica, balancing, roll
from tests.support.faulty import GOOD, events_of
from tests.support.pace import WHOLE, provider
from tests.support.postgres_server import sql
from tests.support.serving import CHAT, KEY, STREAM

pytestmark = [pytest.mark.contract("G-3"), pytest.mark.bug("K42"), pytest.mark.fault("L-2")]
LOOPS = ("uvloop",)
_CROSSED = "RemoteProtocolError('Server disconnected without sending a response.')"


@dataclass
class Traffic:
    """Clients that keep asking until told to stop. What went wrong is in `failures`, with how often."""

    port: int
    longest_s: float
    idle_s: float
    seed: int
    stop: bool = False
    plain: int = 0
    streams: int = 0
    failures: Counter[str] = field(default_factory=Counter[str])

    @property
    def whole(self) -> int:
        """Answers that came whole."""
        return self.plain + self.streams

    async def client(self, number: int) -> None:
        """Ask one thing after the other over connections that are kept."""
        chance = random.Random(self.seed + number)
        own = httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{self.port}",
            headers={"authorization": f"Bearer {KEY}"},
            timeout=self.longest_s + 20,
            trust_env=False,
            verify=False,  # plain HTTP; certificates are slow to load
        )
        async with own:
            while not self.stop:
                # Most are short; some outlast every pause of a restart.
                took_s = self.longest_s * chance.random() ** 6
                streamed = chance.random() < 0.5
                try:
                    found = await self._ask(own, streamed=streamed, took_ms=int(took_s * 1000))
                except httpx2.HTTPError as error:
                    found = repr(error)
                if found:
                    self.failures[found] += 1
                elif streamed:
                    self.streams += 1
                else:
                    self.plain += 1
                await asyncio.sleep(self.idle_s * chance.random())

    async def _ask(self, own: httpx2.AsyncClient, *, streamed: bool, took_ms: int) -> str:
        """Return what is wrong with the answer; nothing where all is well."""
        body: dict[str, Any] = {**(STREAM if streamed else CHAT), "user": str(took_ms)}
        answer = await own.post("/v1/chat/completions", json=body)
        if answer.status_code != 200:
            return f"{answer.status_code} {answer.text[:200]}"
        right = events_of(answer.content) == WHOLE if streamed else answer.content == GOOD
        return "" if right else f"not whole: {answer.text[-200:]}"


def config(port: int, database: str, **server: Any) -> dict[str, Any]:
    up = {
        "kind": "openai_compatible",
        "base_url": f"http://127.0.0.1:{port}/v1",
        "api_key": "sk-upstream-0123456789",
    }
    return {
        "server": {"announce_s": 1.5, **server},
        "stores": {"database": database},
        "providers": {"up": up},
        "models": {"m": {"targets": [{"provider": "up", "model": "m-upstream"}]}},
        "tenants": {"acme": {"keys": [{"id": "k", "secret": KEY}], "models": ["m"]}},
    }


@dataclass(frozen=True)
class Plan:
    """What is asked while replicas are replaced: `idle_s` is the longest pause of a client.

    `crossing`: so many requests may meet the end of a connection that rested, which HTTP/1.1 cannot announce. Nothing
    was done for them, and a client may repeat them.
    """

    requests: int
    rounds: int
    longest_s: float
    clients: int
    idle_s: float = 0.4
    workers: int = 1
    connections: bool = False
    crossing: int = 0


async def restart_under_load(folder: Path, database: str, plan: Plan) -> None:
    """Replace two replicas in turn while requests are asked: none fails, each is in the ledger."""
    seed = random.randrange(1 << 32)
    async with provider() as port:
        settings = config(port, database, workers=plan.workers, drain_s=plan.longest_s + 5)
        replicas = [Replica(name, settings, folder) for name in ("one", "two")]
        with balancing(replicas, folder, connections=plan.connections) as balancer:
            traffic = Traffic(balancer.port, plan.longest_s, plan.idle_s, seed)
            asking = [asyncio.ensure_future(traffic.client(each)) for each in range(plan.clients)]
            began = time.monotonic()
            try:
                took = await roll(balancer, replicas, plan.rounds, leave_s=plan.longest_s + 20)
                while traffic.whole < plan.requests and not traffic.failures.keys() - {_CROSSED}:
                    await asyncio.sleep(0.05)
            finally:
                traffic.stop = True
                await asyncio.gather(*asking)
            print(
                f"seed {seed}: {traffic.plain} plain, {traffic.streams} streams, {len(took)} restarts in "
                f"{time.monotonic() - began:.0f} s, {min(took):.1f} to {max(took):.1f} s to leave"
            )
            exits = [code for each in replicas for code in each.exits]
    crossed = traffic.failures.pop(_CROSSED, 0)
    print(f"{crossed} requests met the end of a connection that rested")
    assert crossed <= plan.crossing
    assert traffic.failures == Counter()
    assert exits == [0] * (2 * plan.rounds)
    assert traffic.whole >= plan.requests
    count = "SELECT count(*), count(DISTINCT request_id) FROM gateway_ledger"
    assert sql(database, count).split() == [f"{traffic.whole}|{traffic.whole}"]


SHORT = {
    "one worker": Plan(requests=1500, rounds=3, longest_s=2, clients=40),
    "two workers": Plan(requests=500, rounds=1, longest_s=2, clients=40, workers=2),
    "kept connections": Plan(
        requests=500, rounds=1, longest_s=4, clients=60, idle_s=4, connections=True, crossing=1
    ),
}
FULL = {
    "one worker": Plan(requests=20_000, rounds=10, longest_s=20, clients=120),
    "two workers": Plan(requests=20_000, rounds=10, longest_s=20, clients=120, workers=2),
    "kept connections": Plan(
        requests=20_000,
        rounds=10,
        longest_s=20,
        clients=250,
        idle_s=10,
        connections=True,
        crossing=3,
    ),
}


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("plan", SHORT.values(), ids=SHORT)
async def test_no_request_is_lost_while_replicas_are_replaced(
    tmp_path: Path, postgres_url: str, plan: Plan
) -> None:
    await restart_under_load(tmp_path, postgres_url, plan)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("plan", FULL.values(), ids=FULL)
async def test_none_of_twenty_thousand_is_lost_over_ten_restarts(
    tmp_path: Path, postgres_url: str, plan: Plan
) -> None:
    await restart_under_load(tmp_path, postgres_url, plan)
