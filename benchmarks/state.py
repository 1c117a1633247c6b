"""CPU time of calls to Redis, ours beside redis-py's pool: python -m benchmarks.state [--tasks N] [--url URL].

Only this process's CPU is counted; that of the server is read from the server itself. A whole reservation and its
settlement are measured too: what a request with budgets and limits costs.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple, cast

import redis.asyncio
import uvloop

from gateway.core.counting import Hold, Window
from gateway.core.scope import Scope
from gateway.stores.redis.client import Client
from gateway.stores.redis.counters import RedisCounters
from gateway.stores.redis.limits import Limits
from tests.support.redis_server import redis_server

_SCRIPT = """
local used = tonumber(redis.call('GET', KEYS[1]) or 0)
if used + tonumber(ARGV[1]) > tonumber(ARGV[2]) then return {0, used} end
redis.call('INCRBY', KEYS[1], ARGV[1])
redis.call('EXPIRE', KEYS[1], 60)
redis.call('SADD', KEYS[2], ARGV[3])
return {1, used}
"""
_ROUNDS = 5
_CALLS = 4000
_WARM = 400
_US = 1e6
_FIRST = -20
Call = Callable[[int], Awaitable[object]]


class Cost(NamedTuple):
    """CPU microseconds of one call."""

    name: str
    client_us: float
    server_us: float


class _Work:
    """Starts background work."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _at_once(call: Call, calls: int, tasks: int) -> None:
    numbers = iter(range(calls))

    async def one() -> None:
        for number in numbers:
            await call(number)

    await asyncio.gather(*(one() for _ in range(tasks)))


async def _cost(name: str, call: Call, tasks: int, server: redis.asyncio.Redis) -> Cost:
    """Return the least of several rounds."""
    await _at_once(call, _WARM, tasks)
    best, served = float("inf"), float("inf")
    for _ in range(_ROUNDS):
        before, begun = await _server_cpu(server), time.process_time()
        await _at_once(call, _CALLS, tasks)
        spent = time.process_time() - begun
        best = min(best, spent)
        served = min(served, await _server_cpu(server) - before)
    return Cost(name, best / _CALLS * _US, served / _CALLS * _US)


async def _server_cpu(server: redis.asyncio.Redis) -> float:
    told = await cast("Any", server).info("cpu")
    return float(told["used_cpu_user"]) + float(told["used_cpu_sys"])


async def measure(url: str, tasks: int = 32) -> list[Cost]:
    """Measure one script, one read of 2 KB and one request's reservation, over a server that runs at `url`."""
    scope = Scope(f"bench-{uuid.uuid4().hex[:8]}")
    keys, value = [scope.key("used"), scope.key("ids")], scope.key("value")
    ours = Client(url, _Work().spawn, Limits(command_s=5.0, connect_s=5.0))
    pool = redis.asyncio.Redis.from_url(url, max_connections=tasks)
    counters = RedisCounters(ours)
    try:
        sha = str(await cast("Any", pool).script_load(_SCRIPT))
        await pool.set(value, b"x" * 2048)
        args = ("1", "1000000000", "id")
        window = Window(int(time.time()) - 60, int(time.time()) + 86_400)
        holds = [Hold(scope.key("count", str(n)), 1, 10**12, window) for n in range(4)]

        async def request(number: int) -> None:
            run_id = f"{number}-{uuid.uuid4().hex}"
            await counters.reserve(scope.tenant, run_id, holds, 60.0)
            await counters.settle(scope.tenant, run_id, holds, (1, 1, 1, 1))

        script = ("EVALSHA", sha, 2, *keys, *args)
        calls: dict[str, Call] = {
            "script, redis-py": lambda _: cast("Any", pool).evalsha(*script[1:]),
            "script, ours": lambda _: ours.command(keys[0], *script),
            "GET 2 KB, redis-py": lambda _: pool.get(value),
            "GET 2 KB, ours": lambda _: ours.command(value, "GET", value),
            "reserve and settle 4 counters": request,
        }
        return [await _cost(name, call, tasks, pool) for name, call in calls.items()]
    finally:
        await ours.aclose()
        await pool.aclose()


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.state", description=__doc__)
    parser.add_argument("--tasks", type=int, default=32)
    parser.add_argument("--url", default="", help="a server that runs; else one is started")
    given = parser.parse_args()
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, _FIRST)  # as root before all other work
    with ExitStack() as stack:
        url: str = given.url
        if not url:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            url = stack.enter_context(redis_server(folder)).url
        for cost in uvloop.run(measure(url, given.tasks)):
            print(f"{cost.name:32} {cost.client_us:7.1f} us {cost.server_us:7.1f} us")


if __name__ == "__main__":
    main()
