"""Names to addresses: never on the loop, never without bound, never worse than the last good answer."""

import asyncio
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from gateway.core.errors import UpstreamError
from gateway.upstream.addresses import Addresses
from gateway.upstream.egress import Origin
from gateway.upstream.resolver import FRESH_S, MAX_THREADS, PATIENCE_S, Resolver
from tests.support.scripted_upstream import until

LOOPS = ("asyncio", "uvloop")
pytestmark = pytest.mark.fault("U-10")
Row = tuple[Any, ...]


def rows(*addresses: str) -> list[Row]:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in addresses]


def always(*addresses: str) -> Callable[[str], list[Row]]:
    def answer(_: str) -> list[Row]:
        return rows(*addresses)

    return answer


class Names:
    """A resolver of the system that does as the test says, in the thread it is called in."""

    def __init__(self, answer: Callable[[str], list[Row]]) -> None:
        self.answer = answer
        self.asked: list[str] = []
        self.threads: set[int] = set()
        self.go_on = threading.Event()
        self.go_on.set()

    def __call__(self, host: str, _port: None, **_: Any) -> list[Row]:
        self.asked.append(host)
        self.threads.add(threading.get_ident())
        self.go_on.wait(30)
        return self.answer(host)


class Watch:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def __call__(self) -> float:
        return asyncio.get_running_loop().time() + self.ahead_s


async def test_an_answer_is_used_again_while_it_is_fresh() -> None:
    names, watch = Names(always("10.0.0.1", "10.0.0.2", "10.0.0.1")), Watch()
    resolver = Resolver(names, watch)

    for _ in range(3):
        assert await resolver.resolve("a.example") == ("10.0.0.1", "10.0.0.2")
    assert names.asked == ["a.example"]

    watch.ahead_s = FRESH_S + 1
    names.answer = always("10.0.0.3")
    assert await resolver.resolve("a.example") == ("10.0.0.3",)


async def test_the_loop_goes_on_while_names_are_looked_up() -> None:
    names = Names(always("10.0.0.1"))
    names.go_on.clear()
    task = asyncio.create_task(Resolver(names).resolve("a.example"))
    for _ in range(10):
        await asyncio.sleep(0.001)
    names.go_on.set()

    assert await task == ("10.0.0.1",)
    assert threading.get_ident() not in names.threads


async def test_all_who_ask_at_once_share_one_look_up() -> None:
    names = Names(always("10.0.0.1"))
    resolver = Resolver(names)

    found = await asyncio.gather(*(resolver.resolve("a.example") for _ in range(100)))

    assert set(found) == {("10.0.0.1",)}
    assert names.asked == ["a.example"]


async def test_a_hung_resolver_takes_few_threads_and_others_wait_their_turn() -> None:
    names = Names(lambda host: rows("10.0.0." + host.partition(".")[0]))
    names.go_on.clear()
    resolver = Resolver(names)
    tasks = [asyncio.create_task(resolver.resolve(f"{n}.example")) for n in range(50)]
    await until(lambda: len(names.threads) == MAX_THREADS)
    await asyncio.sleep(0.02)
    assert len(names.threads) == MAX_THREADS
    names.go_on.set()

    assert await asyncio.gather(*tasks) == [(f"10.0.0.{n}",) for n in range(50)]


async def test_a_cancelled_question_harms_nobody_else() -> None:
    names = Names(always("10.0.0.1"))
    names.go_on.clear()
    resolver = Resolver(names)
    first, second = (asyncio.create_task(resolver.resolve("a.example")) for _ in range(2))
    await asyncio.sleep(0.01)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    names.go_on.set()

    assert await second == ("10.0.0.1",)


@pytest.mark.parametrize("fault", [socket.gaierror(-2, "unknown"), UnicodeError("label"), None])
async def test_a_name_without_an_address_is_unavailable(fault: Exception | None) -> None:
    def fail(_: str) -> list[Row]:
        if fault is not None:
            raise fault
        return []

    with pytest.raises(UpstreamError) as caught:
        await Resolver(Names(fail)).resolve("a.example")

    error = caught.value
    assert (error.code, error.phase, error.sent) == ("upstream_unavailable", "connect", False)


async def test_the_last_good_answer_is_used_when_the_next_look_up_fails() -> None:
    names, watch = Names(always("10.0.0.1")), Watch()
    resolver = Resolver(names, watch)
    await resolver.resolve("a.example")
    watch.ahead_s = FRESH_S + 1
    names.answer = always()

    assert await resolver.resolve("a.example") == ("10.0.0.1",)
    assert len(names.asked) == 2


async def test_the_last_good_answer_is_used_when_the_next_look_up_hangs() -> None:
    names, watch = Names(always("10.0.0.1")), Watch()
    resolver = Resolver(names, watch)
    await resolver.resolve("a.example")
    watch.ahead_s = FRESH_S + 1
    names.answer = always("10.0.0.2")
    names.go_on.clear()
    began = watch()

    assert await resolver.resolve("a.example") == ("10.0.0.1",)
    assert PATIENCE_S - 0.1 < watch() - began < PATIENCE_S + 1.0
    # The hung look-up is known: the next one who asks does not wait for it again.
    began = watch()
    assert await resolver.resolve("a.example") == ("10.0.0.1",)
    assert watch() - began < 0.5

    names.go_on.set()
    while await resolver.resolve("a.example") != ("10.0.0.2",):
        await asyncio.sleep(0.005)


@pytest.mark.threat("T-1")
@pytest.mark.bug("K29")
async def test_one_bad_address_among_good_ones_refuses_the_name() -> None:
    origin = Origin.parse("https://a.example")
    names = Names(always("8.8.8.8", "169.254.169.254"))

    with pytest.raises(UpstreamError) as caught:
        await Addresses(origin, Resolver(names), allow_private=True).find()

    assert (caught.value.code, caught.value.sent) == ("upstream_unavailable", False)
    assert "a.example" not in caught.value.message
    assert "169.254" not in caught.value.message


@pytest.mark.threat("T-1")
async def test_an_address_that_changes_between_look_ups_is_checked_again() -> None:
    names, watch = Names(always("8.8.8.8")), Watch()
    addresses = Addresses(
        Origin.parse("https://a.example"), Resolver(names, watch), allow_private=False
    )
    assert await addresses.find() == ["8.8.8.8"]
    watch.ahead_s = FRESH_S + 1
    names.answer = always("127.0.0.1")

    with pytest.raises(UpstreamError):
        await addresses.find()


async def test_families_take_turns_and_an_address_needs_no_look_up() -> None:
    names = Names(always("2a00::1", "2a00::2", "2a00::3", "8.8.8.8"))
    resolver = Resolver(names)

    def find(url: str) -> Addresses:
        return Addresses(Origin.parse(url), resolver, allow_private=True)

    assert await find("https://a.example").find() == ["2a00::1", "8.8.8.8", "2a00::2", "2a00::3"]
    assert await find("http://127.0.0.1:1").find() == ["127.0.0.1"]
    assert await find("http://[::1]:1").find() == ["::1"]
    assert names.asked == ["a.example"]
