"""To which models a fallback goes, and what each of them is sent (K11)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gateway.config.errors import ConfigError
from tests.support.models import ask, chained, refuse, said

QUICK: Mapping[str, Any] = {"initial_delay_ms": 1, "jitter": "none"}
Chain = list[dict[str, Any]]


def fallback(*models: object, **options: object) -> Chain:
    """Return a chain of one fallback; to m2 when nothing is said."""
    return [{"fallback": {"models": list(models or ("m2",)), **options}}]


@pytest.mark.contract("G-FALL-5", "T-064")
async def test_a_target_that_is_no_model_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'no model "ghost" \(R-22\)'):
        async with chained(tmp_path, fallback("ghost"), m1=[said()]):
            pass


@pytest.mark.bug("K11")
@pytest.mark.contract("G-FALL-6", "T-065")
@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ({}, {"temperature": 0.9, "top_k": 5}),
        ({"isolate": True}, {"temperature": 0.1, "top_k": 5}),
    ],
)
async def test_parameters_are_defaults_or_all_there_is(
    options: dict[str, Any], sent: dict[str, Any], tmp_path: Path
) -> None:
    target = {"model": "m2", "params": {"temperature": 0.1, "top_k": 5}}
    async with chained(tmp_path, fallback(target, **options), m1=[refuse(503)], m2=[said()]) as (
        gateway,
        models,
    ):
        await gateway.post(ask(temperature=0.9))

    first, second = (asked.body for asked in models.asked)
    assert first["temperature"] == 0.9
    assert "top_k" not in first
    assert {name: second.get(name) for name in sent} == sent
    assert second["messages"] == first["messages"]


@pytest.mark.contract("G-FALL-6")
async def test_isolated_targets_get_nothing_of_the_clients_sampling(tmp_path: Path) -> None:
    chain = fallback(isolate=True)
    sampling: dict[str, Any] = {
        "temperature": 0.9,
        "top_p": 0.5,
        "max_tokens": 9,
        "stop": ["x"],
        "seed": 1,
    }
    async with chained(tmp_path, chain, m1=[refuse(503)], m2=[said()]) as (gateway, models):
        await gateway.post({**ask(user="u", tools=[]), **sampling})

    second = models.asked[1].body
    assert not sampling.keys() & second.keys()
    assert {"user", "tools"} <= second.keys()


@pytest.mark.bug("K11")
@pytest.mark.parametrize(("second", "seen"), [("unfit", 503), ("fit", 200)])
async def test_a_model_that_cannot_serve_the_request_is_passed_over(
    second: str, seen: int, tmp_path: Path
) -> None:
    def facts(config: dict[str, Any]) -> None:
        config["models"]["m2"]["supports"] = []
        if second == "unfit":
            config["models"]["m3"]["supports"] = []

    chain = fallback("m2", "m3")
    tools = [{"type": "function", "function": {"name": "f"}}]
    async with chained(
        tmp_path, chain, config=facts, m1=[refuse(503)], m2=[said()], m3=[said()]
    ) as (gateway, models):
        answer = await gateway.post(ask(tools=tools))

    assert answer.status_code == seen
    assert models.order == (["m1", "m3"] if seen == 200 else ["m1"])


@pytest.mark.bug("K11")
@pytest.mark.parametrize(("roomy", "order"), [(True, ["m1", "m3"]), (False, ["m1"])])
async def test_a_long_prompt_is_not_sent_where_it_cannot_fit(
    roomy: bool, order: list[str], tmp_path: Path
) -> None:
    def facts(config: dict[str, Any]) -> None:
        for name in ("m2", "m3")[: 1 if roomy else 2]:
            config["models"][name]["limits"] = {"context_tokens": 10}

    chain = fallback("m2", "m3")
    async with chained(
        tmp_path, chain, config=facts, m1=[refuse(500)], m2=[said()], m3=[said()]
    ) as (gateway, models):
        messages = [{"role": "user", "content": "long " * 200}]
        answer = await gateway.post(ask(messages=messages))

    assert models.order == order
    assert answer.status_code == (200 if roomy else 500)


@pytest.mark.bug("K11")
async def test_a_request_too_long_for_the_first_model_goes_to_a_larger_one(
    tmp_path: Path,
) -> None:
    def facts(config: dict[str, Any]) -> None:
        config["models"]["m1"]["limits"] = {"context_tokens": 10}

    async with chained(tmp_path, fallback(), config=facts, m1=[said()], m2=[said()]) as (
        gateway,
        models,
    ):
        messages = [{"role": "user", "content": "long " * 200}]
        answer = await gateway.post(ask(messages=messages))

    assert (answer.status_code, models.order) == (200, ["m2"])


@pytest.mark.bug("K11", "K34")
async def test_warnings_are_about_the_request_that_was_answered(tmp_path: Path) -> None:
    def other(config: dict[str, Any]) -> None:
        strict = {**config["providers"]["up"], "kind": "mistral"}
        config["providers"]["strict"] = strict
        config["models"]["m1"]["targets"] = [{"provider": "strict", "model": "m1"}]

    chain = [*fallback(), {"retry": {**QUICK, "max_retries": 1}}]
    async with chained(tmp_path, chain, config=other, m1=[refuse(503)], m2=[said()]) as (
        gateway,
        models,
    ):
        answer = await gateway.post(ask(logit_bias={"1": 1}, store=True))

    assert models.order == ["m1", "m1", "m2"]
    assert answer.headers["x-gateway-warnings"] == "fallback: m2 answered after m1 had failed"


@pytest.mark.bug("K34")
async def test_a_warning_stands_once_however_often_it_was_tried(tmp_path: Path) -> None:
    def other(config: dict[str, Any]) -> None:
        config["providers"]["up"]["kind"] = "mistral"

    chain = [{"retry": dict(QUICK)}]
    async with chained(tmp_path, chain, config=other, m1=[refuse(503), said()]) as (gateway, _):
        answer = await gateway.post(ask(logit_bias={"1": 1}))

    assert answer.headers["x-gateway-warnings"].count("logit_bias") == 1


@pytest.mark.bug("K11", "K30")
@pytest.mark.threat("T-9")
@pytest.mark.parametrize(("opened", "order"), [(["m1"], ["m1"]), (["m1", "m2"], ["m1", "m2"])])
async def test_no_key_reaches_a_model_that_it_does_not_open(
    opened: list[str], order: list[str], tmp_path: Path
) -> None:
    def narrow(config: dict[str, Any]) -> None:
        config["tenants"]["acme"]["keys"][0]["models"] = opened

    async with chained(tmp_path, fallback(), config=narrow, m1=[refuse(503)], m2=[said()]) as (
        gateway,
        models,
    ):
        answer = await gateway.post(ask())

    assert models.order == order
    assert answer.status_code == (200 if "m2" in order else 503)


async def test_the_operator_may_lead_every_key_to_a_model(tmp_path: Path) -> None:
    def narrow(config: dict[str, Any]) -> None:
        config["tenants"]["acme"]["models"] = ["m1"]

    chain = fallback(beyond_key=True)
    async with chained(tmp_path, chain, config=narrow, m1=[refuse(503)], m2=[said()]) as (
        gateway,
        models,
    ):
        answer = await gateway.post(ask())

    assert (answer.status_code, models.order) == (200, ["m1", "m2"])


async def test_a_target_may_fit_a_pattern(tmp_path: Path) -> None:
    def pattern(config: dict[str, Any]) -> None:
        config["models"]["m*"] = {"targets": [{"provider": "up", "model": "*"}]}
        del config["models"]["m2"]
        config["tenants"]["acme"]["models"] = ["m1", "m*"]

    async with chained(tmp_path, fallback(), config=pattern, m1=[refuse(503)], m2=[said()]) as (
        gateway,
        models,
    ):
        answer = await gateway.post(ask())

    assert (answer.status_code, models.order) == (200, ["m1", "m2"])
    assert answer.headers["x-gateway-model"] == "up/m2"


async def test_the_model_that_failed_is_not_called_again(tmp_path: Path) -> None:
    async with chained(tmp_path, fallback("m1", "m2"), m1=[refuse(503)], m2=[said()]) as (
        gateway,
        models,
    ):
        await gateway.post(ask())

    assert models.order == ["m1", "m2"]
