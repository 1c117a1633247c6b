"""Official clients, unchanged, oldest and newest: each does through the gateway what it does with its own provider."""

from collections.abc import Callable, Generator
from typing import Any

import pytest

from tests.support.clients import Client, cases_of, run_cases
from tests.support.gateway import KEY, Gateway, run_gateway, wait_for
from tests.support.openai_stand_in import openai_account
from tests.support.stand_in import StandIn, stand_in

LEAVING_S = 0.25
CLIENTS = (
    Client("openai", "with_openai.py"),
    Client("openai-1.3", "with_openai.py", ("openai==1.3.9", "httpx<0.28")),
    Client("openai-1.109", "with_openai.py", ("openai==1.109.1",)),
    Client("openai-2.54", "with_openai.py", ("openai==2.54.0",)),
    Client("langchain", "with_langchain.py", ("langchain-openai==1.7.4",)),
    Client("pydantic-ai", "with_pydantic_ai.py", ("pydantic-ai-slim[openai]==2.68.0",)),
    Client("litellm", "with_litellm.py", ("litellm==1.110.2",)),
    Client("node", "with_openai.mjs", ("openai@7.59.0",)),
)
# One process runs all cases of a client, so that each is started once.
CASES = [
    pytest.param(
        client, case, id=f"{client.name}-{case}", marks=pytest.mark.xdist_group(client.name)
    )
    for client in CLIENTS
    for case in cases_of(client)
]


def configuration(provider: str) -> dict[str, Any]:
    """Return models of the built-in echo and of a stand-in for an account."""
    account = {"kind": "openai_compatible", "base_url": f"{provider}/v1"}
    # What refuses on purpose, again and again, is not left alone.
    account |= {"breaker": {"enabled": False}, "concurrency": {"adaptive": False}}
    secret = {"api_key": "sk-operator-0123456789"}
    models = {"echo": {"targets": [{"provider": "echo", "model": "echo"}]}}
    names = ["refuse-*", "cut", "breaks", "slow", "hang", "twice", "any"]
    for name in names:
        models[name] = {"targets": [{"provider": "stand", "model": name}]}
    tenant = {
        "keys": [{"id": "test", "secret": KEY}],
        "models": list(models),
        "providers": ["stand"],
    }
    return {
        "providers": {"echo": {"kind": "echo"}, "stand": {**account, **secret}},
        "models": models,
        "tenants": {"team": tenant},
    }


@pytest.fixture(scope="module")
def provider() -> Generator[StandIn]:
    with stand_in(openai_account()) as provider:
        yield provider


@pytest.fixture(scope="module")
def gateway(provider: StandIn, tmp_path_factory: pytest.TempPathFactory) -> Generator[Gateway]:
    place = tmp_path_factory.mktemp("clients")
    with run_gateway(configuration(provider.url), place) as gateway:
        yield gateway


Reports = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def reports_of(gateway: Gateway) -> Callable[[Client], Reports]:
    """Run a client's script once, at its first case."""
    found: dict[str, Reports] = {}
    absent: dict[str, BaseException] = {}

    def run(client: Client) -> Reports:
        if client.name in absent:
            raise absent[client.name]
        if client.name not in found:
            try:
                found[client.name] = run_cases(client, gateway.url, KEY)
            except (pytest.skip.Exception, pytest.fail.Exception) as reason:
                absent[client.name] = reason
                raise
        return found[client.name]

    return run


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize(("client", "case"), CASES)
def test_an_official_client_works_unchanged(
    reports_of: Callable[[Client], Reports], provider: StandIn, client: Client, case: str
) -> None:
    report = reports_of(client)[case]

    assert "failed" not in report, report["failed"]
    if "left_at" in report:
        asked = provider.with_mark(report["mark"])
        wait_for(lambda: asked.left_at, what="the provider to notice that the caller left")
        assert asked.left_at is not None
        assert asked.left_at - report["left_at"] < LEAVING_S
