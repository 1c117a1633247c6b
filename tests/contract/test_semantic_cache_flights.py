"""The same question in flight is asked once, and who waits misses nothing of its answer (O-1)."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gateway.core.caching import Selector
from tests.support.cache_scene import PATHS, body, cached, put, text_of, usage_of, where
from tests.support.models import Step, said
from tests.support.serving import Serving

Json = dict[str, Any]
SLOW = "one two three four five six"
ways = pytest.mark.parametrize(
    ("dialect", "stream"),
    [(each, stream) for each in ("chat", "messages", "responses") for stream in (False, True)],
)


def slow(text: str = SLOW, gap_s: float = 0.05) -> Step:
    """Answer after a while, or as a stream with pauses."""
    return Step("ok", text, delay_s=0.2, gap_s=gap_s)


@pytest.mark.contract("O-1")
@ways
@pytest.mark.parametrize("leads", [False, True])
async def test_equal_questions_at_once_are_one_call(
    dialect: str, stream: bool, leads: bool, tmp_path: Path
) -> None:
    async with cached(tmp_path, m1=[slow()]) as (gateway, models):
        leader = asyncio.create_task(put(gateway, "hi", dialect, stream=leads))
        await until(models)
        others = [put(gateway, "hi", dialect, stream=stream) for _ in range(20)]
        answers = await asyncio.gather(*others)
        first = await leader

    assert models.n() == 1
    assert where(first) == "miss"
    assert {where(each) for each in answers} == {"hit-exact"}
    assert {text_of(each, dialect, stream=stream) for each in answers} == {SLOW}
    usages = [usage for each in answers for usage in usage_of(each, stream=stream)]
    assert not any(count for usage in usages for count in usage.values() if isinstance(count, int))


@pytest.mark.contract("O-1")
async def test_two_hundred_equal_questions_are_one_call(tmp_path: Path) -> None:
    async with cached(tmp_path, m1=[slow()]) as (gateway, models):
        answers = await asyncio.gather(*(put(gateway) for _ in range(200)))

    assert models.n() == 1
    assert sorted({where(each) for each in answers}) == ["hit-exact", "miss"]


@pytest.mark.contract("O-1")
async def test_other_sessions_and_other_questions_do_not_wait(tmp_path: Path) -> None:
    async with cached(tmp_path, m1=[slow()]) as (gateway, models):
        await asyncio.gather(
            *(put(gateway, session=name) for name in "abc"), put(gateway, "ho", session="a")
        )

    assert models.n() == 4


@pytest.mark.contract("O-1")
@pytest.mark.parametrize("stream", [False, True])
async def test_when_the_first_call_fails_one_other_takes_over(stream: bool, tmp_path: Path) -> None:
    failing = Step("http", status=500, delay_s=0.3)
    async with cached(tmp_path, m1=[failing, slow()]) as (gateway, models):
        leader = asyncio.create_task(put(gateway, stream=stream))
        await until(models)
        answers = await asyncio.gather(*(put(gateway, stream=stream) for _ in range(10)))
        failed = await leader

    assert failed.status_code >= 500
    assert models.n() == 2
    assert sorted(where(each) for each in answers) == ["hit-exact"] * 9 + ["miss"]


@pytest.mark.contract("O-1")
async def test_when_two_fail_in_a_row_everyone_asks_for_itself(tmp_path: Path) -> None:
    failing = [Step("http", status=500, delay_s=0.3)] * 2
    async with cached(tmp_path, m1=[*failing, said("fine")]) as (gateway, models):
        answers = await asyncio.gather(*(put(gateway) for _ in range(5)))

    assert sorted(each.status_code for each in answers)[:3] == [200, 200, 200]
    assert models.n() == 5


@pytest.mark.contract("O-1")
@pytest.mark.parametrize("dialect", ["chat", "messages", "responses"])
async def test_who_follows_gets_the_rest_when_the_first_caller_leaves(
    dialect: str, tmp_path: Path
) -> None:
    async with cached(tmp_path, m1=[slow(gap_s=0.2)]) as (gateway, models):
        leader = asyncio.create_task(leave(gateway, dialect))
        await until(models)
        await asyncio.sleep(0.3)
        follower = await put(gateway, "hi", dialect, stream=True)
        await leader
        kept = await put(gateway, "hi", dialect)

    assert text_of(follower, dialect, stream=True) == SLOW
    assert where(kept) == "hit-exact"
    assert models.n() == 1


@pytest.mark.contract("O-1")
async def test_nobody_waits_longer_than_its_own_deadline(tmp_path: Path) -> None:
    async with cached(tmp_path, m1=[Step("ok", "late", delay_s=1.0)]) as (gateway, models):
        leader = asyncio.create_task(put(gateway))
        await until(models)
        loop = asyncio.get_running_loop()
        began = loop.time()
        late = await put(gateway, headers={"x_gateway_timeout_ms": "200"})
        took = loop.time() - began
        await leader

    assert late.status_code == 504
    assert took < 0.9
    assert models.n() == 1


@pytest.mark.contract("O-1", "O-4")
@pytest.mark.parametrize("stream", [False, True])
async def test_nobody_follows_what_began_before_a_delete(stream: bool, tmp_path: Path) -> None:
    script = [slow("old", gap_s=0.3), slow("new")]
    async with cached(tmp_path, m1=script) as (gateway, models):
        leader = asyncio.create_task(put(gateway, stream=stream))
        await until(models)
        before = asyncio.create_task(put(gateway, stream=stream))
        await asyncio.sleep(0.05)
        store = gateway.worker._state.cache
        await store.delete(Selector("acme"))
        after = await asyncio.gather(*(put(gateway, stream=stream) for _ in range(5)))
        early = [await leader, await before]
        later = await put(gateway)

    assert models.n() == 2
    assert {text_of(each, "chat", stream=stream) for each in early} == {"old"}
    assert {text_of(each, "chat", stream=stream) for each in after} == {"new"}
    assert text_of(later, "chat", stream=False) == "new"


@pytest.mark.contract("O-1")
async def test_it_can_be_switched_off(tmp_path: Path) -> None:
    async with cached(tmp_path, {"coalesce": False}, m1=[slow()]) as (gateway, models):
        await asyncio.gather(put(gateway), put(gateway))

    assert models.n() == 2


@pytest.mark.bug("K22")
@pytest.mark.contract("O-2")
async def test_a_stream_that_its_caller_leaves_is_not_kept(tmp_path: Path) -> None:
    async with cached(tmp_path, m1=[slow(gap_s=0.2), said("whole")]) as (gateway, models):
        await leave(gateway, "chat")
        await idle(gateway)
        later = await put(gateway)

    assert where(later) == "miss"
    assert models.n() == 2


@pytest.mark.contract("O-2")
async def test_an_answer_that_never_came_is_not_kept(tmp_path: Path) -> None:
    async with cached(tmp_path, m1=[Step("http", status=500), said("whole")]) as (gateway, models):
        failed = await put(gateway)
        later = await put(gateway)

    assert failed.status_code >= 500
    assert where(later) == "miss"
    assert models.n() == 2


async def until(models: Any) -> None:
    """Wait until a model has been asked."""
    while not models.n():
        await asyncio.sleep(0.005)


async def idle(gateway: Serving) -> None:
    """Wait until nothing is being answered."""
    while gateway.running:
        await asyncio.sleep(0.01)


async def leave(gateway: Serving, dialect: str) -> None:
    """Ask for a stream and leave in the middle of it."""
    async with httpx2.AsyncClient(base_url=gateway.url, trust_env=False, timeout=10) as client:
        headers = dict(gateway.client.headers)
        request = client.stream(
            "POST", PATHS[dialect], json=body(dialect, "hi", stream=True), headers=headers
        )
        async with request as answer:
            async for piece in answer.aiter_text():
                if "two" in piece:
                    await asyncio.sleep(0.15)
                    return
