"""One suite over every store of receipts in the registry."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from gateway.core.errors import StoreError
from gateway.core.receipts import Answer, Holder, Receipts
from gateway.stores.receipts import MemoryReceipts

LEASE_S = 30.0
FIRST = Holder("acme", "a-name", "first")
SECOND = FIRST._replace(token="second")
ANSWER = Answer(
    200,
    ((b"content-type", b"application/json"), (b"x-odd", b"\xe9 \x00 \xff")),
    b'{"a":1}\n\x00\xff\r\n',
)


@pytest.fixture(params=["memory"])
async def receipts(request: pytest.FixtureRequest) -> AsyncGenerator[Receipts]:
    async with opened(request.param) as receipts:
        yield receipts


@asynccontextmanager
async def opened(scheme: str) -> AsyncGenerator[Receipts]:
    receipts = MemoryReceipts()
    yield receipts
    await receipts.aclose()


async def state(receipts: Receipts, holder: Holder, fingerprint: str = "f") -> str:
    return (await receipts.claim(holder, fingerprint, LEASE_S)).state


async def test_a_free_key_is_claimed_once(receipts: Receipts) -> None:
    first = await receipts.claim(FIRST, "head.body", LEASE_S)
    second = await receipts.claim(SECOND, "other", LEASE_S)

    assert (first.state, first.fingerprint) == ("new", "head.body")
    assert (second.state, second.fingerprint) == ("running", "head.body")


async def test_one_of_many_claims_at_once_gets_the_key(receipts: Receipts) -> None:
    holders = [FIRST._replace(token=str(number)) for number in range(50)]
    found = await asyncio.gather(*(state(receipts, holder) for holder in holders))

    assert sorted(found) == ["new"] + ["running"] * 49


async def test_a_claim_may_be_repeated_by_its_holder(receipts: Receipts) -> None:
    assert await state(receipts, FIRST) == "new"
    assert await state(receipts, FIRST) == "new"
    assert await receipts.calling(FIRST, LEASE_S)
    assert await receipts.calling(FIRST, LEASE_S)


@pytest.mark.parametrize("is_stream", [True, False])
async def test_an_answer_comes_back_byte_for_byte(receipts: Receipts, is_stream: bool) -> None:
    answer = ANSWER._replace(is_stream=is_stream)
    await receipts.claim(FIRST, "head.", LEASE_S)
    await receipts.calling(FIRST, LEASE_S)
    assert await receipts.finish(FIRST, "head.body", answer)
    found = await receipts.claim(SECOND, "head.", LEASE_S)

    assert found.state == "done"
    assert found.fingerprint == "head.body"
    assert found.answer == answer


async def test_a_large_answer_comes_back(receipts: Receipts) -> None:
    answer = ANSWER._replace(body=bytes(range(256)) * 4096)
    await receipts.claim(FIRST, "f", LEASE_S)
    await receipts.finish(FIRST, "f", answer)

    assert (await receipts.claim(SECOND, "f", LEASE_S)).answer == answer


async def test_a_lost_answer_stays_lost(receipts: Receipts) -> None:
    await receipts.claim(FIRST, "f", LEASE_S)
    assert await receipts.finish(FIRST, "f", None)
    found = await receipts.claim(SECOND, "f", LEASE_S)

    assert (found.state, found.answer) == ("lost", None)


async def test_a_key_that_is_released_is_free(receipts: Receipts) -> None:
    await receipts.claim(FIRST, "f", LEASE_S)
    await receipts.release(SECOND)
    assert await state(receipts, SECOND) == "running"
    await receipts.calling(FIRST, LEASE_S)
    await receipts.release(FIRST)
    await receipts.release(FIRST)

    assert await state(receipts, SECOND, "other") == "new"


async def test_an_answer_is_never_taken_back(receipts: Receipts) -> None:
    await receipts.claim(FIRST, "f", LEASE_S)
    await receipts.finish(FIRST, "f", ANSWER)
    await receipts.release(FIRST)

    assert not await receipts.calling(FIRST, LEASE_S)
    assert await state(receipts, SECOND) == "done"


async def test_only_the_holder_changes_anything(receipts: Receipts) -> None:
    await receipts.claim(FIRST, "f", LEASE_S)

    assert not await receipts.calling(SECOND, LEASE_S)
    assert not await receipts.finish(SECOND, "f", ANSWER)
    await receipts.renew(SECOND, 0.001)
    assert await state(receipts, SECOND) == "running"
    assert await receipts.calling(FIRST, LEASE_S)


async def test_a_claim_that_called_nobody_is_free_after_its_lease(receipts: Receipts) -> None:
    await receipts.claim(FIRST, "f", 0.02)
    await asyncio.sleep(0.05)

    assert await state(receipts, SECOND, "other") == "new"
    assert not await receipts.calling(FIRST, LEASE_S)
    assert not await receipts.finish(FIRST, "f", ANSWER)


async def test_a_claim_that_may_have_called_is_lost_after_its_lease(receipts: Receipts) -> None:
    await receipts.claim(FIRST, "f", LEASE_S)
    await receipts.calling(FIRST, 0.02)
    await asyncio.sleep(0.05)

    assert await state(receipts, SECOND) == "lost"
    assert await receipts.finish(FIRST, "f", ANSWER), "it lived after all"
    assert await state(receipts, SECOND) == "done"


@pytest.mark.parametrize("called", [True, False])
async def test_a_lease_that_is_renewed_does_not_end(receipts: Receipts, called: bool) -> None:
    await receipts.claim(FIRST, "f", 0.2)
    if called:
        await receipts.calling(FIRST, 0.2)
    await receipts.renew(FIRST, LEASE_S)
    await asyncio.sleep(0.3)

    assert await state(receipts, SECOND) == "running"


async def test_an_answer_is_kept_where_the_claim_itself_was_lost(receipts: Receipts) -> None:
    assert await receipts.finish(FIRST, "f", ANSWER)
    assert await state(receipts, SECOND) == "done"


@pytest.mark.threat("T-16")
async def test_tenants_do_not_share_a_name(receipts: Receipts) -> None:
    await receipts.claim(FIRST, "f", LEASE_S)
    await receipts.finish(FIRST, "f", ANSWER)

    assert await state(receipts, FIRST._replace(tenant="globex", token="theirs")) == "new"


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
