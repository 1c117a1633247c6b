"""Pools learn from the labels of all replicas, off the loop, and tell what changed."""

import asyncio
from collections.abc import Coroutine
from random import Random
from typing import Any

from gateway.core.caching import Entry, Found, Pool
from gateway.middleware.semantic_cache.online.features import NAMES, Features, features_of
from gateway.middleware.semantic_cache.online.feedback import Recent
from gateway.middleware.semantic_cache.online.pool import Change, PoolModel
from gateway.middleware.semantic_cache.online.pools import PoolName, Pools
from gateway.stores.opaque import MemoryOpaque

_NAME = PoolName("acme", "default", "support")


def entry(answer: str, asked: str) -> Entry:
    return Entry(answer, Pool("t", "n", "s", "v", "f"), asked, "", "", b"", 0.0, 0.0)


def labelled(random: Random) -> tuple[Features, bool]:
    right = random.random() < 0.6
    rest = (random.random(),) * (len(NAMES) - 1)
    values = (random.uniform(0.8, 1.0) if right else random.uniform(0.55, 0.85), *rest)
    return Features("a", Found(entry("a", "q"), values[0]), values), right


class Replica:
    """The pools of one process, and the work that it began."""

    def __init__(self, store: MemoryOpaque, seed: str) -> None:
        self.changes: list[Change | None] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.pools = Pools(0.03, store=store, spawn=self._spawn, told=self._told, seed=seed)

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(work, name=name))

    def _told(self, name: PoolName, model: PoolModel, change: Change | None) -> None:
        assert name == _NAME
        self.changes.append(change)

    async def idle(self) -> None:
        while self._tasks:
            await self._tasks.pop()

    async def label(self, random: Random, count: int) -> None:
        for _ in range(count):
            features, right = labelled(random)
            self.pools.label(_NAME, features, right=right)
            await self.idle()


async def test_replicas_are_certified_by_the_labels_of_all() -> None:
    store, random = MemoryOpaque(), Random(1)
    one, two = Replica(store, "one"), Replica(store, "two")
    await one.label(random, 450)
    assert one.pools.of(_NAME).certified
    assert one.changes == ["certified"]

    model = two.pools.of(_NAME)
    assert not model.certified
    await two.idle()

    assert model.certified
    assert model.labels >= 400


async def test_a_fit_runs_off_the_loop_and_labels_go_on_coming_in() -> None:
    random = Random(2)
    replica = Replica(MemoryOpaque(), "one")
    for _ in range(900):
        features, right = labelled(random)
        replica.pools.label(_NAME, features, right=right)
    model = replica.pools.of(_NAME)
    assert not model.certified

    await replica.idle()

    assert model.certified
    assert model.labels == 900


async def test_pools_share_nothing_with_other_tenants_namespaces_and_agents() -> None:
    store = MemoryOpaque()
    replica = Replica(store, "one")
    await replica.label(Random(3), 450)

    for name in (
        _NAME._replace(tenant="other"),
        _NAME._replace(namespace="other"),
        _NAME._replace(agent="other"),
    ):
        model = replica.pools.of(name)
        await replica.idle()
        assert model.labels == 0


def test_without_a_process_around_it_a_pool_fits_at_once() -> None:
    random, pools = Random(4), Pools(0.03, seed="x", most=1)
    for _ in range(450):
        features, right = labelled(random)
        pools.label(_NAME, features, right=right)
    assert pools.of(_NAME).certified

    pools.of(_NAME._replace(agent="other"))

    assert pools.of(_NAME).labels == 0


def test_the_numbers_of_a_candidate_tell_how_it_stands_among_its_neighbours() -> None:
    near = [
        Found(entry("a", "how do i reset my password"), 0.95),
        Found(entry("b", "how do i change my address"), 0.8),
        Found(entry("a", "password reset, how"), 0.75),
    ]

    looked = features_of(near, "how can i reset my password", {})

    assert looked is not None
    named = dict(zip(NAMES, looked.values, strict=True))
    assert looked.answer == "a"
    assert named["similarity"] == 0.95
    assert abs(named["margin"] - 0.15) < 1e-9
    assert abs(named["share"] - 1.7 / 2.5) < 1e-9
    assert named["second"] == 0.75


def test_the_guards_choose_the_candidate_and_far_ones_are_none() -> None:
    near = [
        Found(entry("a", "cancel order 12"), 0.97),
        Found(entry("b", "cancel order 13"), 0.9),
    ]

    looked = features_of(near, "cancel order 13", {})
    refused = features_of(near[:1], "cancel order 13", {})

    assert looked is not None
    assert looked.answer == "b"
    assert refused is not None
    assert refused.veto == "number"
    assert features_of([Found(entry("a", "x"), 0.5)], "y", {}) is None
    assert features_of([], "y", {}) is None


def test_a_word_on_a_hit_is_a_label_once_and_of_its_own_tenant_alone() -> None:
    pools = Pools(0.03, seed="x")
    recent = Recent(pools)
    features, _ = labelled(Random(5))
    recent.served(_NAME, "asked", features)

    assert not recent.wrong("other", "a", "asked")
    assert not recent.wrong("acme", "a", "asked otherwise")
    assert not recent.wrong("acme", "b", "asked")
    assert recent.wrong("acme", "a", "asked")
    assert not recent.wrong("acme", "a", "asked")
    assert pools.of(_NAME).labels == 1
    assert pools.of(_NAME).histories["a"].wrong == 1


async def test_labels_are_shared_long_before_there_are_enough_for_a_fit() -> None:
    store, random = MemoryOpaque(), Random(1)
    one, two = Replica(store, "one"), Replica(store, "two")
    await one.label(random, 60)
    two.pools.of(_NAME)
    await two.idle()

    assert two.pools.of(_NAME).labels >= 50


async def test_a_restart_goes_on_with_the_labels_of_before() -> None:
    store, random = MemoryOpaque(), Random(1)
    one = Replica(store, "one")
    await one.label(random, 350)
    again = Replica(store, "again")
    again.pools.of(_NAME)
    await again.idle()
    await again.label(random, 100)

    assert again.changes[:1] == ["certified"]
