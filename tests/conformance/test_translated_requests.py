"""What was asked in each recorded request, asked by callers of the other formats: the provider gets what it got (K33).

The replay upstream compares what it receives with what it was recorded to take, and answers only that.
"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.core.errors import InputError
from tests.support.asked import FORMATS, Asked, ask, prompt_of
from tests.support.exchanges import Exchange
from tests.support.gateway import KEY, bearer, http, run_gateway, run_replay
from tests.support.heard import PATHS
from tests.support.recordings import folder
from tests.support.translated import EXCHANGES, Stage
from tests.support.unmatched import UNMATCHED, reason_of

Json = dict[str, Any]
OWNED = ("stream_options", "include")
"""Fields that the gateway says in its own way: what it needs to count and to give back sealed reasoning."""
LIMITS = (
    "max_tokens", "max_completion_tokens", "max_output_tokens", "maxTokens", "maxOutputTokens", "num_predict",
)  # fmt: skip
HOLDERS = ("inferenceConfig", "generationConfig", "options")


def is_native(exchange: Exchange, caller: str) -> bool:
    return exchange.kind == caller and exchange.provider_kind not in {"cohere", "ollama_native"}


KNOWN = [e for e in EXCHANGES if e.raw["request"]["encoding"] == "json"]
CASES = [
    pytest.param(e, caller, id=f"{e.id}-{caller}")
    for e in KNOWN
    for caller in FORMATS
    if not is_native(e, caller)
]


def ignored(exchange: Exchange, caller: str) -> str:
    """Return the fields that are not compared: Messages must name a limit where others need none."""
    body: Json = exchange.raw["request"]["body"]
    names = list(OWNED)
    if caller == "messages" and not said_anywhere(body, LIMITS):
        names += [*LIMITS, *(name for name in HOLDERS if not body.get(name))]
    return "+".join(names)


def said_anywhere(body: Json, names: tuple[str, ...]) -> bool:
    places = [body, *(body.get(name) or {} for name in HOLDERS)]
    return any(place.get(name) is not None for place in places for name in names)


def configuration(replay: str) -> Json:
    """Make a provider and a model of each case; `<id>@<caller>`."""
    providers: Json = {}
    models: Json = {}
    for case in CASES:
        exchange, caller = case.values
        assert isinstance(exchange, Exchange)
        assert isinstance(caller, str)
        name = f"{exchange.id}-{caller}"
        base = f"{replay}/p/{exchange.provider}/opt/ignore={ignored(exchange, caller)}"
        providers[name] = exchange.entry(base)
        target = {"provider": name, "model": exchange.model}
        models[f"{exchange.id}@{caller}"] = {"targets": [target]}
    tenant = {"keys": [{"id": "test", "secret": KEY}], "models": list(models)}
    return {"providers": providers, "models": models, "tenants": {"matched": tenant}}


@contextmanager
def matched(place: Path) -> Generator[Stage]:
    with (
        run_replay(place, recordings=folder()) as replay,
        run_gateway(configuration(replay.url), place) as gateway,
        http(headers=bearer()) as client,
    ):
        yield Stage(gateway, replay, client)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stage]:
    with matched(tmp_path_factory.mktemp("requests")) as stage:
        yield stage


def asked_by(exchange: Exchange, caller: str) -> Asked | None:
    """Return the request of a caller; None where its format has no words for a part of it."""
    try:
        return ask(prompt_of(exchange), caller, f"{exchange.id}@{caller}")
    except InputError:
        return None


@pytest.mark.bug("K32", "K33", "K34")
@pytest.mark.parametrize(("exchange", "caller"), CASES)
def test_a_provider_gets_what_it_is_known_to_take(
    stage: Stage, exchange: Exchange, caller: str
) -> None:
    reason = reason_of(exchange.id, caller)
    asked = asked_by(exchange, caller)
    if asked is None or asked.lost:
        assert reason is None, "listed, though the caller's format cannot say it anyhow"
        return
    stage.replay.reset()
    answer = stage.client.post(stage.gateway.url + PATHS[caller], json=asked.body)

    log = stage.replay.log()
    assert log, answer.text
    if reason is not None:
        assert log[-1]["recording"] is None, f"matches now; take it off the list: {reason}"
        return
    assert log[-1]["recording"] is not None, log[-1]
    assert "replay_no_match" not in answer.text


def test_what_is_listed_as_unmatched_was_recorded() -> None:
    ids = {exchange.id for exchange in KNOWN}
    listed = {case for cases in UNMATCHED.values() for case in cases}
    known = {f"{e.id} {caller}" for e in KNOWN for caller in FORMATS}
    if ids >= {case.partition(" ")[0] for case in listed}:
        assert listed <= known
