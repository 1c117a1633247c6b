"""One suite over every store of leases of probes in the registry."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from gateway.core.errors import StoreError
from gateway.core.ids import new_request_id
from gateway.core.probing import ProbePermits
from gateway.core.scope import common_key
from gateway.stores.redis.client import Client
from gateway.stores.redis.permits import RedisPermits
from gateway.stores.registry import open_permits
from tests.support.outgoing import Background
from tests.support.redis_calls import PATIENT
from tests.support.redis_server import free_port, redis_server, shared_url

LEASE_S = 30.0


@pytest.fixture(params=["memory", "redis"])
async def several(request: pytest.FixtureRequest) -> AsyncGenerator[list[ProbePermits]]:
    """What three replicas ask; in memory they are one process."""
    background = Background()
    if request.param == "memory":
        made = [open_permits("memory", background.spawn)] * 3
    else:
        made: list[ProbePermits] = [
            RedisPermits(Client(shared_url(), background.spawn, PATIENT), background.spawn)
            for _ in range(3)
        ]
    yield made
    await background.join()
    for each in made:
        await each.aclose()


@pytest.fixture
def name() -> str:
    """A name that no other test has."""
    return f"target:{new_request_id()}"


async def granted(several: list[ProbePermits], name: str, lease_s: float = LEASE_S) -> int:
    """Ask everywhere at once and many times; returns how often it was granted."""
    asked = (each.permit(name, lease_s) for each in several for _ in range(20))
    return sum(await asyncio.gather(*asked))


async def becomes_free(several: list[ProbePermits], name: str) -> None:
    async with asyncio.timeout(5):
        while await granted(several, name) == 0:
            await asyncio.sleep(0.005)


@pytest.mark.bug("K12")
async def test_of_all_who_ask_one_gets_the_lease(several: list[ProbePermits], name: str) -> None:
    assert await granted(several, name) == 1
    assert await granted(several, name) == 0


async def test_names_are_leased_on_their_own(several: list[ProbePermits], name: str) -> None:
    assert await granted(several, f"{name}#0") == 1
    assert await granted(several, f"{name}#1") == 1


async def test_a_lease_that_is_given_back_is_free(several: list[ProbePermits], name: str) -> None:
    assert await several[0].permit(name, LEASE_S)
    several[0].release(name)

    await becomes_free(several, name)
    assert await granted(several, name) == 0


async def test_a_lease_ends_by_itself(several: list[ProbePermits], name: str) -> None:
    assert await granted(several, name, 0.05) == 1

    await becomes_free(several, name)


async def test_nobody_gives_back_the_lease_of_another(name: str) -> None:
    background = Background()
    one, other = (
        RedisPermits(Client(shared_url(), background.spawn, PATIENT), background.spawn)
        for _ in range(2)
    )
    assert await one.permit(name, LEASE_S)
    assert not await other.permit(name, LEASE_S)
    other.release(name)
    await background.join()

    assert not await other.permit(name, LEASE_S)
    await one.aclose()
    await other.aclose()


async def test_without_redis_each_process_has_a_lease_of_its_own(name: str) -> None:
    background = Background()
    url = f"redis://127.0.0.1:{free_port()}/0"
    one, other = (open_permits(url, background.spawn) for _ in range(2))

    assert await granted([one], name) == 1
    assert await granted([other], name) == 1
    one.release(name)
    assert await granted([one], name) == 1
    await one.aclose()
    await other.aclose()
    await background.join()


async def test_a_server_that_comes_back_is_asked_again(tmp_path: Path, name: str) -> None:
    background = Background()
    with redis_server(tmp_path / "redis") as server:
        one, other = (open_permits(server.url, background.spawn) for _ in range(2))
        server.kill()
        assert await one.permit(f"{name}-down", LEASE_S)
        server.start()
        client = Client(server.url, background.spawn)

        async def is_back() -> bool:
            try:
                await client.command(common_key("any"), "PING")
            except StoreError:
                return False
            return True

        while not await is_back():
            await asyncio.sleep(0.01)
        assert await granted([one, other], name) == 1
        for each in (one, other, client):
            await each.aclose()
        await background.join()


def test_an_unknown_address_is_refused() -> None:
    with pytest.raises(StoreError):
        open_permits("nowhere:1", Background().spawn)
