"""One suite over every store of receipts in the registry."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from gateway.core.errors import StoreError
from gateway.core.ids import new_request_id
from gateway.core.receipts import Answer, Holder, Receipts
from gateway.core.scope import Scope
from gateway.stores.receipts import MemoryReceipts
from gateway.stores.redis.client import Client
from gateway.stores.redis.receipts import RedisReceipts
from gateway.stores.registry import open_receipts
from tests.support.outgoing import Background
from tests.support.redis_server import redis_server, shared_url

LEASE_S = 30.0
FIRST = Holder("acme", "a-name", "first")
SECOND = FIRST._replace(token="second")
ANSWER = Answer(
    200,
    ((b"content-type", b"application/json"), (b"x-odd", b"\xe9 \x00 \xff")),
    b'{"a":1}\n\x00\xff\r\n',
)


@pytest.fixture(params=["memory", "redis"])
async def receipts(request: pytest.FixtureRequest) -> AsyncGenerator[Receipts]:
    background = Background()
    url = "memory" if request.param == "memory" else shared_url()
    receipts = open_receipts(url, background.spawn)
    yield receipts
    await receipts.aclose()
    await background.join()


@pytest.fixture
def first() -> Holder:
    """A holder of a tenant that no other test has."""
    return Holder(f"acme-{new_request_id()}", "a-name", "first")


@pytest.fixture
def second(first: Holder) -> Holder:
    return first._replace(token="second")


async def state(receipts: Receipts, holder: Holder, fingerprint: str = "f") -> str:
    return (await receipts.claim(holder, fingerprint, LEASE_S)).state


async def test_a_free_key_is_claimed_once(
    receipts: Receipts, first: Holder, second: Holder
) -> None:
    own = await receipts.claim(first, "head.body", LEASE_S)
    theirs = await receipts.claim(second, "other", LEASE_S)

    assert (own.state, own.fingerprint) == ("new", "head.body")
    assert (theirs.state, theirs.fingerprint) == ("running", "head.body")


async def test_one_of_many_claims_at_once_gets_the_key(receipts: Receipts, first: Holder) -> None:
    holders = [first._replace(token=str(number)) for number in range(50)]
    found = await asyncio.gather(*(state(receipts, holder) for holder in holders))

    assert sorted(found) == ["new"] + ["running"] * 49


async def test_a_claim_may_be_repeated_by_its_holder(receipts: Receipts, first: Holder) -> None:
    assert await state(receipts, first) == "new"
    assert await state(receipts, first) == "new"
    assert await receipts.calling(first, LEASE_S)
    assert await receipts.calling(first, LEASE_S)


@pytest.mark.parametrize("is_stream", [True, False])
async def test_an_answer_comes_back_byte_for_byte(
    receipts: Receipts, is_stream: bool, first: Holder, second: Holder
) -> None:
    answer = ANSWER._replace(is_stream=is_stream)
    await receipts.claim(first, "head.", LEASE_S)
    await receipts.calling(first, LEASE_S)
    assert await receipts.finish(first, "head.body", answer)
    found = await receipts.claim(second, "head.", LEASE_S)

    assert found.state == "done"
    assert found.fingerprint == "head.body"
    assert found.answer == answer


async def test_a_large_answer_comes_back(receipts: Receipts, first: Holder, second: Holder) -> None:
    answer = ANSWER._replace(body=bytes(range(256)) * 4096)
    await receipts.claim(first, "f", LEASE_S)
    await receipts.finish(first, "f", answer)

    assert (await receipts.claim(second, "f", LEASE_S)).answer == answer


async def test_a_lost_answer_stays_lost(receipts: Receipts, first: Holder, second: Holder) -> None:
    await receipts.claim(first, "f", LEASE_S)
    assert await receipts.finish(first, "f", None)
    found = await receipts.claim(second, "f", LEASE_S)

    assert (found.state, found.answer) == ("lost", None)


async def test_a_key_that_is_released_is_free(
    receipts: Receipts, first: Holder, second: Holder
) -> None:
    await receipts.claim(first, "f", LEASE_S)
    await receipts.release(second)
    assert await state(receipts, second) == "running"
    await receipts.calling(first, LEASE_S)
    await receipts.release(first)
    await receipts.release(first)

    assert await state(receipts, second, "other") == "new"


async def test_an_answer_is_never_taken_back(
    receipts: Receipts, first: Holder, second: Holder
) -> None:
    await receipts.claim(first, "f", LEASE_S)
    await receipts.finish(first, "f", ANSWER)
    await receipts.release(first)

    assert not await receipts.calling(first, LEASE_S)
    assert await state(receipts, second) == "done"


async def test_only_the_holder_changes_anything(
    receipts: Receipts, first: Holder, second: Holder
) -> None:
    await receipts.claim(first, "f", LEASE_S)

    assert not await receipts.calling(second, LEASE_S)
    assert not await receipts.finish(second, "f", ANSWER)
    await receipts.renew(second, 0.001)
    assert await state(receipts, second) == "running"
    assert await receipts.calling(first, LEASE_S)


async def test_a_claim_that_called_nobody_is_free_after_its_lease(
    receipts: Receipts, first: Holder, second: Holder
) -> None:
    await receipts.claim(first, "f", 0.02)
    await asyncio.sleep(0.05)

    assert await state(receipts, second, "other") == "new"
    assert not await receipts.calling(first, LEASE_S)
    assert not await receipts.finish(first, "f", ANSWER)


async def test_a_claim_that_may_have_called_is_lost_after_its_lease(
    receipts: Receipts, first: Holder, second: Holder
) -> None:
    await receipts.claim(first, "f", LEASE_S)
    await receipts.calling(first, 0.02)
    await asyncio.sleep(0.05)

    assert await state(receipts, second) == "lost"
    assert await receipts.finish(first, "f", ANSWER), "it lived after all"
    assert await state(receipts, second) == "done"


@pytest.mark.parametrize("called", [True, False])
async def test_a_lease_that_is_renewed_does_not_end(
    receipts: Receipts, called: bool, first: Holder, second: Holder
) -> None:
    await receipts.claim(first, "f", 0.2)
    if called:
        await receipts.calling(first, 0.2)
    await receipts.renew(first, LEASE_S)
    await asyncio.sleep(0.3)

    assert await state(receipts, second) == "running"


async def test_an_answer_is_kept_where_the_claim_itself_was_lost(
    receipts: Receipts, first: Holder, second: Holder
) -> None:
    assert await receipts.finish(first, "f", ANSWER)
    assert await state(receipts, second) == "done"


@pytest.mark.threat("T-16")
async def test_tenants_do_not_share_a_name(receipts: Receipts, first: Holder) -> None:
    await receipts.claim(first, "f", LEASE_S)
    await receipts.finish(first, "f", ANSWER)

    assert await state(receipts, first._replace(tenant="globex", token="theirs")) == "new"


async def test_memory_forgets_what_is_older_than_a_day() -> None:
    now = [0.0]
    receipts = MemoryReceipts(now=lambda: now[0])
    await receipts.claim(FIRST, "f", LEASE_S)
    await receipts.finish(FIRST, "f", ANSWER)
    now[0] = 86_399.0
    assert await state(receipts, SECOND) == "done"
    now[0] = 86_400.0
    assert await state(receipts, SECOND) == "new"


@pytest.mark.bug("K38")
async def test_memory_is_bounded_and_loses_answers_before_keys() -> None:
    now = [0.0]
    receipts = MemoryReceipts(max_keys=3, max_bytes=25, now=lambda: now[0])
    answer = ANSWER._replace(body=b"x" * 10)
    holders = [FIRST._replace(name=str(number)) for number in range(3)]
    for holder in holders:
        await receipts.claim(holder, "f", LEASE_S)
        await receipts.finish(holder, "f", answer)

    assert [await state(receipts, holder) for holder in holders] == ["lost", "done", "done"]
    with pytest.raises(StoreError):
        await receipts.claim(FIRST, "f", LEASE_S)
    assert await state(receipts, FIRST._replace(tenant="globex")) == "new"
    now[0] = 86_400.0
    assert await state(receipts, FIRST) == "new"
    assert len(receipts._shelves["acme"].rows) == 1


@pytest.mark.bug("K23")
async def test_redis_that_is_gone_refuses_in_time_and_serves_again(
    tmp_path: Path, first: Holder, second: Holder
) -> None:
    background = Background()
    with redis_server(tmp_path) as server:
        receipts = open_receipts(server.url, background.spawn)
        await receipts.claim(first, "f", LEASE_S)
        server.kill()
        async with asyncio.timeout(2):
            with pytest.raises(StoreError):
                await receipts.claim(second, "f", LEASE_S)
            with pytest.raises(StoreError):
                await receipts.calling(first, LEASE_S)
        server.start()
        await until_answered(receipts, second)

        assert await receipts.finish(second, "f", ANSWER)
        assert not await receipts.finish(first, "f", ANSWER)
        await receipts.aclose()
        await background.join()


async def until_answered(receipts: Receipts, holder: Holder) -> None:
    async with asyncio.timeout(5):
        while True:
            try:
                await receipts.claim(holder, "f", LEASE_S)
            except StoreError:
                await asyncio.sleep(0.01)
            else:
                return


async def test_redis_forgets_a_receipt_after_its_time(first: Holder, second: Holder) -> None:
    background = Background()
    receipts = RedisReceipts(Client(shared_url(), background.spawn), keep_s=0.1)
    await receipts.claim(first, "f", LEASE_S)
    await receipts.finish(first, "f", ANSWER)
    assert await state(receipts, second) == "done"
    await asyncio.sleep(0.2)
    assert await state(receipts, second) == "new"
    await receipts.aclose()
    await background.join()


async def test_redis_keeps_a_claim_for_its_lease_and_a_call_for_a_day(first: Holder) -> None:
    background = Background()
    client = Client(shared_url(), background.spawn)
    receipts = RedisReceipts(client)
    await receipts.claim(first, "f", LEASE_S)
    name = Scope(first.tenant).key("receipt", first.name)

    assert await client.command(name, "EXISTS", name) == 1
    assert 0 < await client.command(name, "PTTL", name) <= LEASE_S * 1000
    await receipts.calling(first, LEASE_S)
    assert await client.command(name, "PTTL", name) > 86_000_000
    await receipts.aclose()
    await background.join()
