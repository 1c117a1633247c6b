"""The scene of the recordings: a gateway in front of the replay upstream, two models for each recording."""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gateway.providers.registry import PROVIDERS
from tests.support.folder import address_of, folder, replay_of
from tests.support.gateway import (
    KEY,
    Gateway,
    Replay,
    bearer,
    http,
    run_gateway,
    run_replay,
)
from tests.support.recordings import Json, Recording, load, matching

RECORDINGS = load()
ERROR = "error"
"""The options under which an error is heard once, as the provider said it."""
CALLED = [recording for recording in RECORDINGS if recording.endpoint != "models"]


@dataclass(frozen=True, slots=True)
class Scene:
    """A gateway in front of the replay upstream, and a client."""

    gateway: Gateway
    replay: Replay
    client: httpx2.Client

    def ask(self, recording: Recording, options: str = "") -> httpx2.Response:
        """Ask what was asked when the recording was made; `options` are those of the replay."""
        return self.client.request(**call(self.gateway, recording, options))


def call(gateway: Gateway, recording: Recording, options: str) -> dict[str, Any]:
    """Return the arguments of the request that a recording stands for."""
    url = f"{gateway.url}/v1{recording.path}"
    name = f"{recording.id}@{options}" if options else recording.id
    if recording.endpoint == "models":
        ending = "-error" if options == ERROR else "-any"
        provider = f"{recording.id}{ending}" if options else recording.id
        return {"method": "GET", "url": url, "headers": {"x-gateway-provider": provider}}
    return {"method": "POST", "url": url, "json": {**recording.request, "model": name}}


def configuration(replay: str) -> Json:
    """Make two models of each recording: `<id>` is matched by its request, `<id>@<options>` by its id."""
    providers: dict[str, Json] = {}
    models: dict[str, Json] = {}
    for recording in RECORDINGS:
        base = recording.base.partition("/openai/deployments/")[0]
        matched = f"{replay}{replay_of(recording.provider)}/opt/ignore={'+'.join(matching(recording))}{base}"
        common: Json = {"kind": kind_of(recording), "api_key": "key-0123456789abcdefghij"}
        if recording.api_version is not None:
            common["api_version"] = recording.api_version
        # What is cut on purpose, many times, is not left alone.
        common["breaker"] = {"enabled": False}
        common["concurrency"] = {"adaptive": False}
        providers[recording.id] = {**common, "base_url": matched}
        providers[f"{recording.id}-any"] = {
            **common,
            "base_url": f"{replay}{address_of(recording.raw)}{base}",
        }
        target = {"provider": recording.id, "model": recording.model}
        models[recording.id] = {"targets": [target]}
        steered = {"provider": f"{recording.id}-any", "model": "opt:*"}
        models[f"{recording.id}@*"] = {"targets": [steered]}
        if recording.status >= 400:
            # An account of its own: one that was just told to wait says so itself.
            providers[f"{recording.id}-error"] = providers[f"{recording.id}-any"]
            own = {"provider": f"{recording.id}-error", "model": "opt:chunk=whole"}
            models[f"{recording.id}@{ERROR}"] = {"targets": [own]}
    tenant = {
        "keys": [{"id": "test", "secret": KEY}],
        "models": list(models),
        "providers": list(providers),
    }
    return {"providers": providers, "models": models, "tenants": {"replayed": tenant}}


def kind_of(recording: Recording) -> str:
    """Return the provider kind of that name, if it offers what was called; else the general one."""
    row = PROVIDERS.get(recording.provider)
    known = row is not None and recording.endpoint in row.endpoints
    return recording.provider if known else "openai_compatible"


@contextmanager
def replayed(place: Path) -> Generator[Scene]:
    """Serve all recordings through a gateway until the block ends."""
    with (
        run_replay(place, recordings=folder()) as replay,
        run_gateway(configuration(replay.url), place) as gateway,
        http(headers=bearer()) as client,
    ):
        yield Scene(gateway, replay, client)


def cases(recordings: Iterable[Recording]) -> pytest.MarkDecorator:
    """Run a test for each of these recordings; one skip says that there are none."""
    return pytest.mark.parametrize("recording", [pytest.param(r, id=r.id) for r in recordings])
