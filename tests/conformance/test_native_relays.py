"""Recorded exchanges of Messages and Responses with callers of the same format: what was said is what arrives.

The request goes on as it came, but for the model's name; the answer comes back byte for byte.
"""

from collections.abc import Generator
from typing import Any

import pytest

from tests.support.exchanges import Exchange
from tests.support.folder import folder, replay_of
from tests.support.gateway import KEY, bearer, http, run_gateway, run_replay
from tests.support.heard import PATHS
from tests.support.recordings import is_object
from tests.support.translated import EXCHANGES, Stage, configuration

Json = dict[str, Any]
NATIVE = [e for e in EXCHANGES if e.kind in {"messages", "responses"}]
STATEFUL = {"previous_response_id", "conversation", "prompt", "background"}
"""What needs answers kept at a provider: refused here."""
ASKED = [
    e
    for e in NATIVE
    if is_object(e.raw["request"]["body"]) and not STATEFUL & e.raw["request"]["body"].keys()
]
RELAYED = [
    e
    for e in NATIVE
    if e.status < 400 and e.raw["response"]["encoding"] != "base64" and not e.expect.get("error")
]
CUTS = ("whole", "event", "1", "7", "random,seed=1", "random,seed=2")


def cases(exchanges: list[Exchange]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("exchange", [pytest.param(e, id=e.id) for e in exchanges])


def wanted(exchange: Exchange) -> Json:
    """Return what is asked: what was asked then, or something like it."""
    body = exchange.raw["request"]["body"]
    said: Json = dict(body) if is_object(body) else {}
    if not said:
        name = "input" if exchange.kind == "responses" else "messages"
        said = {name: [{"role": "user", "content": "Hi"}], "max_tokens": 1024}
    if exchange.raw["stream"]:
        said["stream"] = True  # clouds say it by the address
    return said


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stage]:
    place = tmp_path_factory.mktemp("relays")
    with (
        run_replay(place, recordings=folder()) as replay,
        run_gateway(relays(replay.url), place) as gateway,
        http(headers=bearer()) as client,
    ):
        yield Stage(gateway, replay, client)


def relays(replay: str) -> Json:
    """Make two models of each exchange: `<id>@<options>` by its id, `<id>` by its request."""
    made = configuration(replay)
    for exchange in ASKED:
        name = f"{exchange.id}-asked"
        made["providers"][name] = exchange.entry(replay + replay_of(exchange.provider))
        target = {"provider": name, "model": exchange.model}
        made["models"][exchange.id] = {"targets": [target]}
    tenant = {"keys": [{"id": "test", "secret": KEY}], "models": list(made["models"])}
    return {**made, "tenants": {"relayed": tenant}}


def send(stage: Stage, exchange: Exchange, model: str) -> Any:
    body = {**wanted(exchange), "model": model}
    return stage.client.post(stage.gateway.url + PATHS[exchange.kind], json=body)


@cases(RELAYED)
@pytest.mark.parametrize("pieces", CUTS)
@pytest.mark.bug("K01", "K32", "K37")
def test_an_answer_is_what_the_provider_said(stage: Stage, exchange: Exchange, pieces: str) -> None:
    answer = send(stage, exchange, f"{exchange.id}@chunk={pieces}")

    assert answer.status_code == exchange.status, answer.text
    assert answer.content == exchange.body


@cases(ASKED)
@pytest.mark.bug("K11", "K32", "K34")
def test_a_request_goes_on_as_it_came(stage: Stage, exchange: Exchange) -> None:
    stage.replay.reset()
    send(stage, exchange, exchange.id)

    (sent,) = stage.replay.log()
    assert sent["recording"] is not None, sent
    asked = exchange.raw["request"]["body"]
    owned = (
        {"store": False} if exchange.kind == "responses" else {}
    )  # nothing is left with a provider
    assert sent["body"] == {**owned, **asked}
