"""`gateway.use`: what a request may bring, and what it may not."""

from pathlib import Path
from typing import Any

import pytest

from gateway.config.errors import ConfigError
from tests.support.gateway import run_cli
from tests.support.models import ask, chained, refuse, said
from tests.support.team import configuration, written

QUICK = {"max_retries": 5, "jitter": "none", "initial_delay_ms": 1}


def using(*entries: object) -> dict[str, Any]:
    return ask(gateway={"use": list(entries)})


def allowing(*names: str) -> Any:
    def change(config: dict[str, Any]) -> None:
        config["tenants"]["acme"]["use"] = list(names)

    return change


@pytest.mark.contract("G-REG-3", "T-016")
@pytest.mark.parametrize("chain", [[], [{"retry": {"max_retries": 1}}]])
async def test_what_a_request_brings_ends_with_it(tmp_path: Path, chain: list[object]) -> None:
    async with chained(tmp_path, chain, config=allowing("retry"), m1=[refuse(503)]) as (
        gateway,
        models,
    ):
        await gateway.post(using({"name": "retry", "config": QUICK}))
        first = models.n()
        await gateway.post(using({"name": "retry", "config": {**QUICK, "max_retries": 3}}))
        second = models.n() - first
        await gateway.post(using({"name": "retry", "config": {**QUICK, "max_retries": 1}}))

    assert (first, second, models.n() - first - second) == (6, 4, 2)


@pytest.mark.contract("G-REG-4", "T-017", "T-018", "G-REG-5")
@pytest.mark.parametrize(
    ("entry", "status", "code", "words"),
    [
        ({"name": "nope"}, 404, "middleware_not_found", "nope"),
        (
            {"name": "retry", "config": {"max_retries": "x"}},
            400,
            "middleware_config",
            "retry: max_retries",
        ),
        (
            {"name": "retry", "config": {"max_retries": -1}},
            400,
            "middleware_config",
            "retry: max_retries",
        ),
        ({"name": "retry", "config": {"surprise": 1}}, 400, "middleware_config", "surprise"),
        ({"name": "retry", "more": 1}, 400, "middleware_config", "more"),
        (7, 400, "middleware_config", "gateway.use"),
        ({"name": "fallback", "config": {"models": ["m2"]}}, 403, "permission_denied", "fallback"),
        ("fallback", 403, "permission_denied", "fallback"),
    ],
)
async def test_what_cannot_be_used_is_refused_before_any_call(
    tmp_path: Path, entry: object, status: int, code: str, words: str
) -> None:
    async with chained(tmp_path, [], config=allowing("retry"), m1=[said()]) as (gateway, models):
        answer = await gateway.post(using(entry))

    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert words in answer.json()["error"]["message"]
    assert models.n() == 0


async def test_an_empty_list_is_the_tenant_s_own_chain(tmp_path: Path) -> None:
    async with chained(tmp_path, [], m1=[said()]) as (gateway, models):
        answer = await gateway.post(using())

    assert answer.status_code == 200
    assert "gateway" not in models.asked[0].body


@pytest.mark.threat("T-1")
@pytest.mark.bug("K25")
@pytest.mark.parametrize(
    ("config", "status", "code"),
    [
        ({"models": ["m3"]}, 400, "middleware_config"),
        ({"models": ["m3"], "beyond_key": True}, 403, "permission_denied"),
        ({"models": ["nosuch"]}, 400, "middleware_config"),
    ],
)
async def test_nothing_that_is_brought_leaves_the_tenant(
    tmp_path: Path, config: dict[str, Any], status: int, code: str
) -> None:
    def narrowed(whole: dict[str, Any]) -> None:
        whole["tenants"]["acme"].update(use=["fallback"], models=["m1", "m2"])

    async with chained(tmp_path, [], config=narrowed, m1=[refuse(503)], m3=[said()]) as (
        gateway,
        models,
    ):
        answer = await gateway.post(using({"name": "fallback", "config": config}))

    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert "m3" not in answer.json()["error"]["message"].replace('"m3"', "")
    assert models.n() == 0


async def test_what_takes_a_layer_s_place_sees_the_same_calls_alone(tmp_path: Path) -> None:
    chain = [{"retry": {"max_retries": 1, "when": {"paths": ["/v1/embeddings"]}}}]
    async with chained(tmp_path, chain, config=allowing("retry"), m1=[refuse(503)]) as (
        gateway,
        models,
    ):
        await gateway.post(using({"name": "retry", "config": QUICK}))

    assert models.n() == 1


@pytest.mark.bug("K25", "K41")
@pytest.mark.parametrize("name", ["limits", "budget", "retri"])
def test_the_check_finds_what_cannot_be_listed(tmp_path: Path, name: str) -> None:
    config = configuration()
    config["tenants"]["team"]["use"] = [name]
    said = run_cli("check", written(tmp_path, config), folder=tmp_path).stdout

    assert "config.yaml: tenants.team.use: " in said


@pytest.mark.bug("K25", "K41")
@pytest.mark.parametrize("name", ["limits", "budget", "retri"])
async def test_what_protects_or_is_not_there_cannot_be_listed(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"tenants\.acme\.use"):
        async with chained(tmp_path, [], config=allowing(name), m1=[said()]):
            pass
