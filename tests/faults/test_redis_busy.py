"""A process that is busy itself does not take that for the silence of Redis."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
import uvloop

from gateway.core import clock
from gateway.core.counting import Holds
from gateway.core.errors import StoreError
from gateway.stores.redis.client import Client
from gateway.stores.redis.counters import RedisCounters
from gateway.stores.redis.limits import Limits
from gateway.stores.redis.patience import patience
from tests.support.redis_calls import SLOW_S, hold, ping, using
from tests.support.redis_server import RedisServer, redis_server

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
LONG_S = 3 * Limits().command_s
"""Far longer than Redis may be silent."""
Scenario = Callable[[], Coroutine[Any, Any, None]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Callable[[Scenario], None]:
    """Run a scenario on each kind of loop."""

    def on_loop(scenario: Scenario) -> None:
        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            runner.run(scenario())

    return on_loop


def work(seconds: float) -> None:
    """Keep the processor, and with it the loop, for a while."""
    until = clock.monotonic() + seconds
    while clock.monotonic() < until:
        pass


@pytest.mark.fault("RS-3", "RS-12")
@pytest.mark.contract("G-8")
@pytest.mark.parametrize("is_cold", [True, False], ids=["cold", "connected"])
def test_a_thousand_calls_at_once_are_all_answered(
    server: RedisServer, run: Callable[[Scenario], None], is_cold: bool
) -> None:
    """Each of them has work to do before and after, as requests have; the first one may have to connect."""

    async def request(counters: RedisCounters, number: int) -> None:
        work(0.0003)
        held = Holds([hold()._replace(limit=None)])
        verdict = await counters.reserve("t", f"run-{number}", held, 60.0, b"", (1,))
        assert verdict.granted
        work(0.0003)
        assert await counters.settle("t", f"run-{number}", held, (1,))

    async def storm() -> None:
        async with using(server.url) as client:
            if not is_cold:
                await ping(client)
            counters = RedisCounters(client)
            await asyncio.gather(*(request(counters, number) for number in range(1000)))

    server.ask("FLUSHALL")
    run(storm)


@pytest.mark.fault("RS-3")
def test_what_was_answered_while_the_loop_stood_still_counts(
    server: RedisServer, run: Callable[[Scenario], None]
) -> None:
    async def scenario() -> None:
        async with using(server.url) as client:
            await ping(client)
            for _ in range(5):
                asked = [asyncio.ensure_future(ping(client)) for _ in range(20)]
                await asyncio.sleep(0)
                work(LONG_S)  # before they are written
                await asyncio.sleep(0)
                work(LONG_S)  # after it
                assert await asyncio.gather(*asked) == [b"PONG"] * 20

    run(scenario)


@pytest.mark.fault("RS-3")
def test_a_connection_is_made_while_the_loop_is_busy(
    server: RedisServer, run: Callable[[Scenario], None]
) -> None:
    async def hog(stop: asyncio.Event) -> None:
        while not stop.is_set():
            work(0.06)
            await asyncio.sleep(0.002)  # the server needs a core, too

    async def scenario() -> None:
        stop = asyncio.Event()
        hogging = asyncio.ensure_future(hog(stop))
        async with using(server.url) as client:
            assert await asyncio.gather(*(ping(client) for _ in range(10))) == [b"PONG"] * 10
        stop.set()
        await hogging

    run(scenario)


class Drip:
    """A server that answers one command at a time, each after a while; it greets at once."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                words: list[bytes] = []
                for _ in range(int(line[1:])):
                    await reader.readline()
                    words.append((await reader.readline()).strip())
                if words[0] == b"GET":
                    await asyncio.sleep(self._every_s)
                answers = {b"HELLO": b"*0\r\n", b"INFO": b"$0\r\n\r\n", b"GET": b"$-1\r\n"}
                writer.write(answers.get(words[0], b"+PONG\r\n"))
        finally:
            writer.close()


async def get(client: Client) -> float:
    """Return how long a call took to be answered; raises StoreError."""
    began = clock.monotonic()
    await client.command("k", "GET", "k")
    return clock.monotonic() - began


@pytest.mark.fault("RS-3")
async def test_who_answers_others_may_take_longer_but_not_for_ever() -> None:
    """Of calls that wait in a row each is answered in its turn, up to a bound."""
    serving = await asyncio.start_server(Drip(0.04), "127.0.0.1", 0)
    port = serving.sockets[0].getsockname()[1]
    async with serving, using(f"redis://127.0.0.1:{port}/0") as client:
        began = clock.monotonic()
        took = await asyncio.gather(*(get(client) for _ in range(30)), return_exceptions=True)
        whole = clock.monotonic() - began

    answered = [each for each in took if isinstance(each, float)]
    assert len(answered) >= 3
    assert max(answered) > SLOW_S
    assert any(isinstance(each, StoreError) for each in took)
    assert whole < Limits().longest_s + 3 * SLOW_S


async def test_patience_ends_in_time_where_nobody_is_busy() -> None:
    began = clock.monotonic()

    with pytest.raises(TimeoutError):
        async with patience(0.05):
            await asyncio.sleep(30)

    assert 0.045 <= clock.monotonic() - began < 1.0  # loops count in whole milliseconds


async def test_patience_counts_no_time_in_which_the_loop_stood_still() -> None:
    async with patience(0.05):
        for _ in range(3):
            work(0.1)
            await asyncio.sleep(0)
