"""The money machine: what a provider bills never passes a cap, whatever dies, and the ledger says what it billed."""

import asyncio
import json
import random
import signal
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx2
import pytest

from gateway.core.ledger import Owner
from gateway.stores.registry import open_ledger
from tests.support.gateway import Gateway, run_gateway
from tests.support.postgres_server import running_postgres
from tests.support.redis_server import RedisServer, redis_server
from tests.support.till import PRICES, Till, till

LEASE_S = 3
CLIENTS = 50
TRIALS, SOAK_TRIALS = 4, 200
REQUESTS = 60
WORST_MICRO = 100 * 20 + 500 * 5
"""The most that one call can cost: the answer and the prompt, byte by byte, at the dearer model."""
_STEPS = ("ok", "ok", "ok", "ok", "503", "reset", "slow", "cut:5", "untold")


@dataclass(frozen=True, slots=True)
class Trial:
    tenant: str
    cap_micro: int
    seed: int

    @property
    def key(self) -> str:
        return f"sk-{self.tenant}-0123456789abcdef"


def trials(count: int, seed: int) -> list[Trial]:
    rng = random.Random(seed)
    return [
        Trial(f"t{n}", rng.randrange(2_000, 40_000), rng.randrange(1 << 30)) for n in range(count)
    ]


def configuration(url: str, state: str, database: str, tested: list[Trial]) -> dict[str, Any]:
    timeout = {"connect_s": 1, "pool_s": 1, "first_byte_s": 2, "idle_s": 2}
    provider = {
        "kind": "openai_compatible",
        "base_url": url,
        "api_key": "sk-upstream-0123456789abcdef",
        "timeout": timeout,
        "breaker": {"enabled": False},
        "concurrency": {"adaptive": False},
    }
    prices = {
        f"up/{model}": {"input": price[0] / 1e6, "output": price[1] / 1e6}
        for model, price in PRICES.items()
    }
    chain = [
        {"retry": {"max_retries": 1, "initial_delay_ms": 1, "jitter": "none"}},
        {"fallback": {"models": ["m2"]}},
    ]
    tenants = {
        trial.tenant: {
            "keys": [{"id": "k", "secret": trial.key}],
            "models": ["m1", "m2"],
            "chain": [
                {"budget": {"limits": [{"usd": trial.cap_micro / 1e6, "per": "total"}]}},
                *chain,
            ],
        }
        for trial in tested
    }
    return {
        "stores": {"state": state, "database": database, "lease_s": LEASE_S},
        "providers": {"up": provider},
        "models": {model: {"targets": [{"provider": "up", "model": model}]} for model in PRICES},
        "prices": prices,
        "tenants": tenants,
    }


class Fleet:
    """Three gateways that are killed and started again."""

    def __init__(self, config: dict[str, Any], folder: Path, size: int = 3) -> None:
        self._config = config
        self._folder = folder
        self._stacks = [ExitStack() for _ in range(size)]
        self.gateways: list[Gateway] = []
        self._starts = 0

    def __enter__(self) -> Self:
        for stack in self._stacks:
            self.gateways.append(self._start(stack))
        return self

    def _start(self, stack: ExitStack) -> Gateway:
        self._starts += 1
        name = f"gateway{self._starts}"
        return stack.enter_context(run_gateway(self._config, self._folder, name=name))

    def kill(self, place: int) -> None:
        """Kill one without a word, and start another in its place."""
        self.gateways[place].process.stop(signal.SIGKILL)
        self._stacks[place].close()
        self.gateways[place] = self._start(self._stacks[place])

    def __exit__(self, *_: object) -> None:
        for stack in self._stacks:
            stack.close()


async def one(fleet: Fleet, trial: Trial, number: int, rng: random.Random) -> int:
    """Send one request that goes as chance has it; returns its status, 0 when it was cut."""
    stream = rng.random() < 0.5
    told = {
        "tenant": trial.tenant,
        "tag": f"{trial.tenant}-{number}",
        "words": rng.randrange(1, 120),
        "plan": {model: [rng.choice(_STEPS) for _ in range(3)] for model in PRICES},
    }
    body: dict[str, Any] = {
        "model": "m1",
        "max_tokens": 100,
        "stream": stream,
        "messages": [{"role": "user", "content": json.dumps(told)}],
    }
    url = rng.choice(fleet.gateways).url
    patience = rng.uniform(0.005, 0.1) if rng.random() < 0.15 else 20.0
    try:
        async with asyncio.timeout(patience):
            async with httpx2.AsyncClient(trust_env=False, timeout=20) as client:
                answer = await client.post(
                    f"{url}/v1/chat/completions",
                    json=body,
                    headers={"authorization": f"Bearer {trial.key}"},
                )
                return answer.status_code
    except (TimeoutError, httpx2.HTTPError):
        return 0


async def play(fleet: Fleet, trial: Trial, disturb: Any, clients: int = CLIENTS) -> list[int]:
    rng = random.Random(trial.seed)
    places = asyncio.Semaphore(clients)

    async def placed(number: int) -> int:
        async with places:
            return await one(fleet, trial, number, rng)

    work = [asyncio.create_task(placed(number)) for number in range(REQUESTS)]
    await disturb(rng)
    return await asyncio.gather(*work)


@contextmanager
def stores(folder: Path) -> Generator[tuple[RedisServer, str]]:
    options = ("--appendonly", "yes", "--appendfsync", "always")
    with redis_server(folder / "redis", *options) as redis, running_postgres() as database:
        yield redis, database.url


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.contract("G-1", "G-22")
@pytest.mark.bug("K14", "K15", "K18")
@pytest.mark.fault("L-4", "L-5")
@pytest.mark.parametrize("count", [TRIALS, pytest.param(SOAK_TRIALS, marks=pytest.mark.soak)])
async def test_no_cap_is_passed_whatever_dies(tmp_path: Path, count: int) -> None:
    tested = trials(count, seed=20261130)
    statuses: list[int] = []
    with stores(tmp_path) as (redis, database):
        async with till() as provider:
            config = configuration(provider.served.url, redis.url, database, tested)
            with await asyncio.to_thread(Fleet, config, tmp_path) as fleet:

                async def disturb(rng: random.Random) -> None:
                    await asyncio.sleep(rng.uniform(0.05, 0.4))
                    chance = rng.random()
                    if chance < 0.4:
                        await asyncio.to_thread(fleet.kill, rng.randrange(3))
                    elif chance < 0.7:
                        await asyncio.to_thread(redis.kill)
                        await asyncio.to_thread(redis.start)

                for trial in tested:
                    statuses += await play(fleet, trial, disturb)
                    billed = provider.billed().get(trial.tenant, 0)
                    assert billed <= trial.cap_micro, f"{trial} was billed {billed}"
                await _settled(database, provider, tested)
                await _nothing_stuck(redis)

    counts = {status: statuses.count(status) for status in sorted(set(statuses))}
    print(f"{len(statuses)} requests: {counts}; {len(provider.bills)} bills")
    assert counts.get(200, 0) > len(statuses) // 10
    assert counts.get(429, 0) > 0
    assert counts.get(500, 0) == 0


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.contract("G-1")
@pytest.mark.fault("RS-7")
async def test_lost_counters_cost_no_more_than_what_runs_and_what_is_unwritten(
    tmp_path: Path,
) -> None:
    """The bound: spend of one flush of the ledger, and what was reserved when the data went."""
    clients = 4
    tested = [Trial(f"t{n}", 30 * WORST_MICRO, 7 + n) for n in range(2)]
    with stores(tmp_path) as (redis, database):
        async with till() as provider:
            config = configuration(provider.served.url, redis.url, database, tested)
            with await asyncio.to_thread(Fleet, config, tmp_path, 2) as fleet:

                async def lose(rng: random.Random) -> None:
                    for _ in range(3):
                        await asyncio.sleep(rng.uniform(0.2, 0.5))
                        await asyncio.to_thread(redis.ask, "FLUSHALL")

                for trial in tested:
                    await play(fleet, trial, lose, clients)
                await _settled(database, provider, tested, slack=3 * 2 * clients * WORST_MICRO)

            for trial in tested:
                billed = provider.billed().get(trial.tenant, 0)
                assert billed <= trial.cap_micro + 3 * 2 * clients * WORST_MICRO


async def _settled(database: str, provider: Till, tested: list[Trial], slack: int = 0) -> None:
    """Wait until the ledger holds everything that was billed, at most a lease and ten seconds."""
    ledger = open_ledger(database)
    loop = asyncio.get_running_loop()
    until = loop.time() + LEASE_S + 10
    try:
        while True:
            billed = provider.billed()
            totals = {
                trial.tenant: (await ledger.total(Owner(trial.tenant), 0, 0)).cost_micro
                for trial in tested
            }
            short = {
                tenant: (billed.get(tenant, 0), total)
                for tenant, total in totals.items()
                if total < billed.get(tenant, 0)
            }
            if not short:
                break
            assert loop.time() < until, f"billed and not in the ledger: {short}"
            await asyncio.sleep(0.2)
        over = {
            trial.tenant: totals[trial.tenant]
            for trial in tested
            if totals[trial.tenant] > trial.cap_micro + slack
        }
        assert not over, f"charged more than the cap: {over}"
    finally:
        await ledger.aclose()


async def _nothing_stuck(redis: RedisServer) -> None:
    """Wait until no reservation is left, at most a lease and ten seconds."""
    loop = asyncio.get_running_loop()
    until = loop.time() + LEASE_S + 10
    # A lease stands for a reservation that was not settled; the key is gone with the last one.
    while left := await asyncio.to_thread(redis.ask, "KEYS", "gw:*:counters:leases"):
        assert loop.time() < until, f"reservations that never ended: {left[:5]}"
        await asyncio.sleep(0.2)
