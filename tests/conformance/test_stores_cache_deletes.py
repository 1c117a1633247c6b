"""Deletes over every store of cached answers: what they mean is gone for everybody, and nobody brings it back."""

import asyncio

import pytest

from gateway.core.caching import CacheStore, Entry, Selector
from tests.support.caches import Opening, entry, ids, keep, pool, same, vector


async def many(cache: CacheStore, tenant: str) -> dict[str, Entry]:
    """Keep one entry that is meant by any selector of `SELECTORS`, and one that misses each by a little."""
    base = {"model": "m", "agent": "a", "tags": ("t", "u"), "embedder": "e", "vector": vector()}
    made = {"all": await keep(cache, pool(tenant), "all", **base)}
    for field in ("namespace", "scope", "value"):
        other = pool(tenant, **{field: f"other {field}"})
        made[field] = await keep(cache, other, field, **base)
    for field in ("model", "agent"):
        made[field] = await keep(cache, pool(tenant), field, **{**base, field: "other"})
    made["tag"] = await keep(cache, pool(tenant), "tag", **{**base, "tags": ("tt", "u")})
    made["id"] = await keep(cache, pool(tenant), "id", **base)
    return made


SELECTORS = {
    "namespace": "n",
    "scope": "session",
    "value": "s",
    "model": "m",
    "agent": "a",
    "tag": "t",
}


@pytest.mark.parametrize("field", SELECTORS)
@pytest.mark.contract("O-4")
async def test_a_delete_means_what_it_selects(
    cache_opening: Opening, tenant: str, field: str
) -> None:
    async with cache_opening() as cache, cache_opening() as second:
        made = await many(cache, tenant)
        await keep(cache, pool(f"{tenant}-other"), "all")
        await second.look(pool(tenant), "all", "")
        deleted = await cache.delete(Selector(tenant, **{field: SELECTORS[field]}))

        assert deleted in {len(made) - 1, -1}
        for reader in (cache, second):
            for name, kept in made.items():
                found = (await reader.look(kept.pool, name, kept.canonical))[:2]
                assert [each is not None for each in found] == [name == field] * 2
                assert (await reader.get(tenant, kept.id) is not None) == (name == field)
            assert set(await ids(reader, made[field].pool, vector())) <= {made[field].id}
        assert (await cache.stats(tenant))["entries"] == 1
        assert (await cache.look(pool(f"{tenant}-other"), "all", "")).exact is not None


@pytest.mark.contract("O-4")
async def test_a_delete_of_several_fields_means_what_has_them_all(
    cache: CacheStore, tenant: str
) -> None:
    made = await many(cache, tenant)
    assert await cache.delete(Selector(tenant, **SELECTORS)) in {2, -1}

    left = {n for n, kept in made.items() if (await cache.look(kept.pool, n, "")).exact}
    assert left == set(made) - {"all", "id"}


@pytest.mark.contract("O-4")
async def test_a_tenant_may_be_emptied(cache: CacheStore, tenant: str, another: str) -> None:
    made = await many(cache, tenant)
    await keep(cache, pool(another))
    assert await cache.delete(Selector(tenant)) in {len(made), -1}

    for name, kept in made.items():
        assert (await cache.look(kept.pool, name, "")).exact is None
        assert await ids(cache, kept.pool, vector()) == []
    stats = await cache.stats(tenant)
    assert not any(stats.values())
    assert (await cache.look(pool(another), "x", "")).exact is not None
    again = await keep(cache, pool(tenant), "all", embedder="e", vector=vector())
    assert same((await cache.look(pool(tenant), "all", "")).exact, again)


@pytest.mark.contract("O-4")
async def test_one_entry_may_be_deleted(cache_opening: Opening, tenant: str) -> None:
    async with cache_opening() as cache, cache_opening() as second:
        own = pool(tenant)
        made = await keep(cache, own, embedder="e", vector=vector())
        other = await keep(cache, own, "y", embedder="e", vector=vector(0.5))
        await keep(cache, pool(f"{tenant}-other"), id=made.id)
        assert await cache.delete(Selector(tenant, made.id, model="unlike")) == 0
        assert await cache.delete(Selector(tenant, "absent")) == 0
        assert await cache.delete(Selector(tenant, made.id)) == 1
        assert await cache.delete(Selector(tenant, made.id)) == 0

        assert (await second.look(own, "x", "c-x"))[:2] == (None, None)
        assert await second.get(tenant, made.id) is None
        assert set(await ids(second, own, vector())) <= {other.id}
        assert same((await second.look(own, "y", "")).exact, other)
        assert await second.get(f"{tenant}-other", made.id) is not None
        assert not await second.put(made), "what was deleted is not brought back"


@pytest.mark.parametrize("field", ["", *SELECTORS])
@pytest.mark.contract("O-4")
async def test_a_late_writer_brings_nothing_back(
    cache_opening: Opening, tenant: str, field: str
) -> None:
    async with cache_opening() as cache, cache_opening() as second:
        own = pool(tenant)
        before = (await second.look(own, "x", "")).epoch
        late = entry(
            own, epoch=before, model="m", agent="a", tags=("t",), embedder="e", vector=vector()
        )
        kept = await keep(cache, own, "y", model="m", agent="a", tags=("t",))
        await cache.delete(Selector(tenant, **({field: SELECTORS[field]} if field else {})))

        assert not await second.put(late)
        assert not await second.alias(kept, "z", "", b"", "other")
        assert (await cache.look(own, "x", "c-x"))[:2] == (None, None)
        assert await ids(cache, own, vector()) == []
        after = (await second.look(own, "x", "")).epoch
        assert after > before
        fresh = entry(own, epoch=after, model="m", agent="a", tags=("t",))
        assert await second.put(fresh)
        assert same((await cache.look(own, "x", "")).exact, fresh)


@pytest.mark.contract("O-4")
async def test_a_writer_that_a_delete_does_not_mean_is_not_disturbed(
    cache_opening: Opening, tenant: str
) -> None:
    async with cache_opening() as cache, cache_opening() as second:
        own = pool(tenant)
        late = entry(own, epoch=(await second.look(own, "x", "")).epoch, model="m")
        for selector in (
            Selector(tenant, model="other"),
            Selector(tenant, namespace="other"),
            Selector(tenant, tag="t"),
            Selector(f"{tenant}-other"),
        ):
            await cache.delete(selector)

        assert await second.put(late)
        assert same((await cache.look(own, "x", "")).exact, late)


async def test_many_deletes_stay_in_force(cache: CacheStore, tenant: str) -> None:
    own = pool(tenant)
    early = entry(own, epoch=(await cache.look(own, "x", "")).epoch, tags=("t-0",))
    for number in range(300):
        await cache.delete(Selector(tenant, tag=f"t-{number}"))

    assert not await cache.put(early)
    made = await keep(cache, own, tags=("t-0",))
    assert same((await cache.look(own, "x", "")).exact, made)


@pytest.mark.contract("O-4")
async def test_nothing_from_before_a_delete_is_found_after_it_among_many_writers(
    cache_opening: Opening, tenant: str
) -> None:
    async with cache_opening() as first, cache_opening() as second:
        own = pool(tenant)
        for round_ in range(5):
            epoch = (await first.look(own, "x", "")).epoch
            made = [
                entry(own, f"x{n}", epoch=epoch, embedder="e", vector=vector(), agent=f"{round_}")
                for n in range(12)
            ]
            work = [(first, second)[n % 2].put(each) for n, each in enumerate(made)]
            work.insert(6, second.delete(Selector(tenant, namespace="n")))  # type: ignore[arg-type]
            await asyncio.gather(*work)

            for n in range(12):
                assert (await first.look(own, f"x{n}", f"c-x{n}"))[:2] == (None, None)
            assert await ids(second, own, vector()) == []
