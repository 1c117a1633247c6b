"""Random traffic of 20 tenants through the whole chain: nobody ever gets what was made for somebody else (K19)."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.core import codec
from gateway.core.caching import Entry, Found, Looked, Pool
from gateway.stores.cache_memory import MemoryCache
from tests.support.marked import Reader, Who
from tests.support.marked_traffic import Traffic, traffic

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
LOOPS = ("uvloop",)
PLANTED = 500
"""Requests that are enough for a planted fault to be seen many times."""


async def nothing_is_foreign(served: Traffic, requests: int) -> None:
    """Send traffic; print what was read of it, and find nothing that is somebody else's."""
    await served.run(requests)
    seen = served.reader.seen
    print(dict(seen))
    assert served.reader.foreign == []
    assert seen["lines"] == seen["answers"] == requests
    assert min(seen["hit-exact"], seen["hit-semantic"], seen["miss"], seen["replayed"]) > 0
    assert seen["entries"] > requests / 1000
    assert seen["rows"] > requests / 1000
    assert seen["status 200"] > requests * 0.9
    assert seen["left or cut"] > requests / 1000


@pytest.mark.bug("K19", "K20", "K22", "K32")
@pytest.mark.contract("W-CACHE-9", "O-2")
@pytest.mark.threat("T-14", "T-16", "T-43")
async def test_nothing_foreign_in_thousands_of_requests(tmp_path: Path) -> None:
    """What must not be kept (cut, refused, denied, without an end, with calls of tools, `no-store`) is not either."""
    async with traffic(tmp_path, seed=1) as served:
        await nothing_is_foreign(served, 2500)


@pytest.mark.soak
@pytest.mark.timeout(14_400)
@pytest.mark.bug("K19", "K20", "K22", "K32")
@pytest.mark.contract("W-CACHE-9", "O-2")
@pytest.mark.threat("T-14", "T-16")
async def test_nothing_foreign_in_a_million_requests(tmp_path: Path) -> None:
    async with traffic(tmp_path, seed=2) as served:
        await nothing_is_foreign(served, 1_000_000)


# ------------------------------------------------------------------ that it can fail


class Careless(MemoryCache):
    """A cache that looks for answers without regard to whose they are, and says that they are the asker's."""

    def among(self, pool: Pool) -> Pool:
        """Return where it looks in truth."""
        return codec.replace(pool, tenant="all")

    async def look(self, pool: Pool, exact: str, canonical: str) -> Looked:
        """Look among everybody's."""
        found = await super().look(self.among(pool), exact, canonical)
        mine = [each and codec.replace(each, pool=pool) for each in found[:2]]
        return Looked(mine[0], mine[1], found.epoch)

    async def nearest(
        self, pool: Pool, embedder: str, vector: bytes, count: int
    ) -> Sequence[Found]:
        """Search among everybody's."""
        found = await super().nearest(self.among(pool), embedder, vector, count)
        return [each._replace(entry=codec.replace(each.entry, pool=pool)) for each in found]

    async def put(self, entry: Entry) -> bool:
        """Keep for everybody."""
        return await super().put(codec.replace(entry, pool=self.among(entry.pool)))


class Sessionless(Careless):
    """A cache that forgets the session."""

    def among(self, pool: Pool) -> Pool:
        """Return the tenant's."""
        return codec.replace(pool, scope="session", value="")


@pytest.mark.parametrize("careless", [Careless, Sessionless])
async def test_a_store_that_forgets_whose_an_answer_is_is_found(
    careless: type[MemoryCache], tmp_path: Path
) -> None:
    async with traffic(tmp_path, seed=3) as served:
        served.gateway.worker.cache.__class__ = careless
        await served.run(PLANTED)

    assert served.reader.seen["foreign in answer"] > 10


async def test_a_scope_that_forgets_the_session_is_found(tmp_path: Path) -> None:
    async with traffic(
        tmp_path, seed=4, scope=lambda own: own.replace("session", "tenant")
    ) as served:
        await served.run(PLANTED)

    assert served.reader.seen["foreign in answer"] > 10
    assert served.reader.seen["foreign in entry"] > 10


async def test_answers_that_change_places_on_their_way_are_found(tmp_path: Path) -> None:
    """As if two requests got each other's connection."""
    async with traffic(tmp_path, seed=5) as served:
        waiting: list[Who] = []

        def swap(who: Who) -> Who:
            waiting.append(who)
            return waiting.pop(0) if len(waiting) > 1 else who

        served.marker.swap = swap
        await served.run(200)

    assert served.reader.seen["foreign in answer"] > 10


async def test_what_is_kept_against_the_rules_is_found(tmp_path: Path) -> None:
    async with traffic(tmp_path, seed=6) as served:
        served.marker.swap = lambda who: who._replace(lasts=False)
        await served.run(200)

    assert served.reader.seen["foreign in entry that must not be kept"] > 10


def test_foreign_marks_in_headers_lines_and_rows_are_found() -> None:
    own, other = Who(1, 1, 0, 3), Who(1, 2, 0, 3)
    reader = Reader()
    reader.headers(own, [(b"x-warning", f"see {other.mark}".encode())])
    reader.answer(
        own, f'"content":"{other.mark[:6]}" "content":"{other.mark[6:]}"'.encode(), marked=True
    )
    reader.answer(own, b"nothing", marked=True)
    reader.answer(own, f"{own.mark} {other.mail}".encode(), marked=True)
    reader.line(codec.encode({"request_id": own.mark, "tenant": "t01", "detail": other.mark}))
    reader.line(codec.encode({"request_id": own.mark, "tenant": "t02"}))
    reader.line(codec.encode({"detail": f"{own.mark} {Who(2, 1, 0, 3).mark}"}))
    found = dict(reader.seen)

    assert reader.found == 7
    assert found["foreign in header"] == found["foreign in answer without a mark"] == 1
    assert found["foreign in answer"] == 2
    assert found["foreign in line"] == 3
