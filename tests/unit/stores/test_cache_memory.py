"""The cache in memory is bounded for each tenant, forgets by its clock, and gives room back."""

import pytest

from gateway.core.caching import CacheStore, Entry, Selector
from gateway.core.errors import StoreError
from gateway.stores.cache_memory import MemoryCache
from tests.support.caches import entry, keep, pool, vector

OWN = pool("acme")


async def kept(cache: CacheStore, *exact: str) -> list[bool]:
    return [(await cache.look(OWN, each, "")).exact is not None for each in exact]


@pytest.mark.bug("K38")
async def test_the_longest_unused_entries_are_forgotten_first() -> None:
    cache = MemoryCache(max_entries=3)
    for name in "abc":
        await keep(cache, OWN, name)
    await cache.look(OWN, "a", "")
    await keep(cache, OWN, "d")

    assert await kept(cache, "a", "b", "c", "d") == [True, False, True, True]
    await keep(cache, pool("globex"), "a")
    assert (await cache.stats("acme"))["entries"] == 3


@pytest.mark.bug("K38")
async def test_bytes_are_bounded_with_all_that_leads_to_an_entry() -> None:
    cache = MemoryCache(max_bytes=20_000)
    for number in range(100):
        made = await keep(
            cache, OWN, f"{number}", answer=b"a" * 2_000, embedder="e", vector=vector()
        )
        await cache.alias(made, f"alias {number}", f"c {number}", vector(0.5), "other")
        assert (await cache.stats("acme"))["bytes"] <= 20_000
    stats = await cache.stats("acme")
    assert 2 <= stats["entries"] <= 6
    assert stats["vectors"] == 2 * stats["entries"]
    await cache.delete(Selector("acme"))
    assert not any((await cache.stats("acme")).values())
    shelf = cache._shelves["acme"]
    assert (shelf.prompts, shelf.canonical, shelf.vectors) == ({}, {}, {})


async def test_an_entry_that_is_larger_than_all_room_is_not_kept() -> None:
    cache = MemoryCache(max_bytes=20_000)
    await keep(cache, OWN, "a")

    assert not await cache.put(entry(OWN, "b", epoch=1, answer=b"a" * 20_000))
    assert await kept(cache, "a", "b") == [True, False]


async def test_time_is_that_of_its_clock() -> None:
    now = [100.0]
    cache = MemoryCache(now=lambda: now[0])
    made = await keep(cache, OWN, created=5.0, expires=65.0)
    found = await cache.get("acme", made.id)
    assert found is not None
    assert (found.created, found.expires) == (100.0, 160.0)

    now[0] = 159.9
    assert await kept(cache, "x") == [True]
    now[0] = 160.0
    assert await kept(cache, "x") == [False]
    assert not any((await cache.stats("acme")).values())


async def test_an_entry_that_asks_for_years_is_kept_for_a_month() -> None:
    now = [0.0]
    cache = MemoryCache(now=lambda: now[0])
    await keep(cache, OWN, created=0.0, expires=1e9)

    now[0] = 30 * 86_400.0
    assert await kept(cache, "x") == [False]


@pytest.mark.bug("K38")
async def test_what_is_remembered_of_entries_that_left_early_is_bounded() -> None:
    cache = MemoryCache(max_entries=4)
    made: Entry | None = None
    for number in range(3_000):
        made = await keep(cache, OWN, f"{number}")
        await cache.block(OWN, made.id, f"b{number % 20}")

    shelf = cache._shelves["acme"]
    assert len(shelf.due) < 500
    assert len(shelf.entries) == 4


async def test_after_its_end_it_refuses() -> None:
    cache = MemoryCache()
    await cache.aclose()

    with pytest.raises(StoreError):
        await cache.look(OWN, "x", "")
