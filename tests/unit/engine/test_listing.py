"""The names behind patterns, through a whole gateway and a provider that lists its models."""

from pathlib import Path
from typing import Any

from gateway.core import codec
from tests.support.scripted_upstream import Peer, answering, ok, upstream
from tests.support.serving import KEY, config_for, serving

LISTED = {
    "object": "list",
    "data": [{"id": "gpt-a"}, {"id": "gpt-b"}, {"id": "o1"}, {"no": 1}, {"id": 7}],
}


def wildcard(url: str, *models: str) -> dict[str, Any]:
    config = config_for(url)
    config["models"] = {
        "up/*": {"targets": [{"provider": "up", "model": "*"}]},
        "mine": {"targets": [{"provider": "up", "model": "m"}]},
    }
    keys = [{"id": "k", "secret": KEY}]
    config["tenants"] = {"acme": {"keys": keys, "models": list(models)}}
    return config


async def names(url: str, folder: Path, *models: str) -> list[str]:
    async with serving(wildcard(url, *models), folder) as gateway:
        listed = (await gateway.client.get("/v1/models")).json()["data"]
        again = (await gateway.client.get("/v1/models")).json()["data"]
    assert listed == again
    return [row["id"] for row in listed]


async def test_a_pattern_lists_what_its_provider_lists(tmp_path: Path) -> None:
    async with upstream(answering(ok(codec.encode(LISTED)))) as served:
        found = await names(f"http://localhost:{served.port}/v1", tmp_path, "up/*", "mine")

    assert found == ["mine", "up/gpt-a", "up/gpt-b", "up/o1"]
    assert [request.target for request in served.requests] == [b"/v1/models"]


async def test_only_what_the_caller_may_call_is_listed(tmp_path: Path) -> None:
    async with upstream(answering(ok(codec.encode(LISTED)))) as served:
        found = await names(f"http://localhost:{served.port}/v1", tmp_path, "up/gpt-*")

    assert found == ["up/gpt-a", "up/gpt-b"]


async def test_a_provider_that_does_not_list_costs_nothing_but_its_names(tmp_path: Path) -> None:
    async def refuses(peer: Peer) -> None:
        await peer.request()
        peer.fin()

    async with upstream(refuses) as served:
        found = await names(f"http://localhost:{served.port}/v1", tmp_path, "up/*", "mine")

    assert found == ["mine"]
