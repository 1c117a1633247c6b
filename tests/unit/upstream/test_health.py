"""What is known of targets and credentials: kept by identity, shared by permits, shown without secrets."""

import asyncio
import gc
from hashlib import sha256
from math import inf

import pytest

from gateway.core import clock
from gateway.core.probing import LocalPermits
from gateway.upstream.breaker import CLOSED, HALF_OPEN, OPEN, BreakerRules
from gateway.upstream.concurrency import ConcurrencyRules
from gateway.upstream.health import Guarded, HealthBook, HostHealth, TargetHealth

RULES = BreakerRules(failures=1, open_s=0.001, max_open_s=0.001)
DIGEST = sha256(b"sk-secret").digest()


async def due(*records: Guarded) -> None:
    """Open breakers and wait until they may be tried."""
    for record in records:
        record.fail(record.breaker.epoch, clock.monotonic())
        assert record.breaker.state == OPEN
    while any(record.breaker.wait_s(clock.monotonic()) for record in records):
        await asyncio.sleep(0.001)


async def ask(record: TargetHealth, times: int) -> int:
    """Ask for probes all at once; returns how many were granted."""
    asked = (record.may_probe(clock.monotonic()) for _ in range(times))
    return sum(await asyncio.gather(*asked))


def watched() -> tuple[HealthBook, list[tuple[str, str, int, float]]]:
    """Return a book, and the list of what it tells."""
    seen: list[tuple[str, str, int, float]] = []

    def watch(provider: str, model: str, state: int, limit: float) -> None:
        seen.append((provider, model, state, limit))

    return HealthBook(watch), seen


class SlowPermits(LocalPermits):
    """Permits that take their time, as a store does."""

    asked = 0

    async def permit(self, target_key: str, ttl_s: float) -> bool:
        self.asked += 1
        await asyncio.sleep(0.01)
        return await super().permit(target_key, ttl_s)


def test_records_are_found_again_by_identity() -> None:
    book = HealthBook()
    one, key = book.target("up", "m", "http://a"), book.key("up", DIGEST)

    assert book.target("up", "m", "http://a") is one
    assert book.key("up", DIGEST) is key
    others = [
        book.target("up", "n", "http://a"),
        book.target("other", "m", "http://a"),
        book.target("up", "m", "http://b"),
        book.target("up", "m", "http://a", rules=RULES),
        book.target("up", "m", "http://a", bounds=ConcurrencyRules(most=3)),
    ]
    assert one not in others
    assert book.key("group", DIGEST) is not key
    assert book.key("up", sha256(b"other").digest()) is not key


def test_what_no_snapshot_uses_is_forgotten() -> None:
    book = HealthBook()
    kept, gone = book.target("up", "kept"), book.target("up", "gone")
    key = book.key("up", DIGEST)
    del gone, key
    gc.collect()

    assert [each["model"] for each in book.describe()["targets"]] == [kept.model]
    assert book.describe()["keys"] == []


def test_the_description_is_plain_data_without_addresses_or_secrets() -> None:
    book = HealthBook()
    target = book.target("up", "m", "http://internal.example", rules=RULES)
    key = book.key("up", DIGEST)
    now = clock.monotonic()
    target.fail(0, now)
    key.wait_until, key.rest_until = now + 100, now + 200

    described = book.describe()

    assert described["targets"][0] | {"retry_in_s": 0} == {
        "provider": "up",
        "model": "m",
        "state": "open",
        "retry_in_s": 0,
        "calls": 1,
        "failures": 1,
        "in_flight": 0,
        "waiting": 0,
        "limit": None,
        "latency_s": 0.0,
    }
    assert described["keys"][0]["state"] == "closed"
    assert 99 < described["keys"][0]["retry_in_s"] <= 100
    assert 199 < described["keys"][0]["rests_s"] <= 200
    assert "internal.example" not in str(described)
    assert DIGEST.hex() not in str(described)


def test_changes_are_told_to_who_watches() -> None:
    book, seen = watched()
    target = book.target("up", "m", rules=RULES, bounds=ConcurrencyRules(most=9, least=2))
    assert seen == [], "nothing was called yet"
    target.show()
    target.fail(0, 1.0)
    target.places.taken = 5
    target.places.shrink(1.0, 1.0)

    assert seen == [("up", "m", CLOSED, 9), ("up", "m", OPEN, 9), ("up", "m", OPEN, 4)]


@pytest.mark.parametrize("url", ["http://a", "http://b"])
def test_a_target_under_new_rules_is_shown_as_it_is(url: str) -> None:
    book, seen = watched()
    old = book.target("up", "m", "http://a", rules=RULES)
    old.show()
    old.fail(0, 1.0)
    new = book.target("up", "m", url, rules=RULES._replace(failures=7))

    assert new.breaker.state == CLOSED
    assert [state for _, _, state, _ in seen] == [CLOSED, OPEN, CLOSED]


def test_a_target_that_is_gone_is_not_shown_as_failing() -> None:
    book, seen = watched()
    target, other = book.target("up", "m", rules=RULES), book.target("up", "n", rules=RULES)
    for each in (target, other):
        each.show()
        each.fail(0, 1.0)
    del target, each
    gc.collect()

    assert seen[-1] == ("up", "m", CLOSED, inf)
    assert other.breaker.state == OPEN


@pytest.mark.fault("U-8", "U-28")
def test_targets_of_one_host_are_down_together() -> None:
    book, seen = watched()
    host = ("api.example",)
    one, other = (book.target("up", name, rules=RULES, host=host) for name in "mn")
    elsewhere = book.target("up", "m", "http://b", rules=RULES, host=("other.example",))
    for each in (one, other):
        each.show()
    one.host.fail(one.host.breaker.epoch, clock.monotonic())

    assert (one.state, other.state, elsewhere.state) == (OPEN, OPEN, CLOSED)
    assert one.breaker.state == CLOSED
    assert sorted(seen[2:]) == [("up", "m", OPEN, inf), ("up", "n", OPEN, inf)]
    assert {each["state"] for each in book.describe()["targets"]} == {"open", "closed"}


@pytest.mark.bug("K12")
@pytest.mark.fault("U-28")
async def test_replicas_that_share_permits_send_one_probe_between_them() -> None:
    permits = LocalPermits()
    one, other = (HealthBook(permits=permits).target("up", "m", rules=RULES) for _ in range(2))
    await due(one, other)

    granted = await asyncio.gather(ask(one, 50), ask(other, 50))

    assert sum(granted) == 1


@pytest.mark.bug("K12")
async def test_replicas_that_share_permits_send_so_many_probes_as_are_configured() -> None:
    permits = LocalPermits()
    rules = RULES._replace(probes=3)
    one, other = (HealthBook(permits=permits).target("up", "m", rules=rules) for _ in range(2))
    await due(one, other)

    granted = await asyncio.gather(ask(one, 50), ask(other, 50))

    assert sum(granted) == 3


async def test_a_slow_store_is_asked_once_however_many_wait() -> None:
    permits = SlowPermits()
    target = TargetHealth(rules=RULES, host=HostHealth(permits=permits))
    await due(target)

    assert await ask(target, 100) == 1
    assert permits.asked == 1


async def test_nobody_is_asked_while_all_is_well() -> None:
    permits = SlowPermits()
    target = TargetHealth(host=HostHealth(permits=permits))
    target.succeed(target.breaker.epoch, clock.monotonic())
    target.undecided(target.breaker.epoch)

    assert permits.asked == 0


@pytest.mark.parametrize("end", ["succeed", "fail", "undecided"])
async def test_the_end_of_a_probe_lets_other_replicas_try(end: str) -> None:
    permits = LocalPermits()
    one, other = (HealthBook(permits=permits).target("up", "m", rules=RULES) for _ in range(2))
    await due(one, other)
    assert await ask(one, 1) == 1
    assert await ask(other, 1) == 0
    now = clock.monotonic()
    if end == "undecided":
        one.undecided(one.breaker.epoch)
    elif end == "succeed":
        one.succeed(one.breaker.epoch, now)
    else:
        one.fail(one.breaker.epoch, now)
    while other.breaker.wait_s(clock.monotonic()):
        await asyncio.sleep(0.01)

    assert await ask(other, 100) == 1


async def test_a_call_that_is_cancelled_while_it_asks_gives_its_place_back() -> None:
    target = TargetHealth(rules=RULES, host=HostHealth(permits=SlowPermits()))
    await due(target)
    asking = asyncio.ensure_future(target.may_probe(clock.monotonic()))
    await asyncio.sleep(0)
    assert target.breaker.state == HALF_OPEN
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    while target.breaker.wait_s(clock.monotonic()):
        await asyncio.sleep(0.01)

    assert await ask(target, 100) == 1
