"""Counters in memory: by clocks of the test's own."""

import random

import pytest

from gateway.core.counting import Hold, Holds, Window
from gateway.core.errors import StoreError
from gateway.stores.memory import MemoryCounters

DAY_S = 86_400
START_S = 20_000 * DAY_S


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Scene:
    """Counters with their two clocks."""

    def __init__(self) -> None:
        self.wall = Clock(float(START_S))
        self.elapsed = Clock(100.0)
        self.counters = MemoryCounters(self.wall, self.elapsed)

    def sleep(self, seconds: float) -> None:
        """Let time pass for both."""
        self.wall.now += seconds
        self.elapsed.now += seconds

    def kept(self) -> int:
        """How many counters and settled ids are in memory."""
        settled = sum(len(own.settled) for own in self.counters._tenants.values())
        return len(self.counters._counters) + settled + len(self.counters._over)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def hold(name: str = "a", amount: int = 1, limit: int | None = 10, **more: object) -> Hold:
    return Hold(name, amount, limit, **more)  # type: ignore[arg-type]


async def take(scene: Scene, run: str, one: Hold, lease_s: float = 10.0) -> bool:
    return (await scene.counters.reserve("t", run, [one], lease_s)).granted


@pytest.mark.bug("K17")
async def test_each_day_begins_at_nothing(scene: Scene) -> None:
    for day in range(3):
        window = Window(START_S + day * DAY_S, START_S + (day + 1) * DAY_S)
        assert await take(scene, f"{day}", hold(amount=10, window=window))
        assert not await take(scene, f"{day}-more", hold(window=window))
        scene.sleep(DAY_S - 0.001)
        assert not await take(scene, f"{day}-late", hold(window=window))
        scene.sleep(0.001)


@pytest.mark.contract("G-28")
@pytest.mark.parametrize("jump_s", [3600.0, -3600.0])
async def test_a_jump_of_the_clock_ends_no_lease(scene: Scene, jump_s: float) -> None:
    assert await take(scene, "run", hold(), lease_s=10.0)

    scene.wall.now += jump_s
    assert list(await scene.counters.expired("t", 10)) == []
    scene.sleep(9.999)
    assert list(await scene.counters.expired("t", 10)) == []
    scene.sleep(0.001)
    assert [one.id for one in await scene.counters.expired("t", 10)] == ["run"]


async def test_the_oldest_lease_comes_first(scene: Scene) -> None:
    for run, lease_s in (("b", 3.0), ("a", 3.0), ("c", 1.0), ("d", 9.0)):
        await take(scene, run, hold(), lease_s)
    scene.sleep(5)

    assert [one.id for one in await scene.counters.expired("t", 10)] == ["c", "a", "b"]
    assert [one.id for one in await scene.counters.expired("t", 1)] == ["c"]


@pytest.mark.bug("K38")
async def test_what_is_over_is_let_go(scene: Scene) -> None:
    for day in range(30):
        start = START_S + day * DAY_S
        for number in range(20):
            run, one = (
                f"{day}-{number}",
                hold(f"user-{number}", window=Window(start, start + DAY_S)),
            )
            assert await take(scene, run, one)
            assert await scene.counters.settle("t", run, [one], [1])
        scene.sleep(DAY_S)

    assert scene.kept() <= 3 * 40


@pytest.mark.bug("K38")
async def test_what_counts_nothing_any_more_is_let_go_soon(scene: Scene) -> None:
    for number in range(1000):
        one = hold(f"session-{number}")
        assert await take(scene, f"{number}", one)
        assert await scene.counters.settle("t", f"{number}", [one], [0])
        scene.sleep(60)

    assert scene.kept() < 400
    assert await scene.counters.used("t", [hold("session-999")]) == [0]


async def test_totals_without_end_stay_as_long_as_they_are_used(scene: Scene) -> None:
    for number in range(20):
        await scene.counters.settle("t", f"{number}", [hold()], [1])
        scene.sleep(39 * DAY_S)

    assert await scene.counters.used("t", [hold()]) == [20]
    scene.sleep(2 * DAY_S)
    assert await scene.counters.used("t", [hold()]) == [0]


@pytest.mark.bug("K15")
async def test_a_settled_id_is_remembered_for_an_hour(scene: Scene) -> None:
    await scene.counters.settle("t", "run", [hold()], [1])
    scene.sleep(3599)
    assert not await scene.counters.settle("t", "run", [hold()], [1])
    scene.sleep(1)

    assert await scene.counters.settle("t", "run", [hold()], [1])


@pytest.mark.bug("K14", "K38")
@pytest.mark.parametrize("seed", range(20))
async def test_holds_that_are_shared_count_like_any_others(seed: int) -> None:
    """What is kept of holds is found again, also when a window is over, counters were let go or an id comes twice."""
    chance = random.Random(seed)
    scene, plain = Scene(), Scene()
    running: list[tuple[str, Holds, tuple[int, ...]]] = []
    shared: dict[tuple[str, int], Holds] = {}

    def holds_of(owner: str) -> Holds:
        day = int(scene.wall.now) // DAY_S
        window = Window(day * DAY_S, (day + 1) * DAY_S)
        return shared.setdefault(
            (owner, day),
            Holds(
                [
                    hold(f"running-{owner}", limit=chance.choice((2, 5))),
                    hold("tokens", limit=chance.choice((30, 300)), window=window, lifted=True),
                    hold(f"all-{owner}", limit=None, window=window),
                    *([hold("tokens", limit=300, window=window)] if owner == "twice" else []),
                ]
            ),
        )

    for number in range(400):
        holds = holds_of(chance.choice(("a", "b", "twice")))
        amounts = (1, *(chance.randrange(12) for _ in holds[1:]))
        run = f"run-{chance.randrange(number + 1) if chance.random() < 0.1 else number}"
        others = [one._replace(amount=amount) for one, amount in zip(holds, amounts, strict=True)]
        verdict = await scene.counters.reserve("t", run, holds, 60.0, b"", amounts)
        assert verdict == await plain.counters.reserve("t", run, others, 60.0)
        if verdict.missing:
            based = [one._replace(base=7) if one.lifted else one for one in others]
            verdict = await scene.counters.reserve("t", run, based, 60.0)
            assert verdict == await plain.counters.reserve("t", run, based, 60.0)
        if verdict.granted:
            running.append((run, holds, amounts))
        if running and chance.random() < 0.6:
            run, holds, amounts = running.pop(chance.randrange(len(running)))
            actual = tuple(chance.randrange(9) for _ in amounts)
            assert await scene.counters.settle("t", run, holds, actual) == (
                await plain.counters.settle("t", run, list(holds), actual)
            )
        if chance.random() < 0.2 and running:
            run, _, amounts = chance.choice(running)
            more = tuple(amount + chance.randrange(3) for amount in amounts)
            assert await scene.counters.extend("t", run, more) == (
                await plain.counters.extend("t", run, more)
            )
        passed_s = 2 * DAY_S if number % 97 == 0 else 3600 if number % 13 == 0 else 1
        for each in (scene, plain):
            each.sleep(passed_s)
        assert await scene.counters.used("t", holds) == await plain.counters.used("t", holds)

    assert scene.kept() == plain.kept()


async def test_what_closed_counters_knew_is_not_asked_for(scene: Scene) -> None:
    holds = Holds([hold()])
    assert (await scene.counters.reserve("t", "run", holds, 60.0, b"", (1,))).granted
    await scene.counters.aclose()

    with pytest.raises(StoreError):
        await scene.counters.reserve("t", "more", holds, 60.0, b"", (1,))
    with pytest.raises(StoreError):
        await scene.counters.settle("t", "run", holds, (1,))


async def test_holds_of_other_counters_are_looked_up_anew(scene: Scene) -> None:
    holds, other = Holds([hold(limit=1)]), Scene()
    for counters in (scene.counters, other.counters, scene.counters):
        await counters.reserve("t", "run", holds, 60.0, b"", (1,))

    assert not (await scene.counters.reserve("t", "more", holds, 60.0, b"", (1,))).granted
    assert not (await other.counters.reserve("t", "more", holds, 60.0, b"", (1,))).granted


@pytest.mark.bug("K38")
@pytest.mark.slow
async def test_no_more_settled_ids_are_kept_than_there_is_room_for(scene: Scene) -> None:
    for number in range(200_100):
        scene.counters.settle_now("t", f"{number}", (), ())

    assert scene.kept() <= 200_001
    assert not await scene.counters.settle("t", "200099", [], [])
