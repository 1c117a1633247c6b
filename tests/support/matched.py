"""Recorded requests asked by callers of other formats, in front of an upstream that takes only what was recorded."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gateway.core.errors import InputError
from tests.support.asked import FORMATS, Asked, ask, prompt_of
from tests.support.exchanges import Exchange
from tests.support.folder import folder, replay_of
from tests.support.gateway import KEY, bearer, http, run_gateway, run_replay
from tests.support.translated import EXCHANGES, Stage

Json = dict[str, Any]
OWNED = ("stream_options", "include")
"""Fields that the gateway says in its own way: what it needs to count and to give back sealed reasoning."""
LIMITS = (
    "max_tokens", "max_completion_tokens", "max_output_tokens", "maxTokens", "maxOutputTokens", "num_predict",
)  # fmt: skip
HOLDERS = ("inferenceConfig", "generationConfig", "options")


def is_native(exchange: Exchange, caller: str) -> bool:
    """Tell whether a caller speaks the provider's own format."""
    return exchange.kind == caller and exchange.provider_kind not in {"cohere", "ollama_native"}


KNOWN = [e for e in EXCHANGES if e.raw["request"]["encoding"] == "json"]
CASES = [(e, caller) for e in KNOWN for caller in FORMATS if not is_native(e, caller)]
"""Recorded requests, and the callers of other formats."""


def ignored(exchange: Exchange, caller: str) -> list[str]:
    """Return the fields that are not compared: Messages must name a limit where others need none."""
    body: Json = exchange.raw["request"]["body"]
    names: list[str] = [*OWNED]
    if body.get("model", exchange.model) != exchange.model or "/deployments/" in exchange.path:
        names.append("model")
    if caller == "messages" and not said_anywhere(body, LIMITS):
        names += [*LIMITS, *(name for name in HOLDERS if not body.get(name))]
    if exchange.provider_kind == "ollama_native" and exchange.stream and "stream" not in body:
        names.append("stream")  # which is what it does unasked
    return names


def said_anywhere(body: Json, names: tuple[str, ...]) -> bool:
    """Tell whether a request holds one of these fields, at the top or among its settings."""
    places = [body, *(body.get(name) or {} for name in HOLDERS)]
    return any(place.get(name) is not None for place in places for name in names)


def configuration(replay: str) -> Json:
    """Make a provider and a model of each case; `<id>@<caller>`."""
    providers: Json = {}
    models: Json = {}
    for exchange, caller in CASES:
        name = f"{exchange.id}-{caller}"
        base = f"{replay}{replay_of(exchange.provider)}/opt/ignore={'+'.join(ignored(exchange, caller))}"
        providers[name] = exchange.entry(base)
        target = {"provider": name, "model": exchange.model}
        models[f"{exchange.id}@{caller}"] = {"targets": [target]}
    tenant = {"keys": [{"id": "test", "secret": KEY}], "models": list(models)}
    return {"providers": providers, "models": models, "tenants": {"matched": tenant}}


@contextmanager
def matched(place: Path) -> Generator[Stage]:
    """Serve the cases through a gateway, before an upstream that takes what it knows alone."""
    with (
        run_replay(place, recordings=folder()) as replay,
        run_gateway(configuration(replay.url), place) as gateway,
        http(headers=bearer()) as client,
    ):
        yield Stage(gateway, replay, client)


def asked_by(exchange: Exchange, caller: str) -> Asked | None:
    """Return the request of a caller; None where its format has no words for a part of it.

    Nobody but chat has the old words for tools: asked by others they are given as tools.
    """
    if "functions" in exchange.raw["request"]["body"]:
        return None
    try:
        return ask(prompt_of(exchange), caller, f"{exchange.id}@{caller}")
    except InputError:
        return None
