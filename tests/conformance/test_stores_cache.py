"""One suite over every store of cached answers: what is kept is found, by whom it belongs to and by nobody else."""

import asyncio

import pytest

from gateway.core import clock
from gateway.core.caching import CacheStore, Selector
from tests.support.caches import (
    DIMENSION,
    WITHOUT_VECTORS,
    Opening,
    address,
    crowd,
    entry,
    gone,
    ids,
    keep,
    keep_many,
    pool,
    same,
    vector,
)

NEAR = 0.001


# ------------------------------------------------------------------ equal prompts


async def test_nothing_is_found_where_nothing_was_kept(cache: CacheStore, tenant: str) -> None:
    looked = await cache.look(pool(tenant), "x", "c-x")

    assert (looked.exact, looked.canonical) == (None, None)
    assert await cache.get(tenant, "absent") is None
    assert await cache.nearest(pool(tenant), "e", vector(), 8) == []


async def test_an_entry_comes_back_whole_under_its_keys(cache: CacheStore, tenant: str) -> None:
    own = pool(tenant)
    made = await keep(
        cache, own, model="m", agent="a", author="k", tags=("t", "\0 odd ü", ""),
        asked="what?\0 \n ünïcödé", answer=bytes(range(256)) * 1024, embedder="e", vector=vector(),
    )  # fmt: skip

    looked = await cache.look(own, "x", "c-x")
    assert same(looked.exact, made)
    assert same(looked.canonical, made)
    assert same(await cache.get(tenant, made.id), made)
    assert (await cache.look(own, "y", "c-x")).exact is None
    assert same((await cache.look(own, "y", "c-x")).canonical, made)
    assert (await cache.look(own, "y", "")).canonical is None
    assert (await cache.look(own, "c-x", "x")) == (None, None, looked.epoch)


async def test_half_a_pair_in_a_prompt_is_no_error(cache: CacheStore, tenant: str) -> None:
    await keep(cache, pool(tenant), asked="half \ud800 a pair")

    assert (await cache.look(pool(tenant), "x", "")).exact is not None


async def test_an_entry_without_a_canonical_form_is_found_by_its_prompt_alone(
    cache: CacheStore, tenant: str
) -> None:
    made = await keep(cache, pool(tenant), canonical="")

    assert same((await cache.look(pool(tenant), "x", "")).exact, made)
    assert (await cache.look(pool(tenant), "y", "")).canonical is None


async def test_the_newest_entry_of_a_prompt_counts(cache: CacheStore, tenant: str) -> None:
    await keep(cache, pool(tenant), answer=b"old")
    made = await keep(cache, pool(tenant), answer=b"new")

    looked = await cache.look(pool(tenant), "x", "c-x")
    assert same(looked.exact, made)
    assert same(looked.canonical, made)


async def test_what_one_process_keeps_another_finds(cache_opening: Opening, tenant: str) -> None:
    async with cache_opening() as first, cache_opening() as second:
        made = await keep(first, pool(tenant))
        assert same((await second.look(pool(tenant), "x", "")).exact, made)


@pytest.mark.parametrize("where", ["tenant", "namespace", "scope", "value", "fingerprint"])
@pytest.mark.bug("K19")
async def test_another_pool_is_another_world(cache: CacheStore, tenant: str, where: str) -> None:
    own = pool(tenant)
    made = await keep(cache, own, embedder="e", vector=vector())
    other = pool(**{**{name: getattr(own, name) for name in own.__struct_fields__}, where: "other"})
    if where == "tenant":
        other = pool(f"{tenant}-other")

    looked = await cache.look(other, "x", "c-x")
    assert (looked.exact, looked.canonical) == (None, None)
    assert await cache.nearest(other, "e", vector(), 8) == []
    assert same((await cache.look(own, "x", "")).exact, made)


# ------------------------------------------------------------------ time


async def test_an_entry_lives_as_long_as_it_says_by_the_clock_of_the_store(
    cache: CacheStore, tenant: str
) -> None:
    own = pool(tenant)
    long_ago = await keep(cache, own, "a", created=10.0, expires=70.0)
    await keep(cache, own, "b", created=4e9, expires=4e9 + 0.2)

    found = (await cache.look(own, "a", "")).exact
    assert found is not None
    assert abs(found.created - clock.wall()) < 5
    await gone(cache, own, "b")
    assert same((await cache.look(own, "a", "")).exact, long_ago)


async def test_what_is_over_is_found_by_nothing(cache: CacheStore, tenant: str) -> None:
    own = pool(tenant)
    made = await keep(cache, own, expires=1_000.2, embedder="e", vector=vector())
    await keep(cache, own, "y", embedder="e", vector=vector(0.5))
    await gone(cache, own)

    assert (await cache.look(own, "x", "c-x")).canonical is None
    assert await cache.get(tenant, made.id) is None
    assert made.id not in await ids(cache, own, vector(), most=1)
    assert (await cache.stats(tenant))["entries"] == 1


async def test_what_is_over_before_it_is_kept_is_not_kept(cache: CacheStore, tenant: str) -> None:
    epoch = (await cache.look(pool(tenant), "x", "")).epoch

    assert not await cache.put(entry(pool(tenant), epoch=epoch, expires=1_000.0))


async def test_an_entry_that_is_put_again_lives_no_longer(cache: CacheStore, tenant: str) -> None:
    own = pool(tenant)
    made = await keep(cache, own, expires=1_000.3)
    await cache.alias(made, "y", "c-y", b"", "another")
    again = entry(own, id=made.id, epoch=made.epoch, expires=1_060.0, embedder="e", vector=vector())
    assert await cache.put(again)

    found = await cache.get(tenant, made.id)
    assert found is not None
    assert found.vector == again.vector
    assert found.expires - found.created == pytest.approx(0.3, abs=0.01)
    assert (await cache.look(own, "y", "")).exact is not None
    await gone(cache, own)
    assert await cache.get(tenant, made.id) is None


# ------------------------------------------------------------------ similar prompts


async def test_the_nearest_come_first_with_their_similarity(
    similar: CacheStore, tenant: str
) -> None:
    own = pool(tenant)
    kept = {
        similarity: await keep(
            similar, own, f"{similarity}", embedder="e", vector=vector(similarity, side)
        )
        for side, similarity in enumerate((0.2, 0.99, -0.5, 0.7, 0.95, 0.0), 1)
    }

    found = await similar.nearest(own, "e", vector(), 4)
    assert [round(each.similarity, 2) for each in found] == [0.99, 0.95, 0.7, 0.2]
    for each in found:
        near = min(kept, key=lambda similarity: abs(similarity - each.similarity))
        assert each.similarity == pytest.approx(near, abs=NEAR)
        assert same(each.entry, kept[near])
    assert len(await similar.nearest(own, "e", vector(), 100)) == 6
    assert (await similar.nearest(own, "e", vector(0.7, 4), 1))[0].similarity <= 1.0


async def test_a_vector_of_another_length_is_near_to_nothing(
    similar: CacheStore, tenant: str
) -> None:
    own = pool(tenant)
    made = await keep(similar, own, embedder="e", vector=vector())
    longer = await keep(similar, own, "y", embedder="e", vector=vector(dimension=2 * DIMENSION))

    assert await ids(similar, own, vector()) == [made.id]
    assert await ids(similar, own, vector(dimension=2 * DIMENSION)) == [longer.id]
    for odd in (vector(dimension=4), b"", b"123", vector()[:-1]):
        assert await ids(similar, own, odd) == []


async def test_a_vector_that_is_none_is_kept_without_being_searched(
    cache: CacheStore, tenant: str
) -> None:
    own = pool(tenant)
    for name, odd in (("a", b"123"), ("b", b""), ("c", b"\xff" * 4 * DIMENSION)):
        made = await keep(cache, own, name, embedder="e", vector=odd)
        assert same((await cache.look(own, name, "")).exact, made)

    assert await ids(cache, own, vector()) == []


async def test_embedders_are_never_mixed(similar: CacheStore, tenant: str) -> None:
    own = pool(tenant)
    first = await keep(similar, own, "a", embedder="e", vector=vector())
    second = await keep(similar, own, "b", embedder="e:2 {x}", vector=vector())

    assert await ids(similar, own, vector()) == [first.id]
    assert await ids(similar, own, vector(), "e:2 {x}") == [second.id]
    assert await ids(similar, own, vector(), "e3") == []


async def test_the_newest_vector_of_a_prompt_counts(similar: CacheStore, tenant: str) -> None:
    own = pool(tenant)
    await keep(similar, own, embedder="e", vector=vector())
    made = await keep(similar, own, embedder="e", vector=vector(0.6))

    [found] = await similar.nearest(own, "e", vector(), 8)
    assert found.entry.id == made.id
    assert found.similarity == pytest.approx(0.6, abs=NEAR)


@pytest.mark.slow
@pytest.mark.bug("K19")
@pytest.mark.contract("W-CACHE-11")
@pytest.mark.timeout(240)
async def test_ten_thousand_nearer_entries_of_others_mask_nothing(
    similar: CacheStore,
    tenant: str,
    another: str,
    cache_store: str,
    request: pytest.FixtureRequest,
) -> None:
    """Neighbours with the same ids, the same prompts, the same vectors and better ones."""
    own = pool(tenant)
    mine = await keep(similar, own, expires=4_600.0, embedder="e", vector=vector(0.8))
    others = [pool(another), pool(tenant, "another session"), pool(tenant, fingerprint="other")]
    epochs = [(await similar.look(each, "x", "")).epoch for each in others]
    await keep_many(
        similar,
        [
            entry(
                others[number % 3],
                f"x{number}",
                id=mine.id if number == 0 else f"foreign-{number}",
                epoch=epochs[number % 3],
                embedder="e",
                vector=vector(1 - number / 1e6, 1 + number % (DIMENSION - 1)),
                answer=b"foreign",
                expires=4_600.0,
            )
            for number in range(1_000 if cache_store == "postgres" else 10_000)
        ],
    )
    if cache_store == "postgres":
        crowd(address(cache_store, request))

    [found] = await similar.nearest(own, "e", vector(), 8)
    assert same(found.entry, mine)
    assert found.similarity == pytest.approx(0.8, abs=NEAR)
    assert same(await similar.get(tenant, mine.id), mine)
    foreign = await similar.nearest(others[0], "e", vector(), 8)
    assert [each.entry.answer for each in foreign] == [b"foreign"] * 8
    assert await similar.delete(Selector(another)) in {3334, 3340, -1}
    assert await similar.nearest(others[0], "e", vector(), 8) == []
    assert await ids(similar, own, vector()) == [mine.id]


# ------------------------------------------------------------------ aliases, negative entries


async def test_an_alias_leads_to_its_entry(cache: CacheStore, tenant: str) -> None:
    own = pool(tenant)
    made = await keep(cache, own, embedder="e", vector=vector(0.1))
    assert await cache.alias(made, "y", "c-y", vector(), "what is the other?\n\0")

    looked = await cache.look(own, "y", "c-y")
    assert looked.exact is not None
    assert looked.exact.id == made.id
    assert looked.canonical is not None
    assert looked.canonical.id == made.id
    assert same((await cache.look(own, "x", "c-x")).exact, made)


async def test_prompts_that_are_near_are_found_with_what_each_asked(
    similar: CacheStore, tenant: str
) -> None:
    own = pool(tenant)
    made = await keep(similar, own, embedder="e", vector=vector(0.1))
    await similar.alias(made, "y", "c-y", vector(0.9), "what is the other?\n\0")

    found, last = await similar.nearest(own, "e", vector(), 8)
    assert found.similarity == pytest.approx(0.9, abs=NEAR)
    assert found.entry.id == last.entry.id == made.id
    assert found.entry.answer == last.entry.answer == made.answer
    asked = (found.entry.asked, found.entry.exact, found.entry.canonical)
    assert asked == ("what is the other?\n\0", "y", "c-y")
    assert (last.entry.asked, last.entry.exact) == (made.asked, made.exact)
    assert last.similarity == pytest.approx(0.1, abs=NEAR)
    assert (await similar.nearest(own, "e", vector(), 1))[0].entry.exact == "y"
    assert (await similar.nearest(own, "e", vector(0.1), 8))[0].entry.asked == made.asked


async def test_an_alias_of_what_is_gone_is_refused(cache: CacheStore, tenant: str) -> None:
    own = pool(tenant)
    made = await keep(cache, own)
    await cache.alias(made, "y", "", b"", "other")
    await cache.delete(Selector(tenant, made.id))

    assert not await cache.alias(made, "z", "", b"", "third")
    assert (await cache.look(own, "y", "")).exact is None
    assert (await cache.look(own, "z", "")).exact is None


async def test_an_alias_ends_with_its_entry(cache: CacheStore, tenant: str) -> None:
    own = pool(tenant)
    made = await keep(cache, own, expires=1_000.2)
    await cache.alias(made, "y", "c-y", b"", "other")
    await gone(cache, own, "y")

    assert await cache.get(tenant, made.id) is None


@pytest.mark.contract("O-4")
async def test_a_blocked_prompt_never_leads_there_again(cache: CacheStore, tenant: str) -> None:
    own = pool(tenant)
    made = await keep(cache, own, embedder="e", vector=vector(0.5))
    await cache.alias(made, "y", "c-y", vector(), "other")
    await cache.block(own, made.id, "y")
    await cache.block(own, "another id", "y")

    assert await cache.blocked(own, "y") == {made.id, "another id"}
    assert await cache.blocked(own, "x") == frozenset()
    assert await cache.blocked(pool(tenant, "other"), "y") == frozenset()
    assert (await cache.look(own, "y", "c-y"))[:2] == (None, None)
    assert (await cache.look(own, "y", "c-x"))[:2] == (None, None)
    assert same((await cache.look(own, "x", "c-x")).exact, made)
    await cache.alias(made, "y", "c-y", b"", "other")
    assert (await cache.look(own, "y", "c-y"))[:2] == (None, None)


# ------------------------------------------------------------------ many at once


async def test_writers_at_once_leave_one_answer_for_a_prompt(
    cache_opening: Opening, tenant: str
) -> None:
    async with cache_opening() as first, cache_opening() as second:
        own = pool(tenant)
        epoch = (await first.look(own, "x", "")).epoch
        made = [
            entry(own, epoch=epoch, embedder="e", vector=vector(), answer=b"%d" % number)
            for number in range(40)
        ]
        puts = [(first, second)[n % 2].put(each) for n, each in enumerate(made)]
        assert all(await asyncio.gather(*puts))

        looked = await first.look(own, "x", "c-x")
        assert looked.exact is not None
        assert looked.exact == looked.canonical
        assert (await second.look(own, "x", "")).exact == looked.exact
        assert set(await ids(first, own, vector())) <= {looked.exact.id}


async def test_counts_are_told(cache: CacheStore, tenant: str) -> None:
    assert not any((await cache.stats(tenant)).values())
    await keep(cache, pool(tenant), "a", embedder="e", vector=vector())
    await keep(cache, pool(tenant), "b")
    await keep(cache, pool(tenant, "other"), "c")

    stats = await cache.stats(tenant)
    assert stats["entries"] == 3
    assert stats["partitions"] == 2
    assert stats.get("vectors", 1) == 1
    assert stats.get("bytes", 1) > 0


async def test_the_start_says_what_the_store_can_do(cache_store: str, cache: CacheStore) -> None:
    words = await cache.begin()

    assert cache.has_vectors == (cache_store not in WITHOUT_VECTORS)
    assert ("one canonical form alone" in words) == (cache_store in WITHOUT_VECTORS)
    assert ("by similarity" in words) == (cache_store not in WITHOUT_VECTORS)
    assert ("vector sets" in words) == (cache_store == "redis sets")
    assert ("search module of" in words) == (cache_store == "redis search")
